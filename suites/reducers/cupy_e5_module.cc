// SPDX-License-Identifier: MIT
// cupy_e5_module.cc: source text is linked and loaded at run time.
//
// Story   E5: neither the module nor the state of the linker that made it is ever given back: each compilation leaves one of both.
//         Nothing of it is bytes, so a memory meter is slow to see it.
// Source  https://github.com/cupy/cupy; written anew from the facts of the fixes.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::cupy_e5_module {
namespace {

constexpr char kText[] = ".version 8.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n";

template <bool gives_back>
struct Compiled {
  CUlinkState link = nullptr;
  CUmodule module = nullptr;

  CUresult Init(DriverRef driver) {
    void* image = nullptr;
    std::size_t bytes = 0;
    CUresult code = driver.LinkCreate(0, nullptr, nullptr, &link);
    if (code != CUDA_SUCCESS) return code;
    code = driver.LinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kText), sizeof(kText), "nothing", 0, nullptr, nullptr);
    if (code == CUDA_SUCCESS) code = driver.LinkComplete(link, &image, &bytes);
    if (code == CUDA_SUCCESS) code = driver.ModuleLoadData(&module, image);
    if (code != CUDA_SUCCESS && gives_back) (void)Teardown(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    if (!gives_back) return CUDA_SUCCESS;
    const CUresult unloaded = module == nullptr ? CUDA_SUCCESS : driver.ModuleUnload(std::exchange(module, nullptr));
    return link == nullptr ? unloaded : First(unloaded, driver.LinkDestroy(std::exchange(link, nullptr)));
  }
};

TEST(CupyE5, LeavesAModuleAndALinkStateForEachCompilation) {
  const auto lifecycle = Lifecycle::Of<Compiled<false>>("cupy_e5").WithCurrentContext();
  EXPECT_EQ(Lost(RunCycles(lifecycle, {.warm_up = 1, .cycles = 3})), "link_state 3, module 3");
}

TEST(CupyE5, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Compiled<true>>("cupy_e5_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cupy_e5_module
