/* SPDX-License-Identifier: MIT
 * bench_client.c: the shortest life of a driver program: load it, cuInit, leave. */
#include <dlfcn.h>

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == 0) return 1;
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  return init == 0 || init(0) != 0;
}
