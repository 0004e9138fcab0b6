// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/context/context.h"

#include "faults/sim/graph/capture.h"
#include "faults/sim/kernel/module.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/operation/value_work.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/order/lifetime.h"
#include "faults/sim/state/call.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"

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
  *context = found->green == nullptr ? found : found->green->primary;
  return (*context)->sticky;
}

bool StartContext(World& world, Context* context) noexcept {
  context->legacy = MakeStream(world, context, false);
  if (context->legacy == nullptr) return false;
  context->legacy->legacy = true;
  context->active = true;
  context->sticky = CUDA_SUCCESS;
  context->api_version = 3020;
  context->cache = CU_FUNC_CACHE_PREFER_NONE;
  StartLimits(world, context);
  return true;
}

// Other contexts no longer reach it.
static void ForgetPeer(World& world, const Context* gone) {
  for (Object* at = world.free_standing.first; at != nullptr; at = at->next) {
    const bool had = at->tag == Tag::Context && static_cast<Context*>(at)->peers.EraseValue(gone->handle);
    if (had) world.Count(driver::Kind::PeerAccess, -1);
  }
}

CUresult StateAfterWait(const World& world, std::uint64_t handle) noexcept {
  const Context* const context = world.Find<Context>(handle);
  return context == nullptr || !context->active ? CUDA_ERROR_CONTEXT_IS_DESTROYED : context->sticky;
}

// Runs the context's work until none is left. False: another thread ended the context meanwhile.
static bool FinishWork(Call& call, Context* context) {
  World& world = call.world;
  const std::uint64_t handle = context->handle;
  ++context->ending;
  for (bool busy = true; busy;) {
    DrainContext(call, context);
    if (world.Find<Context>(handle) != context) return false;
    busy = false;
    for (const Stream* const stream : world.busy_streams) busy = busy || stream->owner == context;
  }
  --context->ending;
  return context->active;
}

// Of these the genuine driver does not know that they are gone: it follows their handles as before (outlives.*). Of a primary context that
// is reset it knows (reset.event_is_gone).
static bool IsLostWith(const Context* context, Tag tag) {
  if (context->primary && context->references != 0) return false;
  if (tag == Tag::TextureReference) return true;
  if (context->primary) return tag == Tag::Event || tag == Tag::Array || tag == Tag::MipmappedArray;
  return tag == Tag::Stream || tag == Tag::External || tag == Tag::ExternalSemaphore;
}

static void Dismantle(World& world, Context* context) {
  world.handles.ending = Ending::Context;
  while (context->children.first != nullptr) {
    Object* object = context->children.first;
    if (object->tag == Tag::Array && static_cast<Array*>(object)->parent != nullptr) object = static_cast<Array*>(object)->parent;
    const std::uint64_t handle = object->handle;
    const bool reset = object->tag == Tag::Event && context->primary && context->references != 0;
    const bool of_module = object->tag == Tag::TextureReference && static_cast<TextureReference*>(object)->module != nullptr;
    const bool lost = IsLostWith(context, object->tag) && !of_module;  // of those of a module no question asks
    switch (object->tag) {
      case Tag::Stream:
        FreeStream(world, static_cast<Stream*>(object));
        break;
      case Tag::Event: {
        Event* const event = static_cast<Event*>(object);
        ForgetEvent(world, event);
        DropMarker(world, event->marker);
        EndShare(world, event->share);
        world.Destroy(event);
        break;
      }
      case Tag::Array:
        FreeArray(world, static_cast<Array*>(object));
        break;
      case Tag::MipmappedArray:
        FreeMipmappedArray(world, static_cast<MipmappedArray*>(object));
        break;
      case Tag::External:
        FreeExternal(world, static_cast<External*>(object));
        break;
      case Tag::ExternalSemaphore:
        FreeSemaphore(world, static_cast<ExternalSemaphore*>(object));
        break;
      case Tag::Texture:
        world.Destroy(static_cast<Texture*>(object));
        break;
      case Tag::Surface:
        world.Destroy(static_cast<Surface*>(object));
        break;
      case Tag::GreenContext:
        --context->greens;
        DropMarker(world, static_cast<GreenContext*>(object)->gate);
        world.Destroy(static_cast<GreenContext*>(object)->view);
        world.Destroy(static_cast<GreenContext*>(object));
        break;
      case Tag::TextureReference:
        if (Module* const module = static_cast<TextureReference*>(object)->module; module != nullptr) {
          FreeModule(world, module);
        } else {
          world.Destroy(static_cast<TextureReference*>(object));
        }
        break;
      case Tag::Module:
        FreeModule(world, static_cast<Module*>(object));
        break;
      case Tag::None:
      case Tag::LinkState:
      case Tag::Callback:
      case Tag::SurfaceReference:
      case Tag::ResourceDescriptor:
      case Tag::Function:
      case Tag::Context:
      case Tag::Pool:
      case Tag::Library:
      case Tag::Kernel:
      case Tag::Graph:
      case Tag::Node:
      case Tag::Executable:
      case Tag::Conditional:
      case Tag::UserObject:
      case Tag::Physical:
        world.Retire(object);
        break;
    }
    if (lost) world.handles.LeaveNote(handle, HandleTable::kLostNote);
    if (reset) world.handles.LeaveNote(handle, HandleTable::kResetNote);
  }
  world.handles.ending = Ending::Nothing;
  while (context->ranges != nullptr) {
    ObserveRelease(world, context->ranges);
    GiveBack(world, context->ranges);
  }
  context->own_streams.Clear(world.arena);
  context->fresh_slots.Clear(world.arena);
  context->legacy = nullptr;
  context->carrier = nullptr;
  DropMarker(world, context->gate);
  context->gate = nullptr;
  world.Count(driver::Kind::PeerAccess, -static_cast<std::int64_t>(context->peers.size()));
  context->peers.Clear(world.arena);
  context->attachments = 0;
  if (context->coredump != nullptr) world.arena.Delete(context->coredump);
  context->coredump = nullptr;
  ForgetPeer(world, context);
  context->active = false;
  context->sticky = CUDA_SUCCESS;
  TrimPools(world);
}

