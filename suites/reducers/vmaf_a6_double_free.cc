// SPDX-License-Identifier: MIT
// vmaf_a6_double_free.cc: a program that has been freeing the state itself.
//
// Story   A6: before the repair of A1 nobody freed the caller's state, so careful callers did, with plain free. The repair adds a
//         function that does; a caller who takes it up and keeps its own free frees twice. No call fails.
// Source  https://github.com/Netflix/vmaf/issues/1300, docs/adr/0157, fix fd1b22c2; written anew from the facts.
// Usage   vmaf_a6_double_free defective|repaired
#ifdef CUAUDIT_SUBJECT
#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace {

struct State {
  CUstream stream;
  char rest[32];
};

State* StateInit() {
  State* const state = static_cast<State*>(calloc(1, sizeof(State)));
  if (state == nullptr) return nullptr;
  if (cuStreamCreate(&state->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS) return state;
  free(state);
  return nullptr;
}

int StateFree(State* state) {
  const CUresult code = cuStreamDestroy(state->stream);
  free(state);
  return code == CUDA_SUCCESS ? 0 : Failed("state free");
}

int Run(bool frees_too) {
  State* const volatile state = StateInit();
  if (state == nullptr) return Failed("state init");
  const int status = StateFree(state);
  if (frees_too) free(state);
  return status;
}

}  // namespace
}  // namespace cuaudit::reducers

int main(int argc, char** argv) { return cuaudit::reducers::Once(argc, argv, cuaudit::reducers::Run); }
#else
#include "suites/reducers/program_vectors.h"

namespace cuaudit::reducers::vmaf_a6_double_free {
namespace {

constexpr const char* kProgram = "vmaf_a6_double_free";

// The C library's allocator notices it too, and ends the program.
TEST(VmafA6, TheCallerFreesWhatTheRepairHasFreed) { EXPECT_EQ(InOneRun(kProgram, "defective"), "abort, double_release host_heap"); }

TEST(VmafA6, RepairedIsSilent) {
  EXPECT_EQ(InOneRun(kProgram, "repaired"), "");
  ExpectNothingLost(kProgram, "repaired", "host_oom", 1);
}

}  // namespace
}  // namespace cuaudit::reducers::vmaf_a6_double_free
#endif
