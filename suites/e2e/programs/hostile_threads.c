// SPDX-License-Identifier: MIT
// hostile_threads.c: programs whose threads are many, cancelled, left running, on stacks of their own, or all that is left.
// Usage   hostile_threads MODE [loses]      the modes are told in suites/e2e/hostile_rows.h, the story in hostile_story.h
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