bool EndContext(Call& call, Context* context) noexcept {
  if (!FinishWork(call, context)) return false;
  Dismantle(call.world, context);
  return true;
}

void EndUnlessHeld(Call& call, Context* primary) noexcept {
  const auto held = [primary] { return primary->references != 0 || primary->greens != 0; };
  if (!primary->active || held() || !FinishWork(call, primary) || held()) return;
  Dismantle(call.world, primary);
  call.world.devices[primary->device].primary_flags = 0;
}

void StartLimits(const World& world, Context* context) noexcept {
  context->limits[CU_LIMIT_STACK_SIZE] = 1024;
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 8650752;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  context->limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = MostPersisting(world) / kPersistingParts * 3;
  context->limits[kSharedMemory] =
      static_cast<std::uint64_t>(world.profile->Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
}

CUdevResource WholeDevice(const World& world, CUdevice device) noexcept {
  const Profile& profile = *world.profile;
  CUdevResource all{};
  all.type = CU_DEV_RESOURCE_TYPE_SM;
  SetGroup(&all, static_cast<unsigned>(profile.Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)), profile.least_group,
           profile.group_unit);
  Mark(&all, ResourceOrigin::Whole, device);
  return all;
}

void SetGroup(CUdevResource* resource, unsigned count, [[maybe_unused]] unsigned least, [[maybe_unused]] unsigned unit) noexcept {
  resource->sm = {};
  resource->sm.smCount = count;
#if CUDA_VERSION >= 13000
  resource->sm.minSmPartitionSize = least;
  resource->sm.smCoscheduledAlignment = unit;
#endif
}

void Mark(CUdevResource* resource, ResourceOrigin origin, CUdevice device, std::uint32_t split, std::uint32_t first) noexcept {
  const std::uint32_t words[4] = {static_cast<std::uint32_t>(origin), static_cast<std::uint32_t>(device), split, first};
  std::memcpy(resource->_internal_padding, words, sizeof(words));
}

bool BelongTogether(const CUdevResource& one, const CUdevResource& other) noexcept {
  std::uint32_t a[4];
  std::uint32_t b[4];
  std::memcpy(a, one._internal_padding, sizeof(a));
  std::memcpy(b, other._internal_padding, sizeof(b));
  return a[1] == b[1] && a[2] != 0 && a[2] == b[2] && a[3] != b[3];
}

bool OriginOf(const CUdevResource& resource, ResourceOrigin* origin, CUdevice* device) noexcept {
  std::uint32_t words[2];
  std::memcpy(words, resource._internal_padding, sizeof(words));
  if (words[0] < static_cast<std::uint32_t>(ResourceOrigin::Whole) || words[0] > static_cast<std::uint32_t>(ResourceOrigin::Remainder))
    return false;
  *origin = static_cast<ResourceOrigin>(words[0]);
  *device = static_cast<CUdevice>(words[1]);
  return true;
}

void EndGreen(World& world, GreenContext* green) noexcept {
  world.handles.ending = Ending::Green;
  for (Object* at = green->primary->children.first; at != nullptr;) {
    Object* const object = at;
    at = at->next;
    if (object->tag != Tag::Stream) continue;
    Stream* const stream = static_cast<Stream*>(object);
    if (stream->green == green) FreeStream(world, stream);
  }
  world.handles.ending = Ending::Nothing;
  DropMarker(world, green->gate);
  world.Destroy(green->view);
  world.Destroy(green);
}

}  // namespace cuaudit::sim
