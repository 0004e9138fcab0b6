// SPDX-License-Identifier: MIT
// library_subject.c: makes and destroys one object of one of NVIDIA's libraries, cycle by marked cycle, and reports what the library told
// it.
//
//   Usage   library_subject FILE KIND [CYCLES]      FILE is the library; KIND as in kKinds; default one cycle
//   Exit    0 every cycle succeeded, 1 the last one did not, 2 bad arguments, 77 FILE cannot be loaded or lacks a function
#include <cuaudit/mark.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*make_function)(void **);
typedef int (*destroy_function)(void *);
typedef int (*plan_function)(int *, int, int, int);
typedef int (*destroy_plan_function)(int);

static const struct {
  const char *kind, *make, *destroy;
} kKinds[] = {{"cublas", "cublasCreate_v2", "cublasDestroy_v2"},
              {"cublasLt", "cublasLtCreate", "cublasLtDestroy"},
              {"cusolver", "cusolverDnCreate", "cusolverDnDestroy"},
              {"cusparse", "cusparseCreate", "cusparseDestroy"},
              {"cudnn", "cudnnCreate", "cudnnDestroy"},
              {"nvjpeg", "nvjpegCreateSimple", "nvjpegDestroy"},
              {"cufft", "cufftPlan1d", "cufftDestroy"}};

static int run_cycle(void *make, void *destroy, int is_plan) {
  int status;
  if (is_plan) {
    int plan = 0;
    status = ((plan_function)make)(&plan, 4096, 0x29, 16); /* complex to complex */
    return status != 0 ? status : ((destroy_plan_function)destroy)(plan);
  }
  void *object = NULL;
  status = ((make_function)make)(&object);
  return status != 0 ? status : ((destroy_function)destroy)(object);
}

int main(int argc, char **argv) {
  const long cycles = argc > 3 ? strtol(argv[3], NULL, 10) : 1;
  size_t kind = 0;
  while (argc >= 3 && kind < sizeof(kKinds) / sizeof(kKinds[0]) && strcmp(kKinds[kind].kind, argv[2]) != 0) ++kind;
  if (argc < 3 || kind == sizeof(kKinds) / sizeof(kKinds[0]) || cycles < 1) {
    fprintf(stderr, "usage: library_subject FILE cublas|cublasLt|cusolver|cusparse|cudnn|nvjpeg|cufft [CYCLES]\n");
    return 2;
  }
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  void *make = library == NULL ? NULL : dlsym(library, kKinds[kind].make);
  void *destroy = library == NULL ? NULL : dlsym(library, kKinds[kind].destroy);
  if (make == NULL || destroy == NULL) {
    fprintf(stderr, "library_subject: %s\n", dlerror());
    return 77;
  }
  int status = 0;
  for (long i = 0; i < cycles; ++i) {
    cuaudit_cycle_begin();
    status = run_cycle(make, destroy, strcmp(kKinds[kind].kind, "cufft") == 0);
    cuaudit_report(status == 0 ? 0 : -1);
    cuaudit_cycle_end();
  }
  return status == 0 ? 0 : 1;
}
