// SPDX-License-Identifier: MIT
// The owner in sharing_test: a process with a simulated world that shares 4 MiB of device memory, says its handle, and obeys one letter
// at a time: f frees the memory, e ends in order. Bytes are 42 at the beginning and 17 at the end.
#include <unistd.h>

#include "faults/sim/world.h"

int main() {
  using namespace cuaudit;
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  sim::World* const world = sim::CreateWorld({.device_bytes = std::uint64_t{256} << 20});
  if (world == nullptr) return 1;
  const driver::DriverRef d = sim::Driver(world);
  CUcontext context = nullptr;
  CUdeviceptr p = 0;
  CUipcMemHandle handle{};
  if (d.Init(0) != CUDA_SUCCESS || d.DevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || d.CtxSetCurrent(context) != CUDA_SUCCESS)
    return 2;
  if (d.MemAlloc(&p, kBytes) != CUDA_SUCCESS || d.MemsetD8(p, 42, 16) != CUDA_SUCCESS) return 3;
  if (d.MemsetD8(p + kBytes - 16, 17, 16) != CUDA_SUCCESS || d.StreamSynchronize(nullptr) != CUDA_SUCCESS) return 4;
  if (d.IpcGetMemHandle(&handle, p) != CUDA_SUCCESS) return 5;
  if (write(STDOUT_FILENO, &handle, sizeof(handle)) != static_cast<ssize_t>(sizeof(handle))) return 6;
  for (char order = 0; read(STDIN_FILENO, &order, 1) == 1 && order != 'e';) {
    if (order == 'f' && d.MemFree(p) != CUDA_SUCCESS) return 7;
    unsigned char seen = 0;
    if (order == 'r' && d.MemcpyDtoH(&seen, p, 1) != CUDA_SUCCESS) return 8;
    if (write(STDOUT_FILENO, &seen, 1) != 1) return 9;
  }
  sim::DestroyWorld(world);
  return 0;
}
