// SPDX-License-Identifier: MIT
#include "harness/lifecycle/own_object.h"

#include <dlfcn.h>
#include <sys/auxv.h>

namespace cuaudit::harness {

bool IsOwnObject() noexcept {
  static const char kHere = 0;
  Dl_info here{};
  Dl_info program{};
  const auto* const entry = reinterpret_cast<const void*>(getauxval(AT_ENTRY));  // NOLINT(performance-no-int-to-ptr)
  return dladdr(&kHere, &here) != 0 && dladdr(entry, &program) != 0 && here.dli_fbase != program.dli_fbase;
}

}  // namespace cuaudit::harness
