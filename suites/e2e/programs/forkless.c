// SPDX-License-Identifier: MIT
// forkless.c: while its middle runs, something is the case that a forked child would share with its parent or not have.
// Usage   forkless thread|file|pipe|memory|wiped|child|timer|posix_timer|nothing
//         forkless owned     where the middle fails it waits for what only the process that it began as is sent
//         forkless pid|status|declared     at its end it is another process than at its start: keeps the buffer, ends or reports otherwise
#include <cuaudit/mark.h>
#include <cuda.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int wake[2];

static void *wait_for_byte(void *unused) {
  char byte;
  (void)unused;
  (void)!read(wake[0], &byte, 1);
  return NULL;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "nothing";
  struct itimerval day = {{0, 0}, {86400, 0}}, none = {{0, 0}, {0, 0}};
  pthread_t thread;
  pid_t child = 0;
  void *memory = NULL;
  pid_t began = getpid();
  int file = -1, threaded = 0, failed, other;
  CUcontext context;
  CUdeviceptr buffer = 0;
  timer_t clock;
  int clocked = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS) return 1;
  if (strcmp(what, "thread") == 0 || strcmp(what, "pipe") == 0 || strcmp(what, "child") == 0) {
    if (pipe(wake) != 0) return 2;
    if (strcmp(what, "thread") == 0) threaded = pthread_create(&thread, NULL, wait_for_byte, NULL) == 0;
    if (strcmp(what, "child") == 0 && (child = fork()) == 0) {
      wait_for_byte(NULL);
      _exit(0);
    }
  }
  if (strcmp(what, "file") == 0) file = open(argv[0], O_RDONLY);
  if (strcmp(what, "memory") == 0) memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (strcmp(what, "wiped") == 0) {
    memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (madvise(memory, 4096, MADV_WIPEONFORK) != 0) return 3;
  }
  if (strcmp(what, "timer") == 0) setitimer(ITIMER_REAL, &day, NULL);
  if (strcmp(what, "posix_timer") == 0) clocked = timer_create(CLOCK_MONOTONIC, NULL, &clock) == 0;
  failed = cuMemAlloc(&buffer, 4096) != CUDA_SUCCESS;
  while (failed && strcmp(what, "owned") == 0 && getpid() != began) pause();
  if (clocked) timer_delete(clock);
  setitimer(ITIMER_REAL, &none, NULL);
  if (memory != NULL) munmap(memory, 4096);
  if (file >= 0) close(file);
  if (wake[1] != 0) {
    (void)!write(wake[1], "", 1);
    if (threaded) pthread_join(thread, NULL);
    if (child > 0) waitpid(child, NULL, 0);
    close(wake[0]);
    close(wake[1]);
  }
  other = getpid() != began;
  if (!failed && !(other && strcmp(what, "pid") == 0)) cuMemFree(buffer);
  cuCtxDestroy(context);
  if (strcmp(what, "declared") == 0) cuaudit_report(failed || other ? 2 : 0);
  return other && strcmp(what, "status") == 0 ? 7 : failed;
}
