// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/driver/call_shape.h"

#include "faults/driver/shape.h"

namespace cuaudit::driver {
namespace {

constexpr Shape kShapes[] = {
#define CUAUDIT_CALL(id, base, version, per_thread) CallType<CallId::id>::kShape,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
};

}  // namespace

const Shape& ShapeOf(CallId id) noexcept { return kShapes[Index(id)]; }

}  // namespace cuaudit::driver
