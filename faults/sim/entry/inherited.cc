// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/inherited.h"

#include "faults/sim/entry/process.h"
#include "faults/sim/oracle/attendance.h"

namespace cuaudit::sim {
namespace {

enum class Inherited : std::uint8_t { Nothing, Finished, Unfinished };

bool NeedsTheParent(const Work& work) { return RunsHostFunctions(work) || work.type == WorkType::Await; }

Inherited StateOf(const World& world, CUstream handle) {
  const Stream* const stream = world.Find<Stream>(handle);
  if (stream == nullptr || stream->capture != nullptr || stream->owner->sticky != CUDA_SUCCESS) return Inherited::Nothing;
  for (const Operation* operation = stream->head; operation != nullptr; operation = operation->next) {
    if (NeedsTheParent(operation->work)) return Inherited::Unfinished;
  }
  return Inherited::Finished;
}

Inherited Look(World& world, CUstream stream) {
  if (!IsForkedChild(world) || pthread_mutex_trylock(&world.lock) != 0) return Inherited::Nothing;
  const Inherited state = StateOf(world, stream);
  pthread_mutex_unlock(&world.lock);
  return state;
}

}  // namespace

CUresult QueryInherited(World& world, CUstream stream) noexcept {
  switch (Look(world, stream)) {
    case Inherited::Finished:
      return CUDA_SUCCESS;
    case Inherited::Unfinished:
      return CUDA_ERROR_NOT_READY;
    case Inherited::Nothing:
      break;
  }
  return CUDA_ERROR_NOT_INITIALIZED;
}

CUresult SynchronizeInherited(World& world, CUstream stream) noexcept {
  return Look(world, stream) == Inherited::Finished ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult LaunchInherited(World& world, CUstream stream) noexcept {
  return Look(world, stream) == Inherited::Nothing ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
