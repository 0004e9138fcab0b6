// SPDX-License-Identifier: MIT
// own_object.h: whether this code is a library of its own, whose frames are not the program's.
//
//   Threads   safe.
//   Errors    false where the loader does not say.
//   Faults    makes no driver calls.
//   Source    ours. In a static build our frames lie in the program's own file, and are told apart by their names.
#pragma once

namespace cuaudit::harness {

bool IsOwnObject() noexcept;

}  // namespace cuaudit::harness
