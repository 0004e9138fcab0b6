// SPDX-License-Identifier: MIT
// reopen.c: closes the driver, opens it again, and still calls it from an exit handler and from a destructor.
#include <dlfcn.h>
#include <stdlib.h>

#include "lifecycle.h"

static CUresult (*version_of)(int *);

static void ask(const char *when) {
  int version = 0;
  CUresult result = version_of == NULL ? CUDA_ERROR_NOT_FOUND : version_of(&version);
  printf("%s %d\n", when, result == CUDA_SUCCESS && version > 0);
  fflush(stdout);
}

static void at_exit(void) { ask("atexit"); }

__attribute__((destructor)) static void at_end(void) { ask("destructor"); }

int main(void) {
  int round, status = 0;
  for (round = 0; round < 2; ++round) {
    Api api;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return 5;
#define LOOK_UP(name) *(void **)(&api.JOINED(p_, name)) = dlsym(library, SYMBOL(name));
    LIFECYCLE_CALLS(LOOK_UP)
#undef LOOK_UP
    *(void **)(&version_of) = dlsym(library, "cuDriverGetVersion");
    if (round == 0) atexit(&at_exit);
    status |= lifecycle(&api);
    dlclose(library);
  }
  return status;
}
