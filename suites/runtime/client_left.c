/* SPDX-License-Identifier: MIT
 * client_left.c: leaves by _exit, so that the runtime gives nothing back. `client_left memory` keeps memory, `client_left` frees it.
 */
#include <cuda_runtime_api.h>
#include <unistd.h>

int main(int argc, char **argv) {
  void *memory = NULL;
  (void)argv;
  if (cudaMalloc(&memory, 4096) != cudaSuccess) return 1;
  if (argc == 1 && cudaFree(memory) != cudaSuccess) return 1;
  _exit(0);
}
