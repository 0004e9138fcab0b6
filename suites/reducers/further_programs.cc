// SPDX-License-Identifier: MIT
// Owners that release twice or too late, in the process that pays for it: E1, E4, E8.
//
// With CUAUDIT_SUBJECT this is the program of that name; without, what cuaudit must say of each.
#ifdef CUAUDIT_SUBJECT
#include <sys/wait.h>
#include <unistd.h>

#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace ffmpeg_e1_destroyed_twice {

// ffmpeg_e1_destroyed_twice: E1 of further_contexts.cc as a program.
//
// Story   E1: a hardware device made around the caller's context destroys it at the end as if it had made it. The caller destroys it, too.
// Source  https://github.com/FFmpeg/FFmpeg, libavutil/hwcontext_cuda.c; written anew from the facts of the fix.
// Usage   ffmpeg_e1_destroyed_twice defective|repaired

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

int Main(int argc, char** argv) { return Run(IsDefective(argc, argv)); }

}  // namespace ffmpeg_e1_destroyed_twice

namespace pycuda_e4_ipc_handle {

// pycuda_e4_ipc_handle: memory of another process, opened by its handle and closed by two owners.
//
// Story   E4: an object for the foreign memory is copied like one for memory of one's own; both copies close it when they are collected.
//         The second close reaches whatever has that address by then, or nothing: the driver's answer is dropped.
// Source  https://github.com/inducer/pycuda; written anew from the facts of the fixes.
// Usage   pycuda_e4_ipc_handle defective|repaired CYCLES

// The other process: hands out the name of its memory, and keeps that until nobody needs it any more.
int Share(int names, int done) {
  CUdeviceptr memory = 0;
  CUipcMemHandle handle;
  if (Enter() != 0) return 1;
  int status = 1;
  if (cuMemAlloc(&memory, 4096) == CUDA_SUCCESS) {
    char end = 0;
    if (cuIpcGetMemHandle(&handle, memory) == CUDA_SUCCESS && write(names, &handle, sizeof(handle)) == static_cast<ssize_t>(sizeof(handle)))
      status = read(done, &end, 1) == 0 ? 0 : 1;
    if (cuMemFree(memory) != CUDA_SUCCESS) status = 1;
  }
  close(names);
  close(done);
  return Leave() != 0 ? 1 : status;
}

struct Other {
  pid_t process;
  int done;
  CUipcMemHandle handle;
};

int Start(Other* other) {
  int names[2];
  int done[2];
  if (pipe(names) != 0) return Failed("pipe");
  if (pipe(done) != 0) {
    close(names[0]);
    close(names[1]);
    return Failed("pipe");
  }
  other->process = fork();
  if (other->process == 0) {
    close(names[0]);
    close(done[1]);
    _exit(Share(names[1], done[0]));
  }
  close(names[1]);
  close(done[0]);
  const bool read_whole = read(names[0], &other->handle, sizeof(other->handle)) == static_cast<ssize_t>(sizeof(other->handle));
  close(names[0]);
  other->done = done[1];
  return other->process > 0 && read_whole ? 0 : Failed("other process");
}

int Stop(const Other& other) {
  int status = 1;
  if (other.done < 0) return 1;
  close(other.done);
  return waitpid(other.process, &status, 0) == other.process && status == 0 ? 0 : Failed("other process's end");
}

struct Foreign {
  CUdeviceptr memory;
  bool owns;
};

void Collect(Foreign* one) {
  if (one->owns && one->memory != 0) (void)cuIpcCloseMemHandle(one->memory);
  one->memory = 0;
}

Other the_other = {-1, -1, {}};

int Cycle(bool repaired) {
  if (Enter() != 0) return 1;
  Foreign one = {0, true};
  int status = 0;
  if (cuIpcOpenMemHandle(&one.memory, the_other.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS) status = Failed("open");
  Foreign copy = {one.memory, !repaired};
  if (status == 0) {
    Collect(&copy);
    Collect(&one);
  }
  return Leave() != 0 ? 1 : status;
}

int Main(int argc, char** argv) {
  const int status = Start(&the_other) == 0 ? Cycles(argc, argv, Cycle) : 1;
  return Stop(the_other) != 0 ? 1 : status;
}

}  // namespace pycuda_e4_ipc_handle

namespace rmm_e8_static_pool {

// rmm_e8_static_pool: E8 of further_memory.cc as a program that leaves: the pool is emptied by an exit handler, as a static
// object's destructor is.
//
// Story   E8: when the handler runs, the context is gone: it waits for its event and frees its segments in a context that is no more. The
//         repair empties the pool while the context lives.
// Source  https://github.com/rapidsai/rmm/issues/2366; written anew from the facts.
// Usage   rmm_e8_static_pool defective|repaired

struct Pool {
  CUevent freed;
  CUdeviceptr segment[2];
};
Pool pool;

int Empty() {
  int status = 0;
  if (pool.freed != nullptr && cuEventSynchronize(pool.freed) != CUDA_SUCCESS) status = Failed("wait");
  if (pool.freed != nullptr && cuEventDestroy(pool.freed) != CUDA_SUCCESS) status = Failed("event destroy");
  pool.freed = nullptr;
  for (CUdeviceptr& one : pool.segment) {
    if (one != 0 && cuMemFree(one) != CUDA_SUCCESS) status = Failed("free");
    one = 0;
  }
  return status;
}

void AtExit() { (void)Empty(); }

int Fill() {
  if (cuEventCreate(&pool.freed, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return Failed("event");
  for (CUdeviceptr& one : pool.segment) {
    if (cuMemAlloc(&one, 1 << 20) != CUDA_SUCCESS) return Failed("segment");
  }
  return cuEventRecord(pool.freed, nullptr) == CUDA_SUCCESS ? 0 : Failed("record");
}

int Run(bool at_exit) {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS) return Failed("init");
  if (CreateContext(&context) != CUDA_SUCCESS) return Failed("context");
  if (at_exit) (void)atexit(AtExit);
  int status = Fill();
  if (!at_exit) status |= Empty();
  return cuCtxDestroy(context) == CUDA_SUCCESS ? status : Failed("context destroy");
}

int Main(int argc, char** argv) { return Run(IsDefective(argc, argv)); }

}  // namespace rmm_e8_static_pool
}  // namespace cuaudit::reducers

int main(int argc, char** argv) { return cuaudit::reducers::CUAUDIT_SUBJECT::Main(argc, argv); }
#else
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::further_programs {
namespace {

constexpr const char* kFfmpegE1 = "ffmpeg_e1_destroyed_twice";

TEST(FfmpegE1Program, DestroysTheCallersContext) { EXPECT_EQ(InOneRun(kFfmpegE1, "defective"), "double_release context"); }

TEST(FfmpegE1Program, RepairedIsSilent) {
  EXPECT_EQ(InOneRun(kFfmpegE1, "repaired"), "");
  ExpectUnwindsCleanly(kFfmpegE1, "repaired");
}

constexpr const char* kPycudaE4 = "pycuda_e4_ipc_handle";

TEST(PycudaE4, BothCopiesCloseForeignMemory) { EXPECT_EQ(PerCycle(kPycudaE4, "defective"), "double_release ipc_memory"); }

TEST(PycudaE4, OneOwnerIsSilent) {
  EXPECT_EQ(PerCycle(kPycudaE4, "repaired"), "");
  ExpectUnwindsCleanly(kPycudaE4, "repaired");
}

constexpr const char* kRmmE8 = "rmm_e8_static_pool";

// Waited for and destroyed; the two segments are freed one after the other.
TEST(RmmE8Program, FreesInAContextThatIsGone) {
  EXPECT_EQ(InOneRun(kRmmE8, "defective"),
            "use_after_release event, use_after_release event, use_after_release device_memory, use_after_release device_memory");
}

TEST(RmmE8Program, RepairedIsSilent) {
  EXPECT_EQ(InOneRun(kRmmE8, "repaired"), "");
  ExpectUnwindsCleanly(kRmmE8, "repaired");
}

}  // namespace
}  // namespace cuaudit::reducers::further_programs
#endif
