// SPDX-License-Identifier: MIT
// furniture.h: objects of one context, and ways to leave it, for questions about calls made in the wrong context.
//
// Nothing is released, because each of these questions is asked in a process of its own. A preparation that fails shows in the answer.
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

// Makes no context current.
inline void Leave(Asker& a) {
  CUcontext popped = nullptr;
  a.Prepare(a.d.CtxPopCurrent(&popped));
}

// Makes another context current.
inline void MoveElsewhere(Asker& a) {
  CUcontext c = nullptr;
  a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
}

inline void DoNothing(void*) {}

}  // namespace cuaudit::contract
