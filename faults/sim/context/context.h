// SPDX-License-Identifier: MIT
// context.h: contexts, the stack of current contexts, what is destroyed with a context, and its settings.
//
//   Owns      nothing. Ending a context ends every object whose Object::owner it is.
//   Threads   the caller holds the world's lock.
//   Errors    CurrentContext: INVALID_CONTEXT without one, CONTEXT_IS_DESTROYED for a dead one, the sticky code of a lost one.
//   Source    CUDA Driver API 13.0, Context Management.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "define __CUDA_API_VERSION_INTERNAL before every include of this translation unit"
#endif

#include <cstddef>

#include "faults/sim/state/call.h"
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

bool PrepareDevices(World* world) noexcept;
CUresult CurrentContext(World& world, const Thread* thread, Context** context) noexcept;
// Gives a new or revived context its default stream and limits.
bool StartContext(World& world, Context* context) noexcept;
// The result of a call in this context after a wait. During the wait another thread may have ended the context.
CUresult StateAfterWait(const World& world, std::uint64_t handle) noexcept;
// Finishes the context's work, then destroys all that lives in it; the record stays. False: another thread ended the context meanwhile, and
// the record may be gone.
bool EndContext(Call& call, Context* context) noexcept;
// The same for a primary context that nobody retains. It survives if somebody retains it while its work is finished.
void EndUnlessHeld(Call& call, Context* primary) noexcept;

// Contexts as calls about contexts and green contexts name and hold them.
//
//   Errors    those of the calls that name a context.

// Add and drop an internal reference to the device's primary context. Clients' references are counted separately.
CUresult HoldPrimary(World& world, CUdevice device) noexcept;
void DropPrimary(Call& call, Context* primary) noexcept;
// The context that a call names, or the current one for null. For a green context's view: its primary context, and *green is set.
CUresult NamedContext(Call& call, CUcontext handle, Context** context, GreenContext** green) noexcept;

// The limits that a context begins with.
//
//   Source    CUDA Driver API 13.0, cuCtxGetLimit; values of an H200 (580.159.04).

inline constexpr std::size_t kPersistingParts = 10;  // the L2 cache that a context may set aside is rounded to a tenth
// Toolkits before 12.5 have no name for it.
inline constexpr int kSharedMemory = CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 1;

inline std::size_t MostPersisting(const World& world) noexcept {
  return static_cast<std::size_t>(world.profile->Attribute(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE));
}

void StartLimits(const World& world, Context* context) noexcept;

// Coredump settings of a context or of the whole driver. The simulator never writes a coredump.
//
//   Units     names of at most 1023 characters.
//   Source    CUDA Driver API 13.0, Coredump Attributes Control; answers of an H200 (580.159.04).

inline constexpr std::size_t kCoredumpName = 1024;

struct Coredump {
  bool on_exception = false;
  bool user_trigger = false;
  int flags = 0;  // CUCoredumpGenerationFlags; the attributes "lightweight" and "trigger host" are bits of it
  char file[kCoredumpName] = "core.cuda.HOSTNAME.PID";
  char pipe[kCoredumpName] = "corepipe.cuda.HOSTNAME.PID";
};

// Green contexts: a part of a device's multiprocessors, used through the primary context.
//
//   Owns      a green context owns its view (the CUcontext that stands for it), its default stream and a reference to the primary context.
//   Errors    handles of a destroyed green context and of its streams answer CONTEXT_IS_DESTROYED where a device does.
//   Source    CUDA Driver API 13.0, Green Contexts; partition sizes as an H200 (580.159.04) returns them.

// How a device resource was made. The value is kept in the resource's padding, so that the driver recognises its own resources.
enum class ResourceOrigin : std::uint32_t { Whole = 0x5eed0001, Group, Remainder };

struct ResourceDescriptor : Object {
  static constexpr Tag kTag = Tag::ResourceDescriptor;
  CUdevice device = 0;
  CUdevResource resource = {};
};

// Headers before 13.0 have only the count.
void SetGroup(CUdevResource* resource, unsigned count, unsigned least, unsigned unit) noexcept;
// `split` identifies the split call, and `first` the output within it.
void Mark(CUdevResource* resource, ResourceOrigin origin, CUdevice device, std::uint32_t split = 0, std::uint32_t first = 0) noexcept;
// True for two different outputs of one split.
bool BelongTogether(const CUdevResource& one, const CUdevResource& other) noexcept;
// False for a resource that no driver call made.
bool OriginOf(const CUdevResource& resource, ResourceOrigin* origin, CUdevice* device) noexcept;
CUdevResource WholeDevice(const World& world, CUdevice device) noexcept;

// Ends the green context and its streams; their handles then report it. Queued work still runs.
void EndGreen(World& world, GreenContext* green) noexcept;

}  // namespace cuaudit::sim
