// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/graph/capture.h"

namespace cuaudit::sim {
namespace {

bool Join(World& world, Capture* capture, Stream* stream) {
  if (stream->capture == capture) return true;
  if (!capture->streams.Push(world.arena, stream)) return false;
  stream->capture = capture;
  stream->capture_tips.Truncate(0);
  return true;
}

bool AddTip(World& world, Stream* stream, Node* node) {
  return stream->capture_tips.Contains(node) || stream->capture_tips.Push(world.arena, node);
}

// Events of an ended capture belong to no capture, and count as not recorded until their next record.
void LeadNowhere(Capture* capture) {
  for (Event* const event : capture->events) {
    event->capture = nullptr;
    event->capture_tips.Truncate(0);
  }
  capture->events.Truncate(0);
}

}  // namespace

void Invalidate(Capture* capture) noexcept {
  capture->invalidated = true;
  LeadNowhere(capture);
}

CUresult RefuseUnsafe(World& world, const Thread* thread) noexcept {
  if (thread->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (Capture* capture = world.capture_list; capture != nullptr; capture = capture->next) {
    const bool own = capture->thread == thread->serial && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool others = thread->capture_mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !others) continue;
    Invalidate(capture);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

bool CapturesBlocking(const World& world, const Context* context) noexcept {
  for (const Capture* capture = world.capture_list; capture != nullptr; capture = capture->next) {
    for (const Stream* const stream : capture->streams) {
      if (stream->blocking && stream->owner == context) return true;
    }
  }
  return false;
}

CUresult RefuseImplicit(World& world, const Context* context) noexcept {
  CUresult result = CUDA_SUCCESS;
  for (Capture* capture = world.capture_list; capture != nullptr; capture = capture->next) {
    for (const Stream* const stream : capture->streams) {
      if (!stream->blocking || stream->owner != context) continue;
      Invalidate(capture);
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  return result;
}

CUresult CaptureWork(World& world, Stream* stream, CUgraphNodeType type, const Work& work) noexcept {
  Capture* const capture = stream->capture;
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Node* const node = AddNode(world, capture->graph, stream->capture_tips.data(), stream->capture_tips.size(), type, work);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  return MoveTip(world, stream, node);
}

CUresult MoveTip(World& world, Stream* stream, Node* node) noexcept {
  stream->capture_tips.Truncate(0);
  return AddTip(world, stream, node) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CaptureRecord(World& world, Stream* stream, Event* event) noexcept {
  Capture* const capture = stream->capture;
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  ForgetEvent(world, event);
  if (!event->capture_tips.Assign(world.arena, stream->capture_tips.data(), stream->capture_tips.size())) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!capture->events.Push(world.arena, event)) return CUDA_ERROR_OUT_OF_MEMORY;
  event->capture = capture;
  event->was_captured = true;
  return CUDA_SUCCESS;
}

CUresult CaptureWait(World& world, Stream* stream, Event* event) noexcept {
  Capture* const capture = event->capture;
  if (capture == nullptr) {
    // A captured stream may not wait for work outside its capture.
    if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (event->marker == nullptr && !event->was_captured) return CUDA_SUCCESS;  // never recorded: nothing to wait for
    Invalidate(stream->capture);
    return event->was_captured ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (stream->legacy) {
    Invalidate(capture);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream->capture != nullptr && stream->capture != capture) {
    Invalidate(stream->capture);
    Invalidate(capture);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (!Join(world, capture, stream)) return CUDA_ERROR_OUT_OF_MEMORY;
  for (Node* const node : event->capture_tips) {
    if (!AddTip(world, stream, node)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult CaptureExternal(World& world, Stream* stream, WorkType type, CUevent event) noexcept {
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  Work work;
  work.type = type;
  work.event = event;
  return CaptureWork(world, stream, type == WorkType::Record ? CU_GRAPH_NODE_TYPE_EVENT_RECORD : CU_GRAPH_NODE_TYPE_WAIT_EVENT, work);
}

void ForgetStream(World& world, Stream* stream) noexcept {
  Capture* const capture = stream->capture;
  if (capture == nullptr) return;
  capture->streams.EraseValue(stream);
  stream->capture = nullptr;
  if (capture->origin != stream) {  // the capture goes on, and its work must still be joined
    for (Node* const tip : stream->capture_tips) {
      if (!capture->lost_tips.Push(world.arena, tip)) Invalidate(capture);
    }
  }
  stream->capture_tips.Truncate(0);
  if (capture->origin != stream) return;
  Invalidate(capture);
  // From here on nobody can end this capture.
  for (Stream* const other : capture->streams) {
    other->capture = nullptr;
    other->capture_tips.Truncate(0);
  }
  Capture** at = &world.capture_list;
  while (*at != capture) at = &(*at)->next;
  *at = capture->next;
  --world.captures;
  if (capture->given_graph) {
    capture->graph->capturing = false;
  } else {
    DestroyGraph(world, capture->graph);
  }
  capture->streams.Clear(world.arena);
  capture->events.Clear(world.arena);
  capture->lost_tips.Clear(world.arena);
  capture->shown.Clear(world.arena);
  world.arena.Delete(capture);
}

void ForgetEvent(World& world, Event* event) noexcept {
  if (event->capture != nullptr) event->capture->events.EraseValue(event);
  event->capture = nullptr;
  event->was_captured = false;
  event->capture_tips.Clear(world.arena);
}

}  // namespace cuaudit::sim
