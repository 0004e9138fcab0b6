// SPDX-License-Identifier: MIT
// rmm_e8_pool_at_exit.cc: a memory pool in a static object.
//
// Story   E8: the pool is destroyed when the process leaves, after the context: it waits for its events and frees its segments in a
//         context that is gone, which was a crash in most exits. The repair notices the end and keeps its hands off; here it is emptied
//         before.
// Source  https://github.com/rapidsai/rmm/issues/2366; written anew from the facts. The process's end is the end of a context of the
//         case's own.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::rmm_e8_pool_at_exit {
namespace {

enum class Emptied { AtExit, BeforeTheContext };

template <Emptied when>
struct Pool {
  DriverRef driver;
  CUcontext context = nullptr;
  CUevent freed = nullptr;
  CUdeviceptr segment[2] = {};

  CUresult Init(DriverRef audited) {
    driver = audited;
    CUresult code = driver.CtxCreate(&context, nullptr, 0, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.EventCreate(&freed, CU_EVENT_DISABLE_TIMING);
    for (CUdeviceptr& one : segment) {
      if (code == CUDA_SUCCESS) code = driver.MemAlloc(&one, std::size_t{1} << 20);
    }
    if (code == CUDA_SUCCESS) code = driver.EventRecord(freed, nullptr);
    if (code == CUDA_SUCCESS) return code;
    (void)Empty();
    (void)driver.CtxDestroy(std::exchange(context, nullptr));
    return code;
  }
  CUresult Teardown(DriverRef) {
    const CUresult code = when == Emptied::BeforeTheContext ? Empty() : CUDA_SUCCESS;
    return context == nullptr ? code : First(code, driver.CtxDestroy(std::exchange(context, nullptr)));
  }
  CUresult Empty() {
    CUresult code = freed == nullptr ? CUDA_SUCCESS : driver.EventSynchronize(freed);
    code = First(code, Destroy(driver, &freed));
    for (CUdeviceptr& one : segment) {
      if (one != 0) code = First(code, driver.MemFree(std::exchange(one, 0)));
    }
    return code;
  }
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { (void)Empty(); }
};

template <Emptied when>
Lifecycle Of(const char* name) {
  return Lifecycle::Of<Pool<when>>(name).Prepare([](DriverRef driver) { return driver.Init(0); });
}

TEST(RmmE8, FreesInAContextThatIsGone) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("a genuine driver dies of an event whose context is gone");
  // Waited for and destroyed; the two segments are freed at one place.
  EXPECT_EQ(Lost(RunCycles(Of<Emptied::AtExit>("rmm_e8"), {.warm_up = 0, .cycles = 1})),
            "device_memory 2, event 1, use_after_release event, use_after_release event, use_after_release device_memory");
}

TEST(RmmE8, RepairedIsSilent) { ExpectSilent(Of<Emptied::BeforeTheContext>("rmm_e8_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::rmm_e8_pool_at_exit
