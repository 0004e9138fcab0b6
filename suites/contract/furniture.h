// SPDX-License-Identifier: MIT
// furniture.h: what questions about calls from the wrong place need: objects of one context, and ways out of it.
//
//   Owns      nothing that it would release: these questions are asked in a process of their own.
//   Threads   one question at a time.
//   Errors    a failing preparation shows in the answer.
//   Faults    makes driver calls.
//   Source    ours.
#pragma once

#include "suites/contract/question.h"

namespace cuaudit::contract {

// A stream, an event and memory of the current context.
struct Furniture {
  explicit Furniture(Asker& a) {
    a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    a.Prepare(a.d.EventCreate(&e, 0));
    a.Prepare(a.d.MemAlloc(&p, 4096));
  }
  CUstream s = nullptr;
  CUevent e = nullptr;
  CUdeviceptr p = 0;
};

// Nothing is current from here on.
inline void Leave(Asker& a) {
  CUcontext popped = nullptr;
  a.Prepare(a.d.CtxPopCurrent(&popped));
}

// Another context is current from here on.
inline void MoveElsewhere(Asker& a) {
  CUcontext c = nullptr;
  a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
}

inline void DoNothing(void*) {}

}  // namespace cuaudit::contract
