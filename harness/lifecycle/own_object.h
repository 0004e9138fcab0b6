// SPDX-License-Identifier: MIT
// own_object.h: whether cuaudit's code is in a shared library of its own, whose frames are not the program's.
//
//   Errors    false when the loader does not say.
//
// In a static build cuaudit's frames lie in the program's own file and are recognised by their names.
#pragma once

namespace cuaudit::harness {

bool IsOwnObject() noexcept;

}  // namespace cuaudit::harness
