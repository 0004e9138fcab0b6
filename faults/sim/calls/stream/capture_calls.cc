// SPDX-License-Identifier: MIT
// Captures of streams.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

CUresult Begin(Call& call, CUstream handle, Graph* given, const CUgraphNode* dependencies, std::size_t count, CUstreamCaptureMode mode) {
  World& world = call.world;
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  Capture* const capture = world.arena.New<Capture>();
  Graph* const graph = given != nullptr ? given : MakeGraph(world, false);
  if (capture == nullptr || graph == nullptr || !capture->streams.Push(world.arena, stream)) return CUDA_ERROR_OUT_OF_MEMORY;
  for (std::size_t i = 0; i < count; ++i) {
    if (!stream->capture_tips.Push(world.arena, world.Find<Node>(dependencies[i]))) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  capture->graph = graph;
  capture->given_graph = given != nullptr;
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = call.thread->serial;
  capture->id = world.next_id++;
  capture->next = world.capture_list;
  world.capture_list = capture;
  ++world.captures;
  graph->capturing = true;
  stream->capture = capture;
  return CUDA_SUCCESS;
}

// All forked streams have joined if all of their last nodes lie before the origin's last nodes.
bool AreJoined(World& world, const Capture* capture, const Vector<Node*>& tips) {
  for (const Node* const tip : tips) {
    bool found = false;
    for (const Node* const last : capture->origin->capture_tips) found = found || DependsOn(world, last, tip);
    if (!found) return false;
  }
  return true;
}
bool IsJoined(World& world, const Capture* capture) {
  for (const Stream* const stream : capture->streams) {
    if (!AreJoined(world, capture, stream->capture_tips)) return false;
  }
  return AreJoined(world, capture, capture->lost_tips);
}

CUresult Info(Call& call, CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, Stream** stream) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  *stream = FindStream(call, handle, &result);
  if (*stream == nullptr) return result;
  // A query: the capture goes on.
  if ((*stream)->legacy && CapturesBlocking(call.world, call.context)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  const Capture* const capture = (*stream)->capture;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (capture == nullptr) return CUDA_SUCCESS;
  *status = capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (id != nullptr) *id = capture->id;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::StreamBeginCapture(Call& call, CUstream stream) {
  return Begin(call, stream, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult api::StreamBeginCapture(Call& call, CUstream stream, CUstreamCaptureMode mode) {
  return Begin(call, stream, nullptr, nullptr, 0, mode);
}

CUresult api::StreamBeginCaptureToGraph(Call& call, CUstream stream, CUgraph handle, const CUgraphNode* dependencies,
                                        const CUgraphEdgeData*, std::size_t count, CUstreamCaptureMode mode) {
  Graph* const graph = call.world.Find<Graph>(handle);
  if (graph == nullptr || graph->capturing || (count != 0 && dependencies == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const Node* const node = call.world.Find<Node>(dependencies[i]);
    if (node == nullptr || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
  }
  return Begin(call, stream, graph, dependencies, count, mode);
}

CUresult api::StreamEndCapture(Call& call, CUstream handle, CUgraph* out) {
  World& world = call.world;
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  Capture* const capture = stream->capture;
  if (capture == nullptr) {
    if (out != nullptr) *out = nullptr;
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  if (capture->origin != stream) {
    Invalidate(capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  // The wrong thread ends the capture as well, but gets no graph.
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != call.thread->serial) {
    result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  } else if (capture->invalidated) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!IsJoined(world, capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  Graph* const graph = capture->graph;
  if (out != nullptr) *out = nullptr;
  graph->capturing = false;
  // A graph whose handle is not returned is destroyed with its capture; a graph of the client's stays.
  if (result == CUDA_SUCCESS && (out != nullptr || capture->given_graph)) {
    if (out != nullptr) *out = ToHandle<CUgraph>(graph);
    if (!capture->given_graph) {
      graph->counted = true;
      world.Count(Kind::Graph, 1);
    }
    capture->given_graph = true;  // the graph survives the capture
  }
  ForgetStream(world, stream);
  return result;
}

CUresult api::StreamIsCapturing(Call& call, CUstream handle, CUstreamCaptureStatus* status) {
  Stream* stream = nullptr;
  return Info(call, handle, status, nullptr, &stream);
}

CUresult api::StreamGetCaptureInfo(Call& call, CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
  Stream* stream = nullptr;
  return Info(call, handle, status, id, &stream);
}

CUresult api::StreamGetCaptureInfo(Call& call, CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, std::size_t* count) {
  Stream* stream = nullptr;
  const CUresult result = Info(call, handle, status, id, &stream);
  if (result != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return result;
  Capture* const capture = stream->capture;
  if (graph != nullptr) *graph = ToHandle<CUgraph>(capture->graph);
  capture->shown.Truncate(0);
  for (const Node* const node : stream->capture_tips) {
    if (!capture->shown.Push(call.world.arena, ToHandle<CUgraphNode>(node))) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (dependencies != nullptr) *dependencies = capture->shown.data();
  if (count != nullptr) *count = capture->shown.size();
  return CUDA_SUCCESS;
}

CUresult api::StreamGetCaptureInfo(Call& call, CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, const CUgraphEdgeData** edges, std::size_t* count) {
  const CUresult result = StreamGetCaptureInfo(call, handle, status, id, graph, dependencies, count);
  if (result == CUDA_SUCCESS && edges != nullptr) *edges = nullptr;
  return result;
}

CUresult api::StreamUpdateCaptureDependencies(Call& call, CUstream handle, CUgraphNode* dependencies, std::size_t count,
                                              unsigned int flags) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count != 0 && dependencies == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  for (std::size_t i = 0; i < count; ++i) {
    const Node* const node = call.world.Find<Node>(dependencies[i]);
    if (node == nullptr || node->graph != stream->capture->graph) return CUDA_ERROR_INVALID_VALUE;
  }
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->capture_tips.Truncate(0);
  for (std::size_t i = 0; i < count; ++i) {
    Node* const node = call.world.Find<Node>(dependencies[i]);
    if (!stream->capture_tips.Contains(node) && !stream->capture_tips.Push(call.world.arena, node)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult api::StreamUpdateCaptureDependencies(Call& call, CUstream handle, CUgraphNode* dependencies, const CUgraphEdgeData*,
                                              std::size_t count, unsigned int flags) {
  return StreamUpdateCaptureDependencies(call, handle, dependencies, count, flags);
}

CUresult api::ThreadExchangeStreamCaptureMode(Call& call, CUstreamCaptureMode* mode) {
  if (mode == nullptr) return call.Undefined(CUDA_ERROR_INVALID_VALUE);
  const CUstreamCaptureMode old = call.thread->capture_mode;
  call.thread->capture_mode = *mode;
  *mode = old;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
