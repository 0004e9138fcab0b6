// SPDX-License-Identifier: MIT
// A buffer that one stream fills and another reads comes back as soon as the reader's last access is over, and not earlier.
#include <cuaudit/alloc.h>

#include <cstdio>
#include <memory>

namespace alloc = cuaudit::alloc;

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

CUresult Run(cuaudit::driver::DriverRef driver, alloc::Allocator* allocator, CUstream filler, CUstream reader) {
  CUdeviceptr buffer = 0;
  CUevent filled = nullptr;
  CUresult code = driver.EventCreate(&filled, CU_EVENT_DISABLE_TIMING);
  if (code != CUDA_SUCCESS) return code;
  code = allocator->Allocate(0, kBytes, filler, &buffer);
  if (code == CUDA_SUCCESS) code = driver.MemsetD8Async(buffer, 7, kBytes, filler);
  if (code == CUDA_SUCCESS) code = driver.EventRecord(filled, filler);
  if (code == CUDA_SUCCESS) code = driver.StreamWaitEvent(reader, filled, 0);
  unsigned char first = 0;
  if (code == CUDA_SUCCESS) code = driver.MemcpyDtoHAsync(&first, buffer, 1, reader);
  if (code == CUDA_SUCCESS) code = allocator->RecordUse(buffer, reader);  // that was the reader's last access
  const CUresult freed = allocator->Free(buffer);
  if (code == CUDA_SUCCESS) code = freed;
  const CUresult waited = driver.StreamSynchronize(reader);
  if (code == CUDA_SUCCESS) code = waited;
  const CUresult destroyed = driver.EventDestroy(filled);
  if (code == CUDA_SUCCESS) code = destroyed;
  if (code == CUDA_SUCCESS) {
    alloc::Statistics statistics;
    allocator->GetStatistics(0, &statistics);
    for (const auto& [name, value] : alloc::ListStatistics(statistics)) {
      if (name == "uses_recorded" || name == "allocation.all.allocated")
        std::printf("%s %lld\n", name.c_str(), static_cast<long long>(value));
    }
    std::printf("the reader saw %d\n", first);
  }
  return code;
}

}  // namespace

int main() {
  cuaudit::driver::GenuineDriver opened;
  if (const char* const wrong = alloc::OpenProcessDriver(&opened); wrong != nullptr) {
    std::fprintf(stderr, "two_streams: %s\n", wrong);
    return 1;
  }
  const cuaudit::driver::DriverRef driver = cuaudit::driver::Driver(&opened);
  const alloc::DeviceConfig device{0};
  std::unique_ptr<alloc::Allocator> allocator;
  CUcontext context = nullptr;
  CUstream filler = nullptr, reader = nullptr;
  CUresult code = driver.Init(0);
  if (code == CUDA_SUCCESS) code = driver.DevicePrimaryCtxRetain(&context, 0);
  if (code == CUDA_SUCCESS) code = driver.CtxSetCurrent(context);
  if (code == CUDA_SUCCESS) code = driver.StreamCreate(&filler, CU_STREAM_NON_BLOCKING);
  if (code == CUDA_SUCCESS) code = driver.StreamCreate(&reader, CU_STREAM_NON_BLOCKING);
  if (code == CUDA_SUCCESS) code = alloc::Allocator::Create(driver, &device, 1, {}, &allocator);
  if (code == CUDA_SUCCESS) code = Run(driver, allocator.get(), filler, reader);
  if (allocator != nullptr) {
    const CUresult closed = allocator->Close();
    if (code == CUDA_SUCCESS) code = closed;
  }
  if (filler != nullptr) (void)driver.StreamDestroy(filler);
  if (reader != nullptr) (void)driver.StreamDestroy(reader);
  if (context != nullptr) (void)driver.DevicePrimaryCtxRelease(0);
  if (code != CUDA_SUCCESS) std::fprintf(stderr, "two_streams: CUresult %d\n", static_cast<int>(code));
  return code == CUDA_SUCCESS ? 0 : 1;
}
