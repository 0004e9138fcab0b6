// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/context.h"

#include "faults/sim/call.h"
#include "faults/sim/capture.h"
#include "faults/sim/executor.h"
#include "faults/sim/memory.h"
#include "faults/sim/module.h"

namespace cuaudit::sim {

bool PrepareDevices(World* world) noexcept {
  for (int i = 0; i < world->device_count; ++i) {
    DeviceState& device = world->devices[i];
    device.primary = world->Make<Context>(nullptr, false);
    device.default_pool = world->Make<Pool>(nullptr, false);
    if (device.primary == nullptr || device.default_pool == nullptr || !world->pools.Push(world->arena, device.default_pool)) return false;
    device.primary->device = i;
    device.primary->primary = true;
    device.primary->id = world->next_id++;
    device.default_pool->is_default = true;
    device.default_pool->device = i;
    device.default_pool->properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    device.default_pool->properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    device.default_pool->properties.location.id = i;
    device.default_pool->access[i] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    device.current_pool = device.default_pool;
  }
  return true;
}

CUresult CurrentContext(World& world, const Thread* thread, Context** context) noexcept {
  if (thread->stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  const std::uint64_t handle = thread->stack[thread->stack.size() - 1];
  if (handle == 0) return CUDA_ERROR_INVALID_CONTEXT;
  Context* const found = world.Find<Context>(handle);
  if (found == nullptr || !found->active) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *context = found;
  return found->sticky;
}

bool StartContext(World& world, Context* context) noexcept {
  context->legacy = MakeStream(world, context, false);
  if (context->legacy == nullptr) return false;
  context->legacy->legacy = true;
  context->active = true;
  context->sticky = CUDA_SUCCESS;
  context->api_version = 3020;
  context->cache = CU_FUNC_CACHE_PREFER_NONE;
  context->limits[CU_LIMIT_STACK_SIZE] = 1024;
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 7340032;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608;
  context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  context->limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0;
  return true;
}

void EndContext(Call& call, Context* context) noexcept {
  World& world = call.world;
  DrainContext(call, context);
  world.handles.ending_context = true;
  while (context->children.first != nullptr) {
    Object* const object = context->children.first;
    switch (object->tag) {
      case Tag::Stream:
        FreeStream(world, static_cast<Stream*>(object));
        break;
      case Tag::Event: {
        Event* const event = static_cast<Event*>(object);
        ForgetEvent(world, event);
        DropMarker(world, event->marker);
        world.Destroy(event);
        break;
      }
      case Tag::Array:
        if (MipmappedArray* const parent = static_cast<Array*>(object)->parent; parent != nullptr) {
          FreeMipmappedArray(world, parent);
        } else {
          FreeArray(world, static_cast<Array*>(object));
        }
        break;
      case Tag::MipmappedArray:
        FreeMipmappedArray(world, static_cast<MipmappedArray*>(object));
        break;
      case Tag::Texture:
        world.Destroy(static_cast<Texture*>(object));
        break;
      case Tag::Surface:
        world.Destroy(static_cast<Surface*>(object));
        break;
      case Tag::Module:
        FreeModule(world, static_cast<Module*>(object));
        break;
      case Tag::LinkState:
        FreeLinkState(world, static_cast<LinkState*>(object));
        break;
      case Tag::None:
      case Tag::Function:
      case Tag::Context:
      case Tag::Pool:
      case Tag::Library:
      case Tag::Kernel:
      case Tag::Graph:
      case Tag::Node:
      case Tag::Executable:
      case Tag::UserObject:
      case Tag::Physical:
        world.Retire(object);
        break;
    }
  }
  world.handles.ending_context = false;
  while (context->ranges != nullptr) GiveBack(world, context->ranges);
  context->streams.Clear(world.arena);
  context->legacy = nullptr;
  context->active = false;
  context->sticky = CUDA_SUCCESS;
  TrimPools(world);
}

}  // namespace cuaudit::sim
