// SPDX-License-Identifier: MIT
// ffmpeg_e1_destroyed_twice.cc: E1 of further_contexts.cc as a program.
//
// Story   E1: a hardware device made around the caller's context destroys it at the end as if it had made it. The caller destroys it, too.
// Source  https://github.com/FFmpeg/FFmpeg, libavutil/hwcontext_cuda.c; written anew from the facts of the fix.
// Usage   ffmpeg_e1_destroyed_twice defective|repaired
#ifdef CUAUDIT_SUBJECT
#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace {

struct Device {
  CUcontext context;
  CUstream stream;
};

int Open(Device* device, CUcontext callers) {
  CUcontext popped = nullptr;
  device->context = callers;
  if (cuCtxPushCurrent(callers) != CUDA_SUCCESS) return Failed("push");
  const CUresult code = cuStreamCreate(&device->stream, CU_STREAM_NON_BLOCKING);
  if (cuCtxPopCurrent(&popped) == CUDA_SUCCESS) return code == CUDA_SUCCESS ? 0 : Failed("stream");
  if (code == CUDA_SUCCESS) (void)cuStreamDestroy(device->stream);
  (void)cuCtxPopCurrent(&popped);
  return Failed("pop");
}

int Close(const Device& device, bool owns) {
  int status = cuStreamDestroy(device.stream) == CUDA_SUCCESS ? 0 : Failed("close");
  if (owns && cuCtxDestroy(device.context) != CUDA_SUCCESS) status = Failed("close");
  return status;
}

int Run(bool owns) {
  CUcontext context = nullptr;
  CUcontext popped = nullptr;
  Device device;
  if (cuInit(0) != CUDA_SUCCESS) return Failed("init");
  if (CreateContext(&context) != CUDA_SUCCESS) return Failed("context");
  int status = cuCtxPopCurrent(&popped) == CUDA_SUCCESS ? 0 : Failed("pop");
  const bool opened = status == 0 && Open(&device, context) == 0;
  status |= opened ? Close(device, owns) : 1;
  return cuCtxDestroy(context) == CUDA_SUCCESS ? status : Failed("context destroy");
}

}  // namespace
}  // namespace cuaudit::reducers

int main(int argc, char** argv) { return cuaudit::reducers::Run(cuaudit::reducers::IsDefective(argc, argv)); }
#else
#include "suites/reducers/program_vectors.h"

namespace cuaudit::reducers::ffmpeg_e1_destroyed_twice {
namespace {

constexpr const char* kProgram = "ffmpeg_e1_destroyed_twice";

TEST(FfmpegE1Program, DestroysTheCallersContext) { EXPECT_EQ(InOneRun(kProgram, "defective"), "double_release context"); }

TEST(FfmpegE1Program, RepairedIsSilent) {
  EXPECT_EQ(InOneRun(kProgram, "repaired"), "");
  ExpectUnwindsCleanly(kProgram, "repaired");
}

}  // namespace
}  // namespace cuaudit::reducers::ffmpeg_e1_destroyed_twice
#endif
