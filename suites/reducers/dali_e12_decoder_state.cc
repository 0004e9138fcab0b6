// SPDX-License-Identifier: MIT
// dali_e12_decoder_state.cc: a decoder with one state for each image of a batch.
//
// Story   E12: a larger batch comes, and the states are made anew for all of its images over the ones that were there: their pinned and
//         device buffers and their events have no owner any more. The repair makes the missing ones only, and its teardown destroys all.
// Source  https://github.com/NVIDIA/DALI; written anew from the facts of the fix.
#include <vector>

#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::dali_e12_decoder_state {
namespace {

struct DecoderState {
  void* pinned = nullptr;
  CUdeviceptr memory = 0;
  CUevent decoded = nullptr;

  CUresult Make(DriverRef driver) {
    CUresult code = driver.MemAllocHost(&pinned, 4096);
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&memory, 4096);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&decoded, CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) (void)Give(driver);
    return code;
  }
  CUresult Give(DriverRef driver) {
    CUresult code = Destroy(driver, &decoded);
    if (memory != 0) code = First(code, driver.MemFree(std::exchange(memory, 0)));
    return pinned == nullptr ? code : First(code, driver.MemFreeHost(std::exchange(pinned, nullptr)));
  }
};

template <bool keeps_what_is_there>
struct Decoder {
  std::vector<DecoderState> states;

  CUresult Init(DriverRef driver) {
    const CUresult code = Resize(driver, 2);
    if (code != CUDA_SUCCESS) (void)Teardown(driver);
    return code;
  }
  CUresult Work(DriverRef driver) { return Resize(driver, 3); }
  CUresult Resize(DriverRef driver, std::size_t batch) {
    if (!keeps_what_is_there) states.clear();
    while (states.size() < batch) {
      DecoderState state;
      const CUresult code = state.Make(driver);
      if (code != CUDA_SUCCESS) return code;
      states.push_back(state);
    }
    return CUDA_SUCCESS;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (; !states.empty(); states.pop_back()) code = First(code, states.back().Give(driver));
    return code;
  }
};

TEST(DaliE12, LosesTheStatesOfTheSmallerBatch) {
  const auto lifecycle = Lifecycle::Of<Decoder<false>>("dali_e12").WithCurrentContext();
  EXPECT_EQ(Lost(RunCycles(lifecycle, {.warm_up = 1, .cycles = 3})), "device_memory 6, event 6, pinned_memory 6");
}

TEST(DaliE12, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Decoder<true>>("dali_e12_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::dali_e12_decoder_state
