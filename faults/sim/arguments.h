// SPDX-License-Identifier: MIT
// arguments.h: the arguments of one kernel launch, copied when the launch is asked for, as the driver copies them.
//
//   Owns      the copies. Counted: a node, its clones, the plans made from it and queued launches share them; nobody changes them.
//   Threads   the world's lock is held by every caller.
//   Units     bytes.
//   Errors    false when the books are full.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, cuLaunchKernel: kernelParams and extra.
//   Deviates  a layout that neither the image nor a registered host kernel tells is unknown: such arguments given through kernelParams
//             are not read at all, and the launch is counted.
#pragma once

#include "faults/sim/image.h"
#include "faults/sim/work.h"
#include "faults/sim/world_state.h"
#include "include/cuaudit/kernel.h"

namespace cuaudit::sim {

struct Arguments {
  std::uint32_t references = 1;
  std::uint32_t count = 0;               // parameters whose places are known
  std::size_t storage = 0;               // bytes of this block
  std::size_t bytes = 0;                 // of the packed values
  const cuaudit_kernel* host = nullptr;  // what runs in the kernel's place
  bool by_host = false;                  // only it knows the layout
  bool mismatch = false;                 // the one registered expects other parameters
  char* values = nullptr;                // packed as the kernel expects them
  void** pointers = nullptr;             // count of them, into values; null: the layout is unknown
  void* packed[5] = {};                  // values once more, in the form of `extra`
};

// Room for that many places and bytes.
Arguments* MakeArguments(World& world, std::size_t count, std::size_t bytes) noexcept;
// Replaces the client's pointers in work->kernel by copies of its own. No copies are made of what is already a copy.
bool CopyArguments(World& world, const Symbol* symbol, Work* work) noexcept;
// Keeps alive what the work holds, which is the copies and the memory of its graph; lets go of it.
void ShareArguments(const Work& work) noexcept;
void DropArguments(World& world, const Work& work) noexcept;
const Symbol* KernelSymbol(const World& world, const CUDA_KERNEL_NODE_PARAMS& kernel) noexcept;

// What `extra` says: INVALID_VALUE without a buffer or without its size.
CUresult ReadExtra(void* const* extra, const char** buffer, std::size_t* bytes) noexcept;

}  // namespace cuaudit::sim
