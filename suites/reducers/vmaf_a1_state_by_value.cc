// SPDX-License-Identifier: MIT
// vmaf_a1_state_by_value.cc: a state that the caller makes and a framework imports.
//
// Story   A1: import copies the struct and closes its own copy. The block that init made for the caller stays: there is no function that
//         frees it. 40 bytes a cycle. Repaired: there is one.
// Source  https://github.com/Netflix/vmaf/issues/1300, docs/adr/0157, fix fd1b22c2; written anew from the facts.
// Usage   vmaf_a1_state_by_value defective|repaired CYCLES
#ifdef CUAUDIT_SUBJECT
#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace {

struct State {
  CUstream stream;
  char rest[32];
};

int StateInit(State** out) {
  State* const state = static_cast<State*>(calloc(1, sizeof(State)));
  if (state == nullptr) return Failed("state");
  if (cuStreamCreate(&state->stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    free(state);
    return Failed("state");
  }
  *out = state;
  return 0;
}

// The framework owns the stream from here on.
State Import(const State* state) { return *state; }

int Close(const State* imported) { return cuStreamDestroy(imported->stream) == CUDA_SUCCESS ? 0 : Failed("close"); }

int Cycle(bool repaired) {
  State* state = nullptr;
  if (Enter() != 0) return 1;
  int status = StateInit(&state);
  if (status == 0) {
    const State imported = Import(state);
    status = Close(&imported);
    if (repaired) free(state);
  }
  return Leave() != 0 ? 1 : status;
}

}  // namespace
}  // namespace cuaudit::reducers

int main(int argc, char** argv) { return cuaudit::reducers::Cycles(argc, argv, cuaudit::reducers::Cycle); }
#else
#include "suites/reducers/program_vectors.h"

namespace cuaudit::reducers::vmaf_a1_state_by_value {
namespace {

constexpr const char* kProgram = "vmaf_a1_state_by_value";

TEST(VmafA1, TheCallersStateStays) { EXPECT_EQ(PerCycle(kProgram, "defective"), "host_heap 1 (40 bytes)"); }

TEST(VmafA1, RepairedIsSilent) {
  EXPECT_EQ(PerCycle(kProgram, "repaired"), "");
  ExpectNothingLost(kProgram, "repaired", "host_oom", 1);
}

}  // namespace
}  // namespace cuaudit::reducers::vmaf_a1_state_by_value
#endif
