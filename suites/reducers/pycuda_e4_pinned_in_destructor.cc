// SPDX-License-Identifier: MIT
// pycuda_e4_pinned_in_destructor.cc: pinned memory that is freed when the garbage collector comes to it.
//
// Story   E4: the array that holds pinned memory is collected after its context is gone, and its destructor frees what went with the
//         context; nobody hears what the driver answers. The other half of the row is pycuda_e4_ipc_handle.cc.
// Source  https://github.com/inducer/pycuda; written anew from the facts of the fixes.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::pycuda_e4_pinned_in_destructor {
namespace {

enum class Freed { WhenCollected, BeforeItsContext };

template <Freed when>
struct PinnedArray {
  DriverRef driver;
  CUcontext context = nullptr;
  void* pinned = nullptr;

  CUresult Init(DriverRef audited) {
    driver = audited;
    CUresult code = driver.CtxCreate(&context, nullptr, 0, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.MemAllocHost(&pinned, 4096);
    if (code != CUDA_SUCCESS) (void)driver.CtxDestroy(std::exchange(context, nullptr));
    return code;
  }
  CUresult Teardown(DriverRef) {
    CUresult code = CUDA_SUCCESS;
    if (when == Freed::BeforeItsContext && pinned != nullptr) code = driver.MemFreeHost(std::exchange(pinned, nullptr));
    return context == nullptr ? code : First(code, driver.CtxDestroy(std::exchange(context, nullptr)));
  }
  PinnedArray() = default;
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  ~PinnedArray() {
    if (pinned != nullptr) (void)driver.MemFreeHost(pinned);
  }
};

template <Freed when>
Lifecycle Of(const char* name) {
  return Lifecycle::Of<PinnedArray<when>>(name).Prepare([](DriverRef driver) { return driver.Init(0); });
}

TEST(PycudaE4, TheDestructorFreesWhatWentWithItsContext) {
  EXPECT_EQ(Lost(RunCycles(Of<Freed::WhenCollected>("pycuda_e4"), {.warm_up = 0, .cycles = 1})),
            "pinned_memory 1, use_after_release pinned_memory");
}

TEST(PycudaE4, RepairedIsSilent) { ExpectSilent(Of<Freed::BeforeItsContext>("pycuda_e4_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::pycuda_e4_pinned_in_destructor
