// SPDX-License-Identifier: MIT
// idle.c: linked to libcuda, and calls nothing of it, or only asks for its version.
// Usage   idle [version]
#include <cuda.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  int version = 0;
  if (argc > 1 && strcmp(argv[1], "version") == 0 && cuDriverGetVersion(&version) != CUDA_SUCCESS) return 1;
  printf("idle\n");
  return 0;
}
