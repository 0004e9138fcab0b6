// SPDX-License-Identifier: MIT
// capturing.h: a stream under capture and the graph that the capture becomes.
//
// The constructor creates the stream and begins the capture. The question may end the capture; if it does not, the destructor does, and
// it destroys the graph. A preparation that fails shows in the answer.
#pragma once

#include "suites/contract/question.h"

namespace cuaudit::contract {

struct Capturing {
  explicit Capturing(Asker& asker, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) : a(asker), s(a.StreamCreate()) {
    a.Prepare(a.d.StreamBeginCapture(s, mode));
  }
  ~Capturing() {
    if (g == nullptr) (void)a.d.StreamEndCapture(s, &g);
    if (g != nullptr) (void)a.d.GraphDestroy(g);
  }
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;
  // The answer to whether the stream is captured.
  void ShowStatus() const {
    CUstreamCaptureStatus status{};
    a(a.d.StreamIsCapturing(s, &status), status);
  }
  // The number of nodes; 0 when there is no graph.
  void ShowNodes() const {
    std::size_t count = 0;
    if (g != nullptr) a.Prepare(a.d.GraphGetNodes(g, nullptr, &count));
    a.Value(static_cast<long long>(count));
  }

  Asker& a;
  const CUstream s;
  CUgraph g = nullptr;
};

}  // namespace cuaudit::contract
