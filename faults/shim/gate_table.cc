// SPDX-License-Identifier: MIT
// gate_table.cc: the gate as a DriverRef, one entry per call.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/gate.h"

namespace cuaudit::faults {
namespace {

using driver::CallId;

template <CallId id, typename Function>
struct Through;

template <CallId id, typename... P>
struct Through<id, CUresult(P...)> {
  static CUresult Call(void* self, P... arguments) { return static_cast<Gate*>(self)->Run<id, P...>(arguments...); }
};

const driver::DriverTable kTable = {{
#define CUAUDIT_CALL(id, base, version, per_thread) \
  reinterpret_cast<driver::Entry>(&Through<CallId::id, driver::CallType<CallId::id>::Function>::Call),
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                    },
                                    {
#define CUAUDIT_CALL(id, base, version, per_thread) true,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                    }};

}  // namespace

driver::DriverRef Driver(Gate* gate) noexcept { return {&kTable, gate}; }

}  // namespace cuaudit::faults
