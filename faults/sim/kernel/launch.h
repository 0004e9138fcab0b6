// SPDX-License-Identifier: MIT
// launch.h: what one kernel launch carries: its arguments, which are copied when the launch is called, as the driver does; and which
// launches are impossible.
//
//   Owns      the copies. They are immutable and reference-counted: a node, its clones, the plans made from it and queued launches share
//             them.
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    false when the world's arena is full.
//   Source    CUDA Driver API 13.0, cuLaunchKernel: kernelParams and extra.
//   Deviates  if neither the image nor a registered host kernel describes the parameters, arguments passed through kernelParams are not
//             read, and the launch is counted (KernelCount).
#pragma once

#include "faults/sim/image/image.h"
#include "faults/sim/kernel/module.h"
#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"
#include "faults/sim/state/world_state.h"
#include "include/cuaudit/kernel.h"

namespace cuaudit::sim {

struct Arguments {
  std::uint32_t references = 1;
  std::uint32_t count = 0;               // number of parameters with a known offset
  std::size_t storage = 0;               // size of this block in bytes
  std::size_t bytes = 0;                 // size of the packed values
  const cuaudit_kernel* host = nullptr;  // host function that runs in the kernel's place
  bool by_host = false;                  // the image has no layout; `host` declares it
  bool mismatch = false;                 // the registered host kernel declares other parameters
  char* values = nullptr;                // in the layout that the kernel expects
  void** pointers = nullptr;             // `count` pointers into `values`; null: the layout is unknown
  void* packed[5] = {};                  // `values` in the form of `extra`
};

// Allocates room for `count` parameters of `bytes` bytes together.
Arguments* MakeArguments(World& world, std::size_t count, std::size_t bytes) noexcept;
// Replaces the client's pointers in work->kernel by copies. Arguments that are copies already are left alone.
bool CopyArguments(World& world, const Symbol* symbol, Work* work) noexcept;
// Add and drop a reference to what the work holds: its argument copies and its graph's memory.
void ShareArguments(const Work& work) noexcept;
void DropArguments(World& world, const Work& work) noexcept;
const Symbol* KernelSymbol(const World& world, const CUDA_KERNEL_NODE_PARAMS& kernel) noexcept;

// Reads `extra`. INVALID_VALUE when the buffer or its size is missing.
CUresult ReadExtra(void* const* extra, const char** buffer, std::size_t* bytes) noexcept;

// Host functions that stand for kernels: which function a launch gets. schedule.h runs it.
//
//   Owns      nothing; registered kernels live as long as the process.
//   Threads   the caller holds the world's lock.
//   Source    include/cuaudit/kernel.h.

// The newest registration of the name; the world's own come before the process's. nullptr: the kernel does nothing.
const cuaudit_kernel* FindHostKernel(const World& world, const char* name) noexcept;
// True if the host kernel declares the same parameters as the image, or declares none.
bool Agrees(const cuaudit_kernel& kernel, const Symbol& symbol) noexcept;

// What makes a kernel launch impossible, whatever the stream.
//
//   Threads   the caller holds the world's lock.
//   Errors    INVALID_HANDLE for an unknown function or one of another context, INVALID_VALUE for impossible dimensions, shared memory or
//             parameters, LAUNCH_OUT_OF_RESOURCES for more bytes of parameters than the kernel takes.
//   Source    CUDA Driver API 13.0, cuLaunchKernel, cuLaunchKernelEx; details as an H200 answers (suites/contract, launch.*).

// `context`: where the kernel will run; null: the context of its function.
CUresult CheckKernel(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, const Context* context) noexcept;
// A cooperative launch needs all of its blocks resident at once.
CUresult CheckCooperative(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel) noexcept;
CUresult CheckCluster(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, const CUlaunchAttributeValue& value) noexcept;

}  // namespace cuaudit::sim
