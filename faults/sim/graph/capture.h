// SPDX-License-Identifier: MIT
// capture.h: stream capture: which streams take part, what a new node depends on, and which calls are forbidden meanwhile.
//
//   Owns      a Capture from cuStreamBeginCapture to cuStreamEndCapture, and its graph until that is handed out.
//   Threads   the caller holds the world's lock.
//   Errors    STREAM_CAPTURE_* as the driver documents them. A forbidden call invalidates the capture.
//   Source    CUDA Driver API 13.0, cuThreadExchangeStreamCaptureMode and cuStreamBeginCapture.
#pragma once

#include "faults/sim/graph/graph.h"

namespace cuaudit::sim {

struct Capture {
  Capture* next = nullptr;
  Graph* graph = nullptr;
  Stream* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool given_graph = false;  // cuStreamBeginCaptureToGraph
  bool invalidated = false;
  std::uint64_t id = 0;
  std::uint64_t thread = 0;
  Vector<Stream*> streams;
  Vector<Event*> events;
  Vector<Node*> lost_tips;    // last nodes of destroyed streams that had joined the capture
  Vector<CUgraphNode> shown;  // the array that cuStreamGetCaptureInfo returns
};

// Called for potentially unsafe calls while a stream is captured.
CUresult RefuseUnsafe(World& world, const Thread* thread) noexcept;
bool CapturesBlocking(const World& world, const Context* context) noexcept;
// Refuses work on the legacy stream that would wait for a captured blocking stream.
CUresult RefuseImplicit(World& world, const Context* context) noexcept;
// Adds a node instead of executing the work. Requires that the stream is capturing.
CUresult CaptureWork(World& world, Stream* stream, CUgraphNodeType type, const Work& work) noexcept;
// Makes `node` the only dependency of the stream's next node.
CUresult MoveTip(World& world, Stream* stream, Node* node) noexcept;
CUresult CaptureRecord(World& world, Stream* stream, Event* event) noexcept;
CUresult CaptureWait(World& world, Stream* stream, Event* event) noexcept;
// Adds a node that records or waits for an event outside the capture. ILLEGAL_STATE if nothing is captured.
CUresult CaptureExternal(World& world, Stream* stream, WorkType type, CUevent event) noexcept;
// Call these before the stream or event is destroyed.
void ForgetStream(World& world, Stream* stream) noexcept;
void ForgetEvent(World& world, Event* event) noexcept;
void Invalidate(Capture* capture) noexcept;

}  // namespace cuaudit::sim
