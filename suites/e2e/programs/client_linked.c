// SPDX-License-Identifier: MIT
// client_linked.c: a program linked to libcuda at build time; built lazily bound, bound at once, with DT_RUNPATH and with DT_RPATH
// elsewhere, and with AddressSanitizer, which looks for leaks when it ends.
// Usage   client_linked [leak]      with "leak" it loses 100 bytes of its own, once
#include <stdlib.h>
#include <string.h>

#include "lifecycle.h"

static void *volatile kept;

int main(int argc, char **argv) {
  static const Api api = {
#define ADDRESS(name) .JOINED(p_, name) = &name,
      LIFECYCLE_CALLS(ADDRESS)
#undef ADDRESS
  };
  if (argc > 1 && strcmp(argv[1], "leak") == 0) {
    kept = malloc(100);
    if (kept != NULL) memset(kept, 1, 100);
    kept = NULL;
  }
  return lifecycle(&api);
}
