// SPDX-License-Identifier: MIT
// client_linked.c: a program linked to libcuda at build time; built lazily bound, bound at once, with DT_RUNPATH and with DT_RPATH
// elsewhere.
#include "lifecycle.h"

int main(void) {
  static const Api api = {
#define ADDRESS(name) .JOINED(p_, name) = &name,
      LIFECYCLE_CALLS(ADDRESS)
#undef ADDRESS
  };
  return lifecycle(&api);
}
