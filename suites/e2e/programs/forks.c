// SPDX-License-Identifier: MIT
// forks.c: programs that make processes, or hold what a forked child would share; a definition chooses the program.
//
// forkless (FORKLESS): while its middle runs, something is the case that a forked child would share with its parent or not have.
// Usage   forkless thread|file|pipe|memory|wiped|child|timer|posix_timer|nothing|...
//   kept        memory that a fork wipes is as it was to the end, and a child of its own finds it wiped
//   taken_back  the same page of memory is one that a fork wipes, and then none: the second child of its own finds it whole
//   droppable   memory that a fork wipes whatever is asked for
//   owned       where the middle fails it waits for what only the process that it began as is sent
//   pid, status, declared      at its end it is another process than at its start: keeps the buffer, ends or reports otherwise
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
#if defined(FORKLESS)
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

enum { PAGE = 4096, BYTES = 40 * PAGE, DROPPABLE = 8 /* MAP_DROPPABLE, not in every libc */ };

static int wake[2];

static void *wait_for_byte(void *unused) {
  char byte;
  (void)unused;
  (void)!read(wake[0], &byte, 1);
  return NULL;
}

/* Every other page, up to `places` of them: places of their own. */
static char *wiped_memory(int places) {
  char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(memory, 7, BYTES);
  for (int i = 0; i < places; ++i)
    if (madvise(memory + 2 * i * PAGE, PAGE, MADV_WIPEONFORK) != 0) return NULL;
  return memory;
}

/* One page that neither is like what lies around it nor will be: the layout is the same whether or not a fork wipes it. */
static char *wiped_page(void) {
  char *memory = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mprotect(memory, PAGE, PROT_READ | PROT_WRITE) != 0 || madvise(memory, PAGE, MADV_WIPEONFORK) != 0) return NULL;
  memory[0] = 7;
  return memory;
}

static int child_sees(const char *memory, char byte) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) _exit(memory[0] != byte);
  return waitpid(child, &status, 0) == child && status == 0;
}

static int is_kept(const char *memory) {
  int status = 0;
  if (memory[0] != 7 || memory[2 * PAGE] != 7) return 0;
  pid_t child = fork();
  if (child == 0) _exit(memory[0] != 0 || memory[PAGE] != 7 || memory[2 * PAGE] != 0);
  return waitpid(child, &status, 0) == child && status == 0;
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
  if (strcmp(what, "memory") == 0) memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (strcmp(what, "wiped") == 0 || strcmp(what, "kept") == 0) {
    memory = wiped_memory(strcmp(what, "kept") == 0 ? 2 : BYTES / PAGE / 2);
    if (memory == NULL) return 3;
  }
  if (strcmp(what, "timer") == 0) setitimer(ITIMER_REAL, &day, NULL);
  if (strcmp(what, "posix_timer") == 0) clocked = timer_create(CLOCK_MONOTONIC, NULL, &clock) == 0;
  if (strcmp(what, "taken_back") == 0 && (memory = wiped_page()) == NULL) return 3;
  if (strcmp(what, "droppable") == 0) {
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, DROPPABLE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 5;
  }
  failed = cuMemAlloc(&buffer, 4096) != CUDA_SUCCESS;
  while (failed && strcmp(what, "owned") == 0 && getpid() != began) pause();
  if (clocked) timer_delete(clock);
  setitimer(ITIMER_REAL, &none, NULL);
  if (strcmp(what, "kept") == 0 && !is_kept(memory)) return 4;
  if (strcmp(what, "taken_back") == 0) {
    if (!child_sees(memory, 0) || madvise(memory, PAGE, MADV_KEEPONFORK) != 0) return 4;
    if (!failed) cuMemFree(buffer);
    failed = cuMemAlloc(&buffer, 4096) != CUDA_SUCCESS;
    if (!child_sees(memory, 7)) return 4;
  }
  if (memory != NULL) munmap(memory, BYTES);
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
#else
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
#endif
