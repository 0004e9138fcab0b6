// SPDX-License-Identifier: MIT
// Green contexts and the device resources that they are made of.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

bool IsDevice(const Call& call, CUdevice device) { return device >= 0 && device < call.world.device_count; }

CUresult GreenOf(const Call& call, CUgreenCtx handle, GreenContext** green) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *green = call.world.Find<GreenContext>(handle);
  if (*green != nullptr) return (*green)->primary->sticky;
  return call.world.IsStale(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CheckType(CUdevResourceType type) { return type == CU_DEV_RESOURCE_TYPE_SM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_TYPE; }

constexpr unsigned kFineUnit = 2;
unsigned Up(unsigned value, unsigned unit) { return (value + unit - 1) / unit * unit; }

// RecordAll or WaitAll.
using ForAllStreams = CUresult(Call& call, Context* context, GreenContext* green, Event* event) noexcept;

CUresult OfGreen(Call& call, CUgreenCtx handle, CUevent event_handle, ForAllStreams* act) {
  GreenContext* green = nullptr;
  const CUresult result = GreenOf(call, handle, &green);
  if (result != CUDA_SUCCESS) return result;
  Event* const event = call.Follow<Event>(event_handle);
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : act(call, green->primary, green, event);
}

[[maybe_unused]] CUresult OfContext(Call& call, CUcontext handle, CUevent event_handle, ForAllStreams* act) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Context* context = nullptr;
  GreenContext* green = nullptr;
  const CUresult result = NamedContext(call, handle, &context, &green);
  if (result != CUDA_SUCCESS) return result;
  Event* const event = call.Follow<Event>(event_handle);
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : act(call, context, green, event);
}

}  // namespace

CUresult api::DeviceGetDevResource(Call& call, CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  const CUresult result = CheckType(type);
  if (result == CUDA_SUCCESS) *resource = WholeDevice(call.world, device);
  return result;
}

CUresult api::CtxGetDevResource(Call& call, CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* const context = call.world.Find<Context>(handle);
  if (context == nullptr || !context->active) return CUDA_ERROR_INVALID_CONTEXT;
  const CUresult result = CheckType(type);
  if (result == CUDA_SUCCESS) *resource = context->green == nullptr ? WholeDevice(call.world, context->device) : context->green->resource;
  return result;
}

CUresult api::GreenCtxGetDevResource(Call& call, CUgreenCtx handle, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GreenContext* green = nullptr;
  CUresult result = GreenOf(call, handle, &green);
  if (result == CUDA_SUCCESS) result = CheckType(type);
  if (result == CUDA_SUCCESS) *resource = green->resource;
  return result;
}

