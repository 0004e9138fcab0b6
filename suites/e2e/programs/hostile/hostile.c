// SPDX-License-Identifier: MIT
// hostile.c: hostile programs of one thread and of many; a definition chooses the program.
//
// hostile_threads (HOSTILE_THREADS): programs whose threads are many, cancelled, left running, on stacks of their own, or all that is left.
// Usage   hostile_threads MODE [loses]      the modes are told in suites/e2e/hostile_rows.h, the story in hostile_story.h
//
// hostile: programs that behave badly as soon as the allocation in the middle of their lifecycle fails.
// Usage   hostile
// crash|abort|hang|leave|shrug|kill|give_up|half_exit|other|daemon|late_daemon|wiped_daemon|helper|flood|always_crash|always_hang
//                 [FILE]
//   leave    _exit(1) in mid-flight · shrug  exit(0) there · give_up  exit(1) right after the fault
//   other    unwinds, but always ends with status 7 · half_exit  as give_up, with an exit handler that releases half of what there is
//   daemon   leaves a daemon behind that holds the output open and FILE locked, 20 s at most · late_daemon  only after the fault
//   wiped_daemon  its environment is empty · helper  starts a process in a session of its own and waits for it
//   flood    10 MB on stdout · always_*  without any fault
#if defined(HOSTILE_THREADS)
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include "hostile_story.h"

enum { kThousand = 1000, kDetached = 3, kStackBytes = 1 << 17 };

static CUcontext primary;
static pthread_barrier_t everybody;
static atomic_int failures;
static sem_t ready;
static int told;

static int start(pthread_t *thread, void *(*function)(void *)) {
  pthread_attr_t attributes;
  int failed;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  failed = pthread_create(thread, &attributes, function, NULL);
  pthread_attr_destroy(&attributes);
  return failed;
}

static void *one_of_many(void *nothing) {
  CUstream own = NULL;
  if (cuCtxPushCurrent(primary) != CUDA_SUCCESS || cuStreamCreate(&own, 0) != CUDA_SUCCESS) atomic_fetch_add(&failures, 1);
  pthread_barrier_wait(&everybody); /* all streams are there at once */
  if (cuStreamDestroy(own) != CUDA_SUCCESS || cuCtxPopCurrent(NULL) != CUDA_SUCCESS) atomic_fetch_add(&failures, 1);
  return nothing;
}

static int thousand(void) {
  static pthread_t threads[kThousand];
  int status, i;
  if (hold() != 0) return 1;
  cuCtxGetCurrent(&primary);
  pthread_barrier_init(&everybody, NULL, kThousand);
  for (i = 0; i < kThousand; ++i) {
    if (start(&threads[i], &one_of_many) != 0) _exit(kNotAllowed);
  }
  for (i = 0; i < kThousand; ++i) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&everybody);
  status = make_event();
  give_back();
  return failures != 0 ? 9 : status;
}

static void clean_up(void *nothing) {
  (void)nothing;
  give_back();
}

static void *wait_for_the_end(void *nothing) {
  if (hold() != 0) return NULL;
  pthread_cleanup_push(&clean_up, NULL);
  told = make_event();
  sem_post(&ready);
  for (;;) pause();
  pthread_cleanup_pop(1);
  return nothing;
}

static int cancelled(void) {
  pthread_t thread;
  if (start(&thread, &wait_for_the_end) != 0) return 9;
  sem_wait(&ready);
  pthread_cancel(thread);
  pthread_join(thread, NULL);
  return told;
}

static void *call_for_ever(void *nothing) {
  int version;
  sem_post(&ready);
  for (;;) cuDriverGetVersion(&version);
  return nothing;
}

static int left_running(void) {
  pthread_t thread;
  int i, status;
  if (hold() != 0) return 1;
  for (i = 0; i < kDetached; ++i) {
    if (start(&thread, &call_for_ever) != 0) return 9;
    pthread_detach(thread);
    sem_wait(&ready);
  }
  status = make_event();
  give_back();
  return status;
}

static void *tell_and_exit(void *nothing) {
  (void)nothing;
  exit(whole_story());
}

static int last_thread(void) {
  pthread_t thread;
  if (start(&thread, &tell_and_exit) != 0) return 9;
  if (is("main_leaves")) pthread_exit(NULL);
  for (;;) pause();
}

static ucontext_t here, there;
static void tell_there(void) { told = whole_story(); }

static int on_own_stack(void) {
  static char stack[kStackBytes];
  getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = sizeof(stack);
  there.uc_link = &here;
  makecontext(&there, &tell_there, 0);
  return swapcontext(&here, &there) == 0 ? told : 9;
}

static pthread_key_t key;

static void *leave_it_to_the_key(void *nothing) {
  if (hold() != 0) return NULL;
  told = make_event();
  pthread_setspecific(key, &key);
  return nothing;
}

static int key_destructor(void) {
  pthread_t thread;
  if (pthread_key_create(&key, &clean_up) != 0 || start(&thread, &leave_it_to_the_key) != 0) return 9;
  pthread_join(thread, NULL);
  return told;
}

int main(int argc, char **argv) {
  read_arguments(argc, argv);
  sem_init(&ready, 0, 0);
  if (is("thousand")) return thousand();
  if (is("cancelled")) return cancelled();
  if (is("left_running")) return left_running();
  if (is("main_leaves") || is("exits_in_thread")) return last_thread();
  if (is("own_stack")) return on_own_stack();
  if (is("key_destructor")) return key_destructor();
  return 9;
}
#else
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
#endif
