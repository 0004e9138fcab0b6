// SPDX-License-Identifier: MIT
// plugin.c: a shared library linked to libcuda; its host opens it with RTLD_DEEPBIND, so that it prefers its own dependencies.
#include "lifecycle.h"

int run_plugin(void);
int run_plugin(void) {
  static const Api api = {
#define ADDRESS(name) .JOINED(p_, name) = &name,
      LIFECYCLE_CALLS(ADDRESS)
#undef ADDRESS
  };
  return lifecycle(&api);
}
