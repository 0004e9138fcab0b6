// SPDX-License-Identifier: MIT
// Memory of another process: sim_sharer owns it, this one opens it.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "suites/support/sim_world.h"

extern char** environ;

namespace cuaudit::sim::sharing_test {
namespace {

using driver::Kind;

constexpr std::size_t kBytes = std::size_t{4} << 20;
constexpr unsigned kLazy = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;

class Owner {
 public:
  Owner() {
    int orders[2];
    int answers[2];
    EXPECT_EQ(pipe2(orders, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(answers, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, orders[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, answers[1], STDOUT_FILENO);
    std::string path = CUAUDIT_SHARER;
    char* arguments[] = {path.data(), nullptr};
    EXPECT_EQ(posix_spawn(&process_, path.c_str(), &actions, nullptr, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(orders[0]);
    close(answers[1]);
    orders_ = orders[1];
    answers_ = answers[0];
    EXPECT_EQ(read(answers_, &handle, sizeof(handle)), static_cast<ssize_t>(sizeof(handle)));
  }
  ~Owner() { End('e'); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  // Answers the byte that the owner reads, for 'r'.
  int Tell(char order) {
    unsigned char seen = 0;
    EXPECT_EQ(write(orders_, &order, 1), 1);
    EXPECT_EQ(read(answers_, &seen, 1), 1);
    return seen;
  }
  void Kill() {
    kill(process_, SIGKILL);
    End('\0');
  }
  int status = -1;
  CUipcMemHandle handle{};

 private:
  void End(char order) {
    if (process_ == 0) return;
    if (order != '\0') {
      EXPECT_EQ(write(orders_, &order, 1), 1);
    }
    close(orders_);
    close(answers_);
    EXPECT_EQ(waitpid(process_, &status, 0), process_);
    process_ = 0;
  }
  pid_t process_ = 0;
  int orders_ = -1;
  int answers_ = -1;
};

std::size_t Descriptors() {
  std::size_t count = 0;
  DIR* const directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

std::size_t SharedMappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:cuaudit") != std::string::npos ? 1U : 0U;
  return count;
}

int ByteAt(const Simulated& sim, CUdeviceptr p) {
  unsigned char out = 0;
  EXPECT_OK(sim.d.MemcpyDtoH(&out, p, 1));
  return out;
}

TEST(Sharing, BytesGoBothWaysAndTheBudgetIsTheOwners) {
  Owner owner;
  Simulated sim;
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t total = 0;
  CUdeviceptr p = 0;
  EXPECT_OK(sim.d.MemGetInfo(&before, &total));
  ASSERT_EQ(sim.d.IpcOpenMemHandle(&p, owner.handle, kLazy), CUDA_SUCCESS);
  EXPECT_OK(sim.d.MemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
  EXPECT_EQ(sim.Live(Kind::IpcMemory), 1U);
  EXPECT_EQ(ByteAt(sim, p), 42);
  EXPECT_EQ(ByteAt(sim, p + kBytes - 1), 17);
  EXPECT_OK(sim.d.MemsetD8(p, 99, 1));
  EXPECT_OK(sim.d.StreamSynchronize(nullptr));
  EXPECT_EQ(owner.Tell('r'), 99);
  EXPECT_OK(sim.d.IpcCloseMemHandle(p));
  EXPECT_EQ(sim.Live(Kind::IpcMemory), 0U);
  EXPECT_EQ(sim.d.MemsetD8(p, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST(Sharing, NothingIsLeftOfAKilledOwner) {
  const std::size_t descriptors = Descriptors();
  Simulated sim;
  CUdeviceptr p = 0;
  CUdeviceptr q = 0;
  {
    Owner owner;
    ASSERT_EQ(sim.d.IpcOpenMemHandle(&p, owner.handle, kLazy), CUDA_SUCCESS);
    owner.Kill();
    EXPECT_EQ(ByteAt(sim, p), 42);  // the mapping holds the bytes
    EXPECT_OK(sim.d.IpcCloseMemHandle(p));
    EXPECT_EQ(sim.d.IpcOpenMemHandle(&q, owner.handle, kLazy), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_EQ(Descriptors(), descriptors);
  EXPECT_EQ(SharedMappings(), 0U);
}

TEST(Sharing, AFreedNameLeadsNowhereButOpenBytesStay) {
  Owner owner;
  Simulated sim;
  CUdeviceptr p = 0;
  CUdeviceptr q = 0;
  ASSERT_EQ(sim.d.IpcOpenMemHandle(&p, owner.handle, kLazy), CUDA_SUCCESS);
  (void)owner.Tell('f');
  EXPECT_EQ(ByteAt(sim, p + kBytes - 1), 17);
  EXPECT_OK(sim.d.IpcCloseMemHandle(p));
  EXPECT_EQ(sim.d.IpcOpenMemHandle(&q, owner.handle, kLazy), CUDA_ERROR_INVALID_VALUE);
}

TEST(Sharing, OpeningTwiceCountsAndAWorldThatEndsCloses) {
  Owner owner;
  {
    Simulated sim;
    CUdeviceptr p = 0;
    CUdeviceptr q = 0;
    ASSERT_EQ(sim.d.IpcOpenMemHandle(&p, owner.handle, kLazy), CUDA_SUCCESS);
    ASSERT_EQ(sim.d.IpcOpenMemHandle(&q, owner.handle, kLazy), CUDA_SUCCESS);
    EXPECT_EQ(p, q);
    EXPECT_OK(sim.d.IpcCloseMemHandle(p));
    EXPECT_EQ(ByteAt(sim, q), 42);
  }
  EXPECT_EQ(SharedMappings(), 0U);
  EXPECT_EQ(owner.Tell('r'), 42);
}

TEST(Sharing, InventedNamesAreRefused) {
  Owner owner;
  Simulated sim;
  CUdeviceptr p = 0;
  const auto open = [&](std::size_t at, int changed_bits) {
    CUipcMemHandle handle = owner.handle;
    handle.reserved[at] = static_cast<char>(handle.reserved[at] ^ changed_bits);
    return sim.d.IpcOpenMemHandle(&p, handle, kLazy);
  };
  for (std::size_t at = 0; at < 48; ++at) {
    CUresult result = open(at, 0x41);
    if (result == CUDA_ERROR_INVALID_CONTEXT) result = open(at, 0x42);  // the owner's process id, so changed, was by chance ours
    if (at >= 28 && at < 32) {
      if (result == CUDA_SUCCESS) {
        EXPECT_OK(sim.d.IpcCloseMemHandle(p));  // unused bytes of the name
      }
      continue;
    }
    EXPECT_EQ(result, CUDA_ERROR_INVALID_VALUE) << at;
  }
}

TEST(Sharing, AWorldThatSharesNothingHasNoDescriptor) {
  const std::size_t before = Descriptors();
  Simulated sim;
  CUdeviceptr p = 0;
  CUipcMemHandle handle{};
  EXPECT_OK(sim.d.MemAlloc(&p, 4096));
  EXPECT_OK(sim.d.MemsetD8(p, 5, 4096));
  EXPECT_EQ(Descriptors(), before);
  EXPECT_OK(sim.d.IpcGetMemHandle(&handle, p));
  EXPECT_EQ(Descriptors(), before + 1);
  EXPECT_EQ(ByteAt(sim, p + 4095), 5);
  EXPECT_EQ(sim.d.IpcOpenMemHandle(&p, handle, kLazy), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(Sharing, AnImportedPoolHoldsADescriptorUntilItOrItsWorldEnds) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const std::size_t before = Descriptors();
  {
    Simulated sim;
    CUmemoryPool pool = nullptr, first = nullptr, second = nullptr;
    int fd = -1;
    EXPECT_OK(sim.d.MemPoolCreate(&pool, &properties));
    EXPECT_OK(sim.d.MemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    void* const handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
    const std::size_t exported = Descriptors();
    EXPECT_OK(sim.d.MemPoolImportFromShareableHandle(&first, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    EXPECT_OK(sim.d.MemPoolImportFromShareableHandle(&second, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    EXPECT_EQ(Descriptors(), exported + 2);
    EXPECT_OK(sim.d.MemPoolDestroy(first));
    EXPECT_EQ(Descriptors(), exported + 1);
    close(fd);
  }
  EXPECT_EQ(Descriptors(), before);
}

TEST(Sharing, ImportedPhysicalMemoryIsChargedOnceAndLivesAsLongAsAnyHandle) {
  Simulated sim;
  constexpr CUmemAllocationHandleType kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = kFd;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t before = 0;
  std::size_t now = 0;
  std::size_t total = 0;
  CUmemGenericAllocationHandle h = 0;
  CUmemGenericAllocationHandle again = 0;
  int file = -1;
  EXPECT_OK(sim.d.MemGetInfo(&before, &total));
  EXPECT_OK(sim.d.MemCreate(&h, kBytes, &properties, 0));
  EXPECT_OK(sim.d.MemExportToShareableHandle(&file, h, kFd, 0));
  EXPECT_OK(sim.d.MemImportFromShareableHandle(&again, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)), kFd));
  close(file);
  EXPECT_EQ(sim.Live(Kind::PhysicalMemory), 2U);
  EXPECT_OK(sim.d.MemRelease(h));
  EXPECT_OK(sim.d.MemGetInfo(&now, &total));
  EXPECT_EQ(before - now, kBytes);
  EXPECT_OK(sim.d.MemRelease(again));
  EXPECT_OK(sim.d.MemGetInfo(&now, &total));
  EXPECT_EQ(before, now);
  EXPECT_EQ(sim.d.MemRelease(again), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace cuaudit::sim::sharing_test
