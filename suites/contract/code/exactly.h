// SPDX-License-Identifier: MIT
// exactly.h: calls one version of an entry point, not the one that the macros of cuda.h choose. The file
// that includes it defines __CUDA_API_VERSION_INTERNAL first.
#pragma once

#include "faults/driver/call_shape.h"
#include "suites/contract/question.h"

namespace cuaudit::contract {

// Calls exactly this version of an entry point.
template <driver::CallId id, typename... A>
CUresult Exactly(const Asker& a, A... arguments) {
  using Entry = typename driver::CallType<id>::Entry;
  return reinterpret_cast<Entry*>(a.d.table->entry[driver::Index(id)])(a.d.self, arguments...);
}

}  // namespace cuaudit::contract
