// SPDX-License-Identifier: MIT
// pycuda_e4_ipc_handle.cc: memory of another process, opened by its handle and closed by two owners.
//
// Story   E4: an object for the foreign memory is copied like one for memory of one's own; both copies close it when they are collected.
//         The second close reaches whatever has that address by then, or nothing: the driver's answer is dropped.
// Source  https://github.com/inducer/pycuda; written anew from the facts of the fixes.
// Usage   pycuda_e4_ipc_handle defective|repaired CYCLES
#ifdef CUAUDIT_SUBJECT
#include <sys/wait.h>
#include <unistd.h>

#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace {

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

}  // namespace
}  // namespace cuaudit::reducers

int main(int argc, char** argv) {
  using namespace cuaudit::reducers;
  const int status = Start(&the_other) == 0 ? Cycles(argc, argv, Cycle) : 1;
  return Stop(the_other) != 0 ? 1 : status;
}
#else
#include "suites/reducers/program_vectors.h"

namespace cuaudit::reducers::pycuda_e4_ipc_handle {
namespace {

constexpr const char* kProgram = "pycuda_e4_ipc_handle";

TEST(PycudaE4, BothCopiesCloseForeignMemory) { EXPECT_EQ(PerCycle(kProgram, "defective"), "double_release ipc_memory"); }

TEST(PycudaE4, OneOwnerIsSilent) {
  EXPECT_EQ(PerCycle(kProgram, "repaired"), "");
  ExpectUnwindsCleanly(kProgram, "repaired");
}

}  // namespace
}  // namespace cuaudit::reducers::pycuda_e4_ipc_handle
#endif
