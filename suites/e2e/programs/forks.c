// SPDX-License-Identifier: MIT
// forks.c: programs that make processes; a definition chooses the program.
//
//   forks calls|exec PROGRAM|spawn|vfork      has an open context
//     calls    the child calls the driver it inherited (a context does not survive fork: errors, never a hang) and leaves by _exit
//     exec     the child becomes another driver program
//     spawn    /bin/true by posix_spawn · vfork  /bin/true by vfork and exec
//   children WAY STORY (CHILDREN)      leaves all its driver work to children it forks; its status is that of the last one
//     WAY      how a child ends: exit|_exit|_Exit|quick_exit|syscall|kill|exec (becomes /bin/true)|vfork (a child of it does _exit first)
//     STORY    careful  gives everything back · loses  loses its stream when the event is refused, and works on
//              keeps    holds its primary context and a stream until it ends, without a fault too
//              server   three careful children, one after the other
#include <cuda.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(CHILDREN)

static const char *way, *story;

static int is(const char *what, const char *name) { return strcmp(what, name) == 0; }

static int work(void) {
  CUcontext context;
  CUstream stream = NULL, kept = NULL;
  CUevent event = NULL;
  CUdeviceptr memory = 0;
  int failed = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) {
    cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  if (is(story, "keeps") && cuStreamCreate(&kept, 0) != CUDA_SUCCESS) failed = 1;
  if (cuStreamCreate(&stream, 0) != CUDA_SUCCESS) failed = 1, stream = NULL;
  if (cuMemAlloc(&memory, 4096) != CUDA_SUCCESS) failed = 1, memory = 0;
  if (!failed && cuEventCreate(&event, 0) != CUDA_SUCCESS) {
    failed = 1;
    event = NULL;
    if (is(story, "loses")) stream = NULL;
  }
  if (event != NULL) cuEventDestroy(event);
  if (stream != NULL) cuStreamDestroy(stream);
  if (memory != 0) cuMemFree(memory);
  cuCtxPopCurrent(NULL);
  if (!is(story, "keeps")) cuDevicePrimaryCtxRelease(0);
  return failed;
}

static void leave(int status) {
  char *truth[] = {"/bin/true", NULL};
  pid_t child;
  if (is(way, "vfork") && (child = vfork()) == 0) _exit(0);
  if (is(way, "_exit") || is(way, "vfork")) _exit(status);
  if (is(way, "_Exit")) _Exit(status);
  if (is(way, "quick_exit")) quick_exit(status);
  if (is(way, "syscall")) syscall(SYS_exit_group, status);
  if (is(way, "kill")) kill(getpid(), SIGKILL);
  if (is(way, "exec")) execv(truth[0], truth);
  exit(status);
}

int main(int argc, char **argv) {
  int rounds, status = 0;
  if (argc < 3) return 2;
  way = argv[1];
  story = argv[2];
  for (rounds = is(story, "server") ? 3 : 1; rounds != 0; --rounds) {
    const pid_t child = fork();
    if (child == 0) leave(work());
    if (child < 0 || waitpid(child, &status, 0) != child) return 2;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : is(way, "kill") ? 0 : 3;
}

#else

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

#endif
