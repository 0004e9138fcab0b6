// SPDX-License-Identifier: MIT
// vmaf_b6_exception.cc: an image that is filled through a host buffer which is mapped meanwhile.
//
// Story   B6: submit and wait throw. The exception leaves the function in which the buffer is mapped and the image allocated, and nobody
//         gives them back. Repaired: the two are given back on every way out.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982, review round 26 (SYCL and VA); written anew from the facts, on the driver API.
#include <stdexcept>

#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_b6_exception {
namespace {

constexpr std::size_t kBytes = 4096;

void Check(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS) throw std::runtime_error(what);
}

// Mapped and allocated; given back by Release, or on the way out where somebody asked for it.
class Surface {
 public:
  Surface(DriverRef driver, bool on_the_way_out) : driver_(driver), on_the_way_out_(on_the_way_out) {}
  Surface(const Surface&) = delete;
  Surface& operator=(const Surface&) = delete;
  ~Surface() {
    if (on_the_way_out_) (void)Release();
  }
  void Import() {
    Check(driver_.MemHostAlloc(&mapped_, kBytes, CU_MEMHOSTALLOC_DEVICEMAP), "map");
    const CUresult code = driver_.MemAlloc(&image_, kBytes);
    if (code == CUDA_SUCCESS) return;
    image_ = 0;
    (void)driver_.MemFreeHost(std::exchange(mapped_, nullptr));
    Check(code, "image");
  }
  void Submit(CUstream stream) const { Check(driver_.MemcpyHtoDAsync(image_, mapped_, kBytes, stream), "submit"); }
  void Wait(CUstream stream) const { Check(driver_.StreamSynchronize(stream), "wait"); }
  CUresult Release() {
    CUresult code = image_ == 0 ? CUDA_SUCCESS : driver_.MemFree(std::exchange(image_, 0));
    if (mapped_ != nullptr) code = First(code, driver_.MemFreeHost(std::exchange(mapped_, nullptr)));
    return code;
  }

 private:
  DriverRef driver_;
  bool on_the_way_out_;
  void* mapped_ = nullptr;
  CUdeviceptr image_ = 0;
};

template <bool repaired>
struct Import {
  CUstream stream = nullptr;

  CUresult Init(DriverRef driver) { return driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING); }
  CUresult Work(DriverRef driver) {
    Surface surface(driver, repaired);
    surface.Import();
    surface.Submit(stream);
    surface.Wait(stream);
    return surface.Release();
  }
  CUresult Teardown(DriverRef driver) { return Destroy(driver, &stream); }
};

TEST(VmafB6, TheExceptionLeavesBufferAndImage) {
  ExpectVectors(Lifecycle::Of<Import<false>>("vmaf_b6").WithCurrentContext(),
                {{"cuMemcpyHtoDAsync#1=INVALID_CONTEXT,refuse", "device_memory 1, pinned_memory 1"},
                 {"cuStreamSynchronize#1=INVALID_CONTEXT,refuse", "device_memory 1, pinned_memory 1"}});
}

TEST(VmafB6, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Import<true>>("vmaf_b6_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b6_exception
