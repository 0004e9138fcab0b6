// SPDX-License-Identifier: MIT
// forks.c: a program with an open context that makes processes.
// Usage   forks calls|exec PROGRAM|spawn|vfork
//   calls  the child calls the driver it inherited (a context does not survive fork: errors, never a hang) and leaves by _exit
//   exec   the child becomes another driver program
//   spawn  /bin/true by posix_spawn · vfork  /bin/true by vfork and exec
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int child_calls(void) {
  CUdeviceptr memory = 0;
  CUstream another = NULL;
  CUevent event = NULL;
  int refused = (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) + (cuEventCreate(&event, 0) != CUDA_SUCCESS) +
                (cuStreamCreate(&another, 0) != CUDA_SUCCESS);
  return refused == 3 ? 0 : 10 + refused;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  char *truth[] = {"/bin/true", NULL};
  CUcontext context;
  CUstream stream;
  CUdeviceptr memory;
  pid_t child = -1;
  int status = -1;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS || cuStreamCreate(&stream, 0) != CUDA_SUCCESS) return 1;
  fflush(stdout);
  if (strcmp(mode, "calls") == 0 && (child = fork()) == 0) _exit(child_calls());
  if (strcmp(mode, "exec") == 0 && (child = fork()) == 0) {
    execv(argv[2], argv + 2);
    _exit(127);
  }
  if (strcmp(mode, "vfork") == 0 && (child = vfork()) == 0) {
    execv(truth[0], truth);
    _exit(127);
  }
  if (strcmp(mode, "spawn") == 0 && posix_spawn(&child, truth[0], NULL, NULL, truth, environ) != 0) return 2;
  if (child < 0 || waitpid(child, &status, 0) != child) return 2;
  printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  // The parent's own context still works.
  if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS || cuMemFree(memory) != CUDA_SUCCESS || cuStreamSynchronize(stream) != CUDA_SUCCESS) return 3;
  if (cuStreamDestroy(stream) != CUDA_SUCCESS || cuCtxPopCurrent(NULL) != CUDA_SUCCESS) return 3;
  return cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS && WIFEXITED(status) ? 0 : 3;
}
