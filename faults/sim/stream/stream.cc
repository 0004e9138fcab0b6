// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/stream/stream.h"

#include "faults/sim/graph/capture.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/stream/queue.h"

namespace cuaudit::sim {

Stream* MakeStream(World& world, Context* context, bool counted) noexcept {
  Stream* const stream = world.Make<Stream>(context, counted);
  if (stream == nullptr) return nullptr;
  stream->id = world.next_id++;
  stream->time = world.clock;
  if (context->gate == nullptr) return stream;
  if (WaitOn(world, stream, context->gate) == CUDA_SUCCESS) return stream;
  FreeStream(world, stream);
  return nullptr;
}

void FreeStream(World& world, Stream* stream) noexcept {
  ForgetStream(world, stream);
  if (stream->thread != 0) stream->owner->own_streams.EraseValue(stream);
  stream->capture_tips.Clear(world.arena);
  FreeSlot(world, stream);
  world.Retire(stream);
  stream->destroyed = true;
  Pin(stream);
  Unpin(world, stream);
}

Stream* FindStream(Call& call, CUstream handle, CUresult* result) noexcept {
  const std::uintptr_t value = reinterpret_cast<std::uintptr_t>(handle);
  const bool own = handle == CU_STREAM_PER_THREAD || (value == 0 && call.per_thread);
  if (value == 0 || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    if (call.context == nullptr) {
      *result = call.thread->inside == Inside::Nothing ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_NOT_PERMITTED;
      return nullptr;
    }
    GreenContext* const green = call.context->greens == 0 ? nullptr : CurrentGreen(call.world, call.thread);
    if (!own) return green == nullptr ? call.context->legacy : green->standard;
    if (green != nullptr) {  // it has no streams of threads
      *result = CUDA_ERROR_INVALID_HANDLE;
      return nullptr;
    }
    for (Stream* stream : call.context->own_streams) {
      if (stream->thread == call.thread->serial) return stream;
    }
    Stream* const stream = MakeStream(call.world, call.context, false);
    if (stream == nullptr) {
      *result = CUDA_ERROR_OUT_OF_MEMORY;
      return nullptr;
    }
    stream->thread = call.thread->serial;
    if (!call.context->own_streams.Push(call.world.arena, stream)) {
      call.world.Destroy(stream);
      *result = CUDA_ERROR_OUT_OF_MEMORY;
      return nullptr;
    }
    return stream;
  }
  Stream* const stream = call.world.Find<Stream>(handle);
  if (stream == nullptr) {
    *result = call.world.DiedWithGreen(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_HANDLE;
    return nullptr;
  }
  *result = Borrow(call, stream->owner);
  return *result == CUDA_SUCCESS ? stream : nullptr;
}

Stream* BusyBlocking(World& world, const Context* context) noexcept {
  for (Stream* const stream : world.busy_streams) {
    if (stream->owner == context && stream->blocking) return stream;
  }
  return nullptr;
}

GreenContext* CurrentGreen(const World& world, Thread* thread) noexcept {
  if (thread->stack.empty()) return nullptr;
  const Context* const context = world.Find<Context>(thread->stack[thread->stack.size() - 1]);
  return context == nullptr ? nullptr : context->green;
}

bool IsStreamOf(const Stream* stream, const Context* context, const GreenContext* green) noexcept {
  return stream->owner == context && (green == nullptr || stream->green == green);
}

}  // namespace cuaudit::sim
