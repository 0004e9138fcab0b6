// SPDX-License-Identifier: MIT
// forkless.c: while its middle runs, something is the case that a forked child would share with its parent or not have.
// Usage   forkless thread|file|pipe|memory|wiped|child|timer|posix_timer|nothing|...
//   kept        memory that a fork wipes is as it was to the end, and a child of its own finds it wiped
//   taken_back  the same page of memory is one that a fork wipes, and then none: the second child of its own finds it whole
//   droppable   memory that a fork wipes whatever is asked for
//   owned       where the middle fails it waits for what only the process that it began as is sent
//   pid, status, declared      at its end it is another process than at its start: keeps the buffer, ends or reports otherwise
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