CUresult api::DevSmResourceSplitByCount(Call& call, CUdevResource* groups, unsigned int* count, const CUdevResource* input,
                                        CUdevResource* remaining, unsigned int flags, unsigned int least) {
  if (count == nullptr || input == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const bool fine = (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
  if ((groups != nullptr && *count == 0) || (fine && (flags & CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE) != 0))
    return CUDA_ERROR_INVALID_VALUE;
  ResourceOrigin origin = ResourceOrigin::Whole;
  CUdevice device = 0;
  if (!OriginOf(*input, &origin, &device)) return CUDA_ERROR_INVALID_VALUE;
  if (origin != ResourceOrigin::Whole || least > input->sm.smCount) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const Profile& profile = *call.world.profile;
  const unsigned unit = fine ? kFineUnit : profile.group_unit;
  const unsigned minimum = fine ? kFineUnit : profile.least_group;
  const unsigned rounded = Up(least < minimum ? minimum : least, unit);
  const unsigned size = rounded < input->sm.smCount ? rounded : input->sm.smCount;
  unsigned possible = input->sm.smCount / size;
  if (!fine && size == minimum && possible > profile.most_groups) possible = profile.most_groups;
  const unsigned made = groups == nullptr || *count > possible ? possible : *count;
  *count = made;
  if (groups == nullptr) return CUDA_SUCCESS;
  const auto split = static_cast<std::uint32_t>(call.world.next_id++);
  for (unsigned i = 0; i < made; ++i) {
    groups[i] = *input;
    SetGroup(&groups[i], size, 0, 0);  // what it may be split into is known once a green context has it
    Mark(&groups[i], ResourceOrigin::Group, device, split, i * size);
  }
  if (remaining == nullptr) return CUDA_SUCCESS;
  *remaining = *input;
  SetGroup(remaining, input->sm.smCount - made * size, 0, 0);
  if (remaining->sm.smCount == 0) remaining->type = CU_DEV_RESOURCE_TYPE_INVALID;
  Mark(remaining, ResourceOrigin::Remainder, device, split, made * size);
  return CUDA_SUCCESS;
}

CUresult api::DevResourceGenerateDesc(Call& call, CUdevResourceDesc* out, CUdevResource* resources, unsigned int count) {
  if (out == nullptr || resources == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (count == 0) return call.Undefined(CUDA_ERROR_INVALID_VALUE);
  ResourceOrigin origin = ResourceOrigin::Whole;
  CUdevice device = 0;
  unsigned all = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (!OriginOf(resources[i], &origin, &device)) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    for (unsigned j = 0; j < i; ++j) {
      if (!BelongTogether(resources[i], resources[j])) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    all += resources[i].sm.smCount;
  }
  ResourceDescriptor* const descriptor = call.world.Make<ResourceDescriptor>(nullptr, false);
  if (descriptor == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  descriptor->device = device;
  descriptor->resource = *resources;
  descriptor->resource.sm.smCount = all;
  *out = ToHandle<CUdevResourceDesc>(descriptor);
  return CUDA_SUCCESS;
}

CUresult api::GreenCtxCreate(Call& call, CUgreenCtx* out, CUdevResourceDesc handle, CUdevice device, unsigned int flags) {
  World& world = call.world;
  if (out == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  const ResourceDescriptor* const descriptor = world.Find<ResourceDescriptor>(handle);
  if (handle != nullptr && (descriptor == nullptr || descriptor->device != device)) return CUDA_ERROR_INVALID_VALUE;
  Context* const primary = world.devices[device].primary;
  const CUresult held = HoldPrimary(world, device);
  if (held != CUDA_SUCCESS) return held;
  GreenContext* const green = world.Make<GreenContext>(primary);
  Context* const view = world.Make<Context>(nullptr, false);
  Stream* const standard = MakeStream(world, primary, false);
  if (green == nullptr || view == nullptr || standard == nullptr) {
    if (green != nullptr) world.Destroy(green);
    if (view != nullptr) world.Destroy(view);
    if (standard != nullptr) FreeStream(world, standard);
    DropPrimary(call, primary);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  standard->green = green;
  standard->blocking = false;  // no order with the primary context's default stream is promised
  green->device = view->device = device;
  green->id = view->id = world.next_id++;
  green->primary = primary;
  green->view = view;
  green->standard = standard;
  green->resource = WholeDevice(world, device);  // without a descriptor all of it, as an H200 grants
  if (descriptor != nullptr) green->resource.sm.smCount = descriptor->resource.sm.smCount;
  view->green = green;
  view->active = true;
  view->api_version = primary->api_version;
  *out = ToHandle<CUgreenCtx>(green);
  return CUDA_SUCCESS;
}

CUresult api::GreenCtxDestroy(Call& call, CUgreenCtx handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  GreenContext* const green = call.world.Find<GreenContext>(handle);
  if (green == nullptr) return call.world.IsStale(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
  Context* const primary = green->primary;
  EndGreen(call.world, green);
  DropPrimary(call, primary);
  return CUDA_SUCCESS;
}

CUresult api::CtxFromGreenCtx(Call& call, CUcontext* out, CUgreenCtx handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GreenContext* green = nullptr;
  const CUresult result = GreenOf(call, handle, &green);
  if (result == CUDA_SUCCESS) *out = ToHandle<CUcontext>(green->view);
  return result;
}

#ifdef CUAUDIT_HAS_GreenCtxGetId
CUresult api::GreenCtxGetId(Call& call, CUgreenCtx handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GreenContext* green = nullptr;
  const CUresult result = GreenOf(call, handle, &green);
  if (result == CUDA_SUCCESS) *id = green->id;
  return result;
}
#endif

#ifdef CUAUDIT_HAS_GreenCtxStreamCreate
CUresult api::GreenCtxStreamCreate(Call& call, CUstream* out, CUgreenCtx handle, unsigned int flags, int priority) {
  GreenContext* green = nullptr;
  const CUresult result = GreenOf(call, handle, &green);
  if (result != CUDA_SUCCESS) return result;
  if (out == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  Stream* const stream = MakeStream(call.world, green->primary, true);
  if (stream == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  stream->green = green;
  stream->flags = flags;
  stream->blocking = false;
  stream->priority = ClampPriority(priority);
  *out = ToHandle<CUstream>(stream);
  return WaitOn(call.world, stream, green->gate);
}
#endif

CUresult api::StreamGetGreenCtx(Call& call, CUstream handle, CUgreenCtx* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream != nullptr) *out = stream->green == nullptr ? nullptr : ToHandle<CUgreenCtx>(stream->green);
  return result;
}

CUresult api::GreenCtxRecordEvent(Call& call, CUgreenCtx handle, CUevent event) { return OfGreen(call, handle, event, &RecordAll); }

CUresult api::GreenCtxWaitEvent(Call& call, CUgreenCtx handle, CUevent event) { return OfGreen(call, handle, event, &WaitAll); }

#ifdef CUAUDIT_HAS_CtxRecordEvent
CUresult api::CtxRecordEvent(Call& call, CUcontext handle, CUevent event) { return OfContext(call, handle, event, &RecordAll); }

CUresult api::CtxWaitEvent(Call& call, CUcontext handle, CUevent event) { return OfContext(call, handle, event, &WaitAll); }
#endif

}  // namespace cuaudit::sim
