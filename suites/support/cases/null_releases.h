// SPDX-License-Identifier: MIT
// null_releases.h: programs that undo what they have made, in a destructor or from a list. Each has a twin that also undoes what it has not
// made.
#pragma once

#include <cuaudit/lifecycle.h>

#include <functional>
#include <vector>

namespace cuaudit::testing {

// A texture object over memory, in a class that destroys it. Wrong: also the one that it does not have.
template <bool Wrong>
struct TextureInAClass {
  class Texture {
   public:
    Texture(DriverRef driver, CUresult* destroyed) : driver_(driver), destroyed_(destroyed) {}
    Texture(const Texture&) = delete;
    Texture& operator=(const Texture&) = delete;
    ~Texture() {
      if (made_ != 0 || Wrong) *destroyed_ = driver_.TexObjectDestroy(made_);
    }
    CUresult Make(CUdeviceptr memory, std::size_t bytes) {
      CUDA_RESOURCE_DESC resource{};
      resource.resType = CU_RESOURCE_TYPE_LINEAR;
      resource.res.linear = {memory, CU_AD_FORMAT_FLOAT, 1, bytes};
      const CUDA_TEXTURE_DESC how{};
      return driver_.TexObjectCreate(&made_, &resource, &how, nullptr);
    }

   private:
    DriverRef driver_;
    CUresult* destroyed_;
    CUtexObject made_ = 0;
  };

  CUresult Init(DriverRef driver) {
    CUdeviceptr memory = 0;
    CUresult code = driver.MemAlloc(&memory, 4096);
    if (code != CUDA_SUCCESS) return code;
    CUresult destroyed = CUDA_SUCCESS;
    {
      Texture texture(driver, &destroyed);
      code = texture.Make(memory, 4096);
    }
    const CUresult freed = driver.MemFree(memory);
    if (code == CUDA_SUCCESS) code = destroyed;
    return code == CUDA_SUCCESS ? freed : code;
  }
};

// A list of what is to be undone. Wrong: the end of the graph stands there before the graph is made.
template <bool Wrong>
struct ListOfUndoing {
  CUresult Init(DriverRef driver) {
    CUgraph graph = nullptr;
    CUevent event = nullptr;
    std::vector<std::function<CUresult()>> undo;
    const auto destroy = [&] { return driver.GraphDestroy(graph); };
    CUresult code = driver.EventCreate(&event, 0);
    if (code == CUDA_SUCCESS) {
      undo.emplace_back([&] { return driver.EventDestroy(event); });
      if (Wrong) undo.emplace_back(destroy);
      code = driver.GraphCreate(&graph, 0);
      if (code == CUDA_SUCCESS && !Wrong) undo.emplace_back(destroy);
    }
    for (auto one = undo.rbegin(); one != undo.rend(); ++one) {
      const CUresult undone = (*one)();
      code = code == CUDA_SUCCESS ? undone : code;
    }
    return code;
  }
};

}  // namespace cuaudit::testing
