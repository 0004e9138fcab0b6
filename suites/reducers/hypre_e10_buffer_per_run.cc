// SPDX-License-Identifier: MIT
// hypre_e10_buffer_per_run.cc: a solver that takes a work buffer for each run.
//
// Story   E10: the buffer belongs to the run and to nobody who is destroyed at its end: one device buffer more after each run (hypre, and
//         a burn-in program that sizes a new buffer for each turn).
// Source  https://github.com/hypre-space/hypre, https://github.com/wilicc/gpu-burn; written anew from the facts of the fixes.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::hypre_e10_buffer_per_run {
namespace {

template <bool repaired>
struct Solver {
  CUstream stream = nullptr;
  CUdeviceptr matrix = 0;

  CUresult Init(DriverRef driver) {
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&matrix, 65536);
    if (code != CUDA_SUCCESS) (void)Destroy(driver, &stream);
    return code;
  }
  CUresult Work(DriverRef driver) {
    CUdeviceptr buffer = 0;
    CUresult code = driver.MemAlloc(&buffer, 4096);
    if (code != CUDA_SUCCESS) return code;
    code = driver.MemcpyDtoDAsync(buffer, matrix, 4096, stream);
    if (code == CUDA_SUCCESS) code = driver.StreamSynchronize(stream);
    return repaired ? First(code, driver.MemFree(buffer)) : code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult code = matrix == 0 ? CUDA_SUCCESS : driver.MemFree(std::exchange(matrix, 0));
    return First(code, Destroy(driver, &stream));
  }
};

TEST(HypreE10, LeavesABufferForEachRun) {
  const auto lifecycle = Lifecycle::Of<Solver<false>>("hypre_e10").WithCurrentContext();
  EXPECT_EQ(Lost(RunCycles(lifecycle, {.warm_up = 1, .cycles = 3})), "device_memory 3");
}

TEST(HypreE10, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Solver<true>>("hypre_e10_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::hypre_e10_buffer_per_run
