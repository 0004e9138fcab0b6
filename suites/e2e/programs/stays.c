// SPDX-License-Identifier: MIT
// stays.c: what a program leaves when nothing fails. Each word does one thing: `stays stream stream released held`.
//
//   stream    open_stream acquires a stream, which stays
//   event     open_event acquires an event, which stays
//   released  a stream that is destroyed
//   held      the primary context is not given back at the end
//   daemon    a thread acquires an event in hold_event and still runs when main returns
//   ended     the same by a thread that is joined
//   child     a child process leaves a stream and is killed; must be the first word
//   fails     the exit status is 3
#include <cuda.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static CUcontext context;
static sem_t holds;

static int open_stream(void) {
  CUstream stream;
  return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
}

static int open_event(void) {
  CUevent event;
  return cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
}

static int use_stream(void) {
  CUstream stream;
  return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS && cuStreamDestroy(stream) == CUDA_SUCCESS;
}

static void *hold_event(void *argument) {
  CUevent event;
  cuCtxPushCurrent(context);
  cuEventCreate(&event, CU_EVENT_DEFAULT);
  cuCtxPopCurrent(NULL);
  sem_post(&holds);
  while (argument != NULL) pause();
  return NULL;
}

static int hold_in_thread(int joined) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, &hold_event, joined ? NULL : &context) != 0) return 0;
  sem_wait(&holds);
  return (joined ? pthread_join(thread, NULL) : pthread_detach(thread)) == 0;
}

static int start(void) {
  return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

static int lose_in_child(void) {
  const pid_t child = fork();
  int status = 0;
  if (child == 0) {
    if (start()) open_stream();
    raise(SIGKILL);
  }
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

int main(int argc, char **argv) {
  int i, held = 0, status = 0, first = 1;
  sem_init(&holds, 0, 0);
  if (argc > 1 && strcmp(argv[1], "child") == 0) {
    if (!lose_in_child()) return 1;
    first = 2;
  }
  if (!start()) return 1;
  for (i = first; i < argc; ++i) {
    int good = 1;
    if (strcmp(argv[i], "stream") == 0) good = open_stream();
    if (strcmp(argv[i], "event") == 0) good = open_event();
    if (strcmp(argv[i], "released") == 0) good = use_stream();
    if (strcmp(argv[i], "daemon") == 0) good = hold_in_thread(0);
    if (strcmp(argv[i], "ended") == 0) good = hold_in_thread(1);
    if (strcmp(argv[i], "held") == 0) held = 1;
    if (strcmp(argv[i], "fails") == 0) status = 3;
    if (!good) return 2;
  }
  cuCtxSetCurrent(NULL);
  if (!held) cuDevicePrimaryCtxRelease(0);
  return status;
}
