// SPDX-License-Identifier: MIT
// hostile.c: programs that behave badly as soon as the allocation in the middle of their lifecycle fails.
// Usage   hostile
// crash|abort|hang|leave|shrug|kill|give_up|half_exit|other|daemon|late_daemon|wiped_daemon|helper|flood|always_crash|always_hang
//                 [FILE]
//   leave    _exit(1) in mid-flight · shrug  exit(0) there · give_up  exit(1) right after the fault
//   other    unwinds, but always ends with status 7 · half_exit  as give_up, with an exit handler that releases half of what there is
//   daemon   leaves a daemon behind that holds the output open and FILE locked, 20 s at most · late_daemon  only after the fault
//   wiped_daemon  its environment is empty · helper  starts a process in a session of its own and waits for it
//   flood    10 MB on stdout · always_*  without any fault
#include <cuda.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *mode = "", *locked;

static CUcontext context;
static CUstream stream;
static CUevent event;

static int is(const char *name) { return strcmp(mode, name) == 0; }

static void wait_long(void) {
  char *words[] = {"sleep", "20", NULL}, *nothing[] = {NULL};
  if (is("wiped_daemon")) execve("/bin/sleep", words, nothing);
  alarm(20);
  for (;;) pause();
}

/* A session of its own, and an orphan: nothing but who started it leads from the program to it. Returns when it holds the lock. */
static void leave_daemon(void) {
  int ends[2];
  char byte;
  pid_t child;
  if (pipe(ends) != 0 || (child = fork()) < 0) exit(2);
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    if (locked != NULL && flock(open(locked, O_RDWR | O_CREAT, 0600), LOCK_EX) != 0) _exit(2);
    if (write(ends[1], "r", 1) != 1) _exit(2);
    close(ends[0]);
    close(ends[1]);
    wait_long();
  }
  close(ends[1]);
  if (waitpid(child, NULL, 0) != child || read(ends[0], &byte, 1) != 1) exit(2);
  close(ends[0]);
}

static void help(void) {
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    _exit(0);
  }
  if (child < 0 || waitpid(child, NULL, 0) != child) exit(2);
}

static void misbehave(void) {
  if (is("late_daemon")) leave_daemon();
  if (is("crash")) raise(SIGSEGV);
  if (is("abort")) abort();
  while (is("hang")) pause();
  if (is("leave")) _exit(1);
  if (is("shrug")) exit(0);
  if (is("kill")) kill(getpid(), SIGKILL);
  if (is("give_up") || is("half_exit")) exit(1);
}

static void half(void) { cuEventDestroy(event); }

static void flood(void) {
  static char line[1024];
  int i;
  memset(line, 'x', sizeof(line));
  line[sizeof(line) - 1] = '\n';
  for (i = 0; i < 10 * 1024; ++i) fwrite(line, 1, sizeof(line), stdout);
}

int main(int argc, char **argv) {
  CUdeviceptr memory;
  int status = 0;
  if (argc > 1) mode = argv[1];
  if (argc > 2) locked = argv[2];
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS) return 1;
  if (cuStreamCreate(&stream, 0) != CUDA_SUCCESS) {
    cuCtxDestroy(context);
    return 1;
  }
  if (is("half_exit") && (cuEventCreate(&event, 0) != CUDA_SUCCESS || atexit(&half) != 0)) return 2;
  if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) {
    misbehave();
    status = 1;
  } else {
    cuMemFree(memory);
  }
  if (is("always_crash")) raise(SIGSEGV);
  while (is("always_hang")) pause();
  if (is("daemon") || is("wiped_daemon")) leave_daemon();
  if (is("helper")) help();
  if (is("flood")) flood();
  cuStreamDestroy(stream);
  cuCtxDestroy(context);
  return is("other") ? 7 : status;
}
