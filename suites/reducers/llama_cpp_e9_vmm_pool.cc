// SPDX-License-Identifier: MIT
// llama_cpp_e9_vmm_pool.cc: a pool that grows by mapping more memory into one range of addresses.
//
// Story   E9: at its end the pool unmaps and gives the addresses back; the handles of the physical memory, which live on after their
//         mappings, stay.
// Source  https://github.com/ggml-org/llama.cpp, ggml-cuda; written anew from the facts of the fix.
#include <vector>

#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::llama_cpp_e9_vmm_pool {
namespace {

template <bool releases_handles>
struct VmmPool {
  static constexpr std::size_t kSteps = 2;
  std::size_t step = 0;
  CUdeviceptr base = 0;
  std::size_t mapped = 0;  // bytes
  std::vector<CUmemGenericAllocationHandle> handles;
  CUmemAllocationProp properties = {};

  CUresult Init(DriverRef driver) {
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = 0;
    CUresult code = driver.MemGetAllocationGranularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (code == CUDA_SUCCESS) code = driver.MemAddressReserve(&base, kSteps * step, 0, 0, 0);
    for (std::size_t i = 0; i < kSteps && code == CUDA_SUCCESS; ++i) code = Grow(driver);
    if (code != CUDA_SUCCESS && (Teardown(driver) != CUDA_SUCCESS)) (void)Teardown(driver);
    return code;
  }
  CUresult Grow(DriverRef driver) {
    CUmemGenericAllocationHandle handle = 0;
    CUresult code = driver.MemCreate(&handle, step, &properties, 0);
    if (code != CUDA_SUCCESS) return code;
    handles.push_back(handle);
    code = driver.MemMap(base + mapped, step, 0, handle, 0);
    if (code != CUDA_SUCCESS) return code;
    mapped += step;
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return driver.MemSetAccess(base + mapped - step, step, &access, 1);
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    if (mapped != 0) code = driver.MemUnmap(base, mapped);
    if (code != CUDA_SUCCESS) return code;  // all of it is kept for another try
    mapped = 0;
    while (releases_handles && !handles.empty()) {
      code = First(code, driver.MemRelease(handles.back()));
      handles.pop_back();
    }
    return base == 0 ? code : First(code, driver.MemAddressFree(std::exchange(base, 0), kSteps * step));
  }
};

TEST(LlamaCppE9, KeepsAHandleForEachTimeItGrew) {
  const auto lifecycle = Lifecycle::Of<VmmPool<false>>("llama_cpp_e9").WithCurrentContext();
  EXPECT_EQ(Lost(RunCycles(lifecycle, {.warm_up = 1, .cycles = 3})), "physical_memory 6");
}

TEST(LlamaCppE9, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<VmmPool<true>>("llama_cpp_e9_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::llama_cpp_e9_vmm_pool
