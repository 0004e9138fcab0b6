// SPDX-License-Identifier: MIT
// process.h: what every call of the runtime stands on: the driver, the thread's state, and the way into and out of a call.
//
//   Owns      the dlopen reference of libcuda.so.1, for the rest of the process; one thread-local Thread.
//   Threads   safe everywhere. The driver is opened and initialised by the first call that needs it, and by the next one again while
//             that failed.
//   Errors    cudaError_t. A result other than cudaSuccess and cudaErrorNotReady becomes the thread's last error; nothing else does. After
//             the driver has shut down its answer comes through: cudaErrorCudartUnloading.
//   Faults    makes driver calls, so sweepable: Init, DriverGetVersion, DeviceGetCount, DeviceGet.
//   Source    CUDA Runtime API 13.0, error handling and interaction with the driver API.
//
// Nothing here is torn down and nothing has a constructor: nvcc's registration runs before our own constructors could, and programs
// call the runtime from exit handlers.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>

#include "faults/driver/driver_ref.h"

namespace cuaudit::cudart {

using driver::DriverRef;

struct CallConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

// Between <<<...>>> and the kernel's stub its arguments are evaluated, which may launch other kernels: hence a stack.
inline constexpr unsigned kConfigurations = 6;

struct Thread {
  cudaError_t last_error;
  int device;           // what cudaSetDevice chose
  unsigned generation;  // of that device when this thread bound a context; 0: none bound
  unsigned depth;
  CallConfiguration configuration[kConfigurations];
};

Thread& This() noexcept;

// 13000 or 12040: each shared library defines its own.
extern const int kRuntimeVersion;

enum class Need { driver, context };

struct Access {
  cudaError_t error;
  DriverRef driver;
};

// An older version of an entry point than the headers pick, for drivers before it. The arguments' types must be the entry point's own.
template <driver::CallId id, typename... P>
CUresult Older(DriverRef driver, P... arguments) noexcept {
  return reinterpret_cast<CUresult (*)(void*, P...)>(driver.table->entry[Index(id)])(driver.self, arguments...);
}

// Makes ready what a call needs. `per_thread`: stream 0 and calls without a stream mean the thread's own default stream, so the
// DriverRef calls the driver's per-thread twins.
Access Enter(Need need, bool per_thread) noexcept;

// The driver alone, whatever its state; null table when there is no libcuda.so.1.
DriverRef LoadedDriver(bool per_thread) noexcept;

// The driver when it is already initialised, else a null table: for code at exit, which must not start it.
DriverRef RunningDriver() noexcept;

// Under cuaudit: what is released from here on is released by the runtime, not by the program.
void NoteExit() noexcept;

// After cudaErrorDeviceUninitialized: true when the thread had lost its context and has one again, so that the call may be tried again.
bool Rebind() noexcept;

// Notes `error` as the thread's last one and returns it.
cudaError_t Record(cudaError_t error) noexcept;

cudaError_t FromDriver(CUresult result) noexcept;

// One line on stderr at the first call of each such function; returns cudaErrorNotSupported, recorded.
cudaError_t NotSupported(const char* function, std::atomic<bool>* said) noexcept;

// Writes "cuaudit: libcudart: <text>" to stderr.
void Say(const char* text) noexcept;

}  // namespace cuaudit::cudart
