/* SPDX-License-Identifier: MIT
 * client_late.c: the runtime called where it is easily forgotten: after a fork, in other threads, from exit handlers and destructors.
 * Usage   client_late [left|left_memory]   leaves by _exit, so that the runtime gives nothing back; left_memory keeps memory
 */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void* memory;

static void say(const char* where, cudaError_t error) { printf("%s %s\n", where, cudaGetErrorName(error)); }

static void* other_thread(void* argument) {
  cudaError_t* const error = argument;
  void* none = NULL;
  error[0] = cudaPeekAtLastError();
  error[1] = cudaMalloc(&none, (size_t)1 << 60);
  error[2] = cudaGetLastError();
  return NULL;
}

static void at_exit(void) {
  say("exit handler", cudaFree(memory));
  fflush(stdout);
}

__attribute__((destructor)) static void destructor(void) {
  void* late = NULL;
  const cudaError_t error = cudaMalloc(&late, 16);
  say("destructor", error == cudaSuccess ? cudaFree(late) : error);
  fflush(stdout);
}

static int leave(int keeps) {
  if (cudaMalloc(&memory, 4096) != cudaSuccess) return 1;
  if (!keeps && cudaFree(memory) != cudaSuccess) return 1;
  _exit(0);
}

int main(int argc, char** argv) {
  cudaError_t errors[3];
  pthread_t thread;
  pid_t child;
  int status = 0;
  if (argc > 1) return leave(strcmp(argv[1], "left_memory") == 0);
  atexit(at_exit);
  say("first", cudaMalloc(&memory, 256));
  say("invalid", cudaMemcpy(memory, memory, 16, (enum cudaMemcpyKind)9));
  if (pthread_create(&thread, NULL, other_thread, errors) != 0 || pthread_join(thread, NULL) != 0) return 1;
  say("other thread before", errors[0]);
  say("other thread", errors[1]);
  say("other thread last", errors[2]);
  say("this thread last", cudaGetLastError());
  fflush(stdout);
  child = fork();
  if (child == 0) {
    void* more = NULL;
    const cudaError_t error = cudaMalloc(&more, 64);
    /* Whatever the driver says in a child that did not exec: an answer, and no crash. */
    _exit(error == cudaSuccess || error == cudaErrorInitializationError ? 0 : 1);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  printf("child %d\n", status);
  return 0;
}
