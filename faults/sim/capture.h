// SPDX-License-Identifier: MIT
// capture.h: stream capture: which streams take part, what a new node depends on, and what is forbidden meanwhile.
//
//   Owns      a Capture from cuStreamBeginCapture to cuStreamEndCapture, and the graph until it is handed out.
//   Threads   the world's lock is held by every caller.
//   Errors    STREAM_CAPTURE_* as the driver documents them; a forbidden act invalidates the capture.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, cuThreadExchangeStreamCaptureMode and cuStreamBeginCapture.
#pragma once

#include "faults/sim/graph.h"

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
  Vector<CUgraphNode> shown;  // what cuStreamGetCaptureInfo points at
};

// Called for potentially unsafe calls while anything is captured.
CUresult RefuseUnsafe(World& world, const Thread* thread) noexcept;
bool CapturesBlocking(const World& world, const Context* context) noexcept;
// Work on the legacy stream would wait for a captured blocking stream.
CUresult RefuseImplicit(World& world, const Context* context) noexcept;
// Adds what the stream would have executed. The stream is capturing.
CUresult CaptureWork(World& world, Stream* stream, CUgraphNodeType type, const Work& work) noexcept;
// The node is what the stream would do next.
CUresult MoveTip(World& world, Stream* stream, Node* node) noexcept;
CUresult CaptureRecord(World& world, Stream* stream, Event* event) noexcept;
CUresult CaptureWait(World& world, Stream* stream, Event* event) noexcept;
// A node that records or waits for an event outside the capture; ILLEGAL_STATE where nothing is captured.
CUresult CaptureExternal(World& world, Stream* stream, WorkType type, CUevent event) noexcept;
// The stream or event is about to be destroyed.
void ForgetStream(World& world, Stream* stream) noexcept;
void ForgetEvent(World& world, Event* event) noexcept;
void Invalidate(Capture* capture) noexcept;

}  // namespace cuaudit::sim
