// SPDX-License-Identifier: MIT
// vmaf_a5_free_then_close.cc: A5 of vmaf_contexts.cc as a program, which dies of it on a genuine driver.
//
// Story   A5: the caller frees the state, and with it the stream, before the context of the framework that borrowed it is closed. A driver
//         that is handed a stream which is gone reads memory of its own that it has freed.
// Source  https://github.com/Netflix/vmaf/issues/1300, docs/adr/0157, fix fd1b22c2; written anew from the facts.
// Usage   vmaf_a5_free_then_close defective|repaired
#ifdef CUAUDIT_SUBJECT
#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace {

struct State {
  CUstream stream;
};

// Works on a stream of the state's.
struct Framework {
  CUstream borrowed;
  CUdeviceptr picture;
};

int Open(Framework* framework, const State& state) {
  framework->borrowed = state.stream;
  if (cuMemAlloc(&framework->picture, 4096) != CUDA_SUCCESS) return Failed("open");
  if (cuMemsetD8Async(framework->picture, 0, 4096, state.stream) == CUDA_SUCCESS) return 0;
  (void)cuMemFree(framework->picture);
  return Failed("fetch");
}

int Close(const Framework& framework) {
  const CUresult waited = cuStreamSynchronize(framework.borrowed);
  const CUresult freed = cuMemFree(framework.picture);
  return waited == CUDA_SUCCESS && freed == CUDA_SUCCESS ? 0 : Failed("close");
}

int Run(bool free_first) {
  State state;
  Framework framework;
  if (cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return Failed("state");
  int status = Open(&framework, state);
  const bool opened = status == 0;
  if (opened && !free_first) status = Close(framework);
  if (cuStreamDestroy(state.stream) != CUDA_SUCCESS) status = Failed("state free");
  if (opened && free_first) status |= Close(framework);
  return status;
}

}  // namespace
}  // namespace cuaudit::reducers

int main(int argc, char** argv) { return cuaudit::reducers::Once(argc, argv, cuaudit::reducers::Run); }
#else
#include "cuaudit/lifecycle.h"
#include "suites/reducers/program_vectors.h"

namespace cuaudit::reducers::vmaf_a5_free_then_close {
namespace {

constexpr const char* kProgram = "vmaf_a5_free_then_close";

// A genuine driver dies of the stream, which is a verdict beside that on what it was handed.
TEST(VmafA5Program, CloseUsesTheFreedState) {
  const std::string died = GenuineDriverIsChosen() ? "crash, " : "";
  EXPECT_EQ(InOneRun(kProgram, "defective"), died + "use_after_release stream");
}

TEST(VmafA5Program, RepairedIsSilent) {
  EXPECT_EQ(InOneRun(kProgram, "repaired"), "");
  ExpectUnwindsCleanly(kProgram, "repaired");
}

}  // namespace
}  // namespace cuaudit::reducers::vmaf_a5_free_then_close
#endif
