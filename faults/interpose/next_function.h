// SPDX-License-Identifier: MIT
// next_function.h: the function that the program would have called without this library.
#pragma once

#include <dlfcn.h>

namespace cuaudit::faults {

template <typename Function>
Function* Next(Function** known, const char* name) noexcept {
  Function* next = __atomic_load_n(known, __ATOMIC_RELAXED);
  if (next == nullptr) {
    next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    __atomic_store_n(known, next, __ATOMIC_RELAXED);
  }
  return next;
}

}  // namespace cuaudit::faults
