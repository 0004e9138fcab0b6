// SPDX-License-Identifier: MIT
// client_dlopen.c: looks every entry point up with dlsym in a library opened by name; also built as a static position-independent program.
// Usage   client_dlopen [library [deepbind]]      default libcuda.so.1
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <string.h>

#include "lifecycle.h"

int main(int argc, char **argv) {
  Api api;
  int flags = RTLD_NOW | (argc > 2 && strcmp(argv[2], "deepbind") == 0 ? RTLD_DEEPBIND : 0);
  int status;
  void *library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", flags);
  if (library == NULL) {
    fprintf(stderr, "client_dlopen: %s\n", dlerror());
    return 5;
  }
#define LOOK_UP(name)                                               \
  *(void **)(&api.JOINED(p_, name)) = dlsym(library, SYMBOL(name)); \
  if (api.JOINED(p_, name) == NULL) return 6;
  LIFECYCLE_CALLS(LOOK_UP)
#undef LOOK_UP
  status = lifecycle(&api);
  dlclose(library);
  return status;
}
