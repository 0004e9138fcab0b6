// SPDX-License-Identifier: MIT
// client_proc_address.c: gets every entry point from cuGetProcAddress, first or second generation.
// Usage   client_proc_address 1|2 FLAGS
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include "lifecycle.h"

typedef CUresult (*First)(const char *, void **, int, cuuint64_t);
typedef CUresult (*Second)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

int main(int argc, char **argv) {
  Api api;
  First first;
  Second second;
  int generation = argc > 1 ? atoi(argv[1]) : 2;
  cuuint64_t flags = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return 5;
  *(void **)(&first) = dlsym(library, "cuGetProcAddress");
  *(void **)(&second) = dlsym(library, "cuGetProcAddress_v2");
  if (first == NULL || second == NULL) return 6;
#define ASK(name)                                                                                                     \
  {                                                                                                                   \
    CUdriverProcAddressQueryResult how = CU_GET_PROC_ADDRESS_SUCCESS;                                                 \
    void **where = (void **)(&api.JOINED(p_, name));                                                                  \
    CUresult answer = generation == 1 ? first(#name, where, 12000, flags) : second(#name, where, 12000, flags, &how); \
    if (answer != CUDA_SUCCESS || how != CU_GET_PROC_ADDRESS_SUCCESS || *where == NULL) {                             \
      fprintf(stderr, "client_proc_address: %s: %d %d\n", #name, (int)answer, (int)how);                              \
      return 7;                                                                                                       \
    }                                                                                                                 \
  }
  LIFECYCLE_CALLS(ASK)
#undef ASK
  return lifecycle(&api);
}
