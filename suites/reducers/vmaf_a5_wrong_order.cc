// SPDX-License-Identifier: MIT
// vmaf_a5_wrong_order.cc: a context of a framework that borrows a state of the caller's, and the free function that the repair of A1 added.
//
// Story   A5: the caller frees the state and closes the context afterwards. Close still has the state's stream: it waits on it and
//         destroys the picture's event there, after the stream is gone. Right is to close first.
// Source  https://github.com/Netflix/vmaf/issues/1300, docs/adr/0157, fix fd1b22c2; written anew from the facts. The state's own memory
//         is host memory and outlives the mistake here, so that it is seen by what the driver is handed.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_a5_wrong_order {
namespace {

struct State {
  CUstream stream = nullptr;
};

// Fetches into a buffer of its own on the state's stream.
struct Framework {
  State* state = nullptr;
  CUdeviceptr picture = 0;

  CUresult Open(DriverRef driver, State* imported) {
    state = imported;
    CUresult code = driver.MemAlloc(&picture, 4096);
    if (code != CUDA_SUCCESS) {
      picture = 0;
      return code;
    }
    code = driver.MemsetD8Async(picture, 0, 4096, state->stream);
    if (code != CUDA_SUCCESS) (void)driver.MemFree(std::exchange(picture, 0));
    return code;
  }
  CUresult Close(DriverRef driver, CUstream borrowed) {
    const CUresult code = driver.StreamSynchronize(borrowed);
    return picture == 0 ? code : First(code, driver.MemFree(std::exchange(picture, 0)));
  }
};

enum class Order { CloseThenFree, FreeThenClose };

template <Order order>
struct Session {
  State state;
  Framework framework;

  CUresult Init(DriverRef driver) {
    CUresult code = driver.StreamCreate(&state.stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    code = framework.Open(driver, &state);
    if (code != CUDA_SUCCESS) (void)driver.StreamDestroy(state.stream);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUstream borrowed = framework.state->stream;
    if (order == Order::FreeThenClose) {
      (void)driver.StreamDestroy(state.stream);
      (void)framework.Close(driver, borrowed);  // whatever a driver answers to that
      return CUDA_SUCCESS;
    }
    const CUresult code = framework.Close(driver, borrowed);
    return First(code, Destroy(driver, &state.stream));
  }
};

TEST(VmafA5, CloseUsesTheFreedState) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("a genuine driver dies when it is handed a stream that is gone");
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Session<Order::FreeThenClose>>("vmaf_a5").WithCurrentContext(), kFourCycles)),
            "use_after_release stream");
}

TEST(VmafA5, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Session<Order::CloseThenFree>>("vmaf_a5_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_a5_wrong_order
