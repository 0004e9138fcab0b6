// SPDX-License-Identifier: MIT
// proc_address_answers.c: prints what both generations of cuGetProcAddress answer to good and bad questions, one line each.
// Story   a line is: generation name version flags: result, status (v2 only), which exported symbol the pointer is, or "null", or
//         "untouched" when the pointer was not written.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>

typedef CUresult (*First)(const char *, void **, int, cuuint64_t);
typedef CUresult (*Second)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static char untouched;

static const char *what(void *pointer) {
  Dl_info info;
  if (pointer == NULL) return "null";
  if (pointer == &untouched) return "untouched";
  return dladdr(pointer, &info) != 0 && info.dli_saddr == pointer ? info.dli_sname : "unknown";
}

int main(void) {
  static const struct {
    const char *name;
    int version;
    cuuint64_t flags;
  } kQuestions[] = {
      {"cuMemAlloc", 3020, 0},           {"cuMemAlloc", 12000, 1},
      {"cuMemAlloc", 99000, 0},          {"cuMemcpyHtoD", 12000, 2},
      {"cuStreamSynchronize", 12000, 2}, {"cuStreamSynchronize", 12000, 0},
      {"cuStreamSynchronize", 6000, 2},  {"cuNoSuchCall", 12000, 0},
      {"cuMemAlloc_v2", 12000, 0},       {"", 0, 0},
      {"cuGraphCreate", 9000, 0},        {"cuMemAlloc", 12000, 7},
      {"cuGraphInstantiate", 11000, 0},  {"cuGraphInstantiate", 12000, 0},
      {"cuCtxCreate", 3020, 0},          {"cuCtxCreate", 11040, 0},
      {"cuGetProcAddress", 12000, 0},
  };
  First first;
  Second second;
  size_t i;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return 5;
  *(void **)(&first) = dlsym(library, "cuGetProcAddress");
  *(void **)(&second) = dlsym(library, "cuGetProcAddress_v2");
  for (i = 0; i < sizeof(kQuestions) / sizeof(kQuestions[0]); ++i) {
    CUdriverProcAddressQueryResult how = (CUdriverProcAddressQueryResult)9;
    void *one = &untouched, *two = &untouched, *three = &untouched;
    CUresult r1 = first(kQuestions[i].name, &one, kQuestions[i].version, kQuestions[i].flags);
    CUresult r2 = second(kQuestions[i].name, &two, kQuestions[i].version, kQuestions[i].flags, &how);
    CUresult r3 = second(kQuestions[i].name, &three, kQuestions[i].version, kQuestions[i].flags, NULL);
    printf("'%s' %d %d: v1 %d %s, v2 %d", kQuestions[i].name, kQuestions[i].version, (int)kQuestions[i].flags, (int)r1, what(one), (int)r2);
    if (r2 == CUDA_SUCCESS) printf(" %d %s", (int)how, what(two));
    printf("%s\n", r3 == r2 && three == two ? "" : ", another answer without a status pointer");
  }
  return 0;
}
