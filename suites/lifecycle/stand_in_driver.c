/* SPDX-License-Identifier: MIT
 * stand_in_driver.c: a preload that makes a test program of lifecycles take the drop-in library, with the simulated driver behind it, for a
 * genuine driver. The drop-in writes the journal of the `cuaudit run` around it: every call that would reach a GPU's driver. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void stand_in(void) {
  const char *const path = getenv("CUAUDIT_STAND_IN");
  char options[4096];
  if (path == NULL) return;
  void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  int (*const init)(unsigned) = library == NULL ? NULL : (int (*)(unsigned))dlsym(library, "cuInit");
  /* The drop-in reads its own options at its first call. */
  if (init == NULL || init(0) != 0) {
    fprintf(stderr, "stand_in_driver: %s: expected a drop-in library\n", path);
    _Exit(2);
  }
  snprintf(options, sizeof(options), "driver=real;real_driver=%s", path);
  setenv("CUAUDIT_OPTIONS", options, 1);
  unsetenv("CUAUDIT_STAND_IN");
  unsetenv("LD_PRELOAD");
}
