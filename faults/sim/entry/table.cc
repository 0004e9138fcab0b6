// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/table.h"

#include "faults/sim/entry/entry.h"

namespace cuaudit::sim {
namespace {

// Every entry point has the answer NOT_SUPPORTED; a row of bindings.def replaces it.
template <CallId id>
struct Bound {
  static constexpr bool kModelled = false;
  static constexpr auto kEntry = &ModelOf<id>::Absent;
};

#define CUAUDIT_BOUND(id, model, needs, modelled)                                                                                  \
  template <>                                                                                                                      \
  struct Bound<CallId::id> {                                                                                                       \
    static constexpr bool kModelled = modelled;                                                                                    \
    static constexpr auto kEntry = &ModelOf<CallId::id>::Entry<Needs::needs, static_cast<ModelOf<CallId::id>::Type*>(api::model)>; \
  };
#define CUAUDIT_SIM(id, model, needs) CUAUDIT_BOUND(id, model, needs, true)
#define CUAUDIT_SIM_REFUSES(id, model, needs) CUAUDIT_BOUND(id, model, needs, false)
#include "faults/sim/entry/bindings.def"
#undef CUAUDIT_SIM_REFUSES
#undef CUAUDIT_SIM
#undef CUAUDIT_BOUND

#define CUAUDIT_SIM_OLD(id)                                        \
  template <>                                                      \
  struct Bound<CallId::id> {                                       \
    static constexpr bool kModelled = true;                        \
    static constexpr auto kEntry = &ModelOf<CallId::id>::Outdated; \
  };
#include "faults/sim/entry/old_bindings.def"
#undef CUAUDIT_SIM_OLD

}  // namespace

const driver::DriverTable kTable = {{
#define CUAUDIT_CALL(id, base, version, per_thread) reinterpret_cast<driver::Entry>(Bound<CallId::id>::kEntry),
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                    },
                                    {
#define CUAUDIT_CALL(id, base, version, per_thread) Bound<CallId::id>::kModelled,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                    }};

}  // namespace cuaudit::sim
