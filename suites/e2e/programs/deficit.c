// SPDX-License-Identifier: MIT
// deficit.c: what programs leave, and what they give back that is not theirs; a definition chooses the program.
//
// stays (STAYS): what a program leaves when nothing fails. Each word does one thing: `stays stream stream released held`.
//
//   stream    open_stream acquires a stream, which stays
//   event     open_event acquires an event, which stays
//   released  a stream that is destroyed
//   held      the primary context is not given back at the end
//   daemon    a thread acquires an event in hold_event and still runs when main returns
//   ended     the same by a thread that is joined
//   child     a child process leaves a stream and is killed; must be the first word
//   fails     the exit status is 3
//
// deficit: programs that give back on a failing path what they did not take, and the same programs repaired; a definition chooses the
// program.
//
//   deficit pop|pop_twice|release|release_twice|null|close_given|close_again|close_anothers wrong|right
//     An application and a library in one program. When a call of the library fails, the library gives back what it did not take. The
//     application has a context of its own current, and holds a reference of the primary context. With release it keeps that reference until
//     the process ends.
//   leaves destroys|tears_down|works_on right · leaves failed_push|own_pop|twice wrong|right (LEAVES)
//     A program works in two contexts, its own and the primary one, with the helpers enter() and leave(). On its failing path it pops its own
//     context by leave(), too, before it destroys it. In the wrong forms the work pops once too often, and takes the program's context.
#if defined(STAYS)
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
#else
#include <cuda.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#if defined(LEAVES)

static const char *form = "";
static int wrong;
static CUcontext own;
static CUcontext primary;

static int failed(CUresult code) { return code != CUDA_SUCCESS; }
static int is(const char *name) { return strcmp(form, name) == 0; }

static int enter(void) { return failed(cuCtxPushCurrent(primary)); }

static void leave(void) {
  CUcontext left = NULL;
  cuCtxPopCurrent(&left);
}

static int work(void) {
  CUdeviceptr memory = 0;
  int status;
  if (enter()) {
    if (wrong && is("failed_push")) leave();
    if (wrong && is("own_pop")) cuCtxPopCurrent(NULL);
    return 1;
  }
  status = failed(cuMemAlloc(&memory, 4096));
  if (!status) cuMemFree(memory);
  leave();
  if (status && wrong && is("twice")) leave();
  return status;
}

static void tear_down(void) { cuCtxDestroy(own); }

int main(int argc, char **argv) {
  int status;
  form = argc > 1 ? argv[1] : "";
  wrong = argc > 2 && strcmp(argv[2], "wrong") == 0;
  if (failed(cuInit(0)) || failed(cuDevicePrimaryCtxRetain(&primary, 0))) return 1;
  if (failed(cuCtxCreate(&own, NULL, 0, 0))) {
    cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  status = work();
  if (status && !wrong) leave();
  if (status && is("works_on") && !enter()) leave();
  if (is("tears_down")) {
    tear_down();
  } else {
    cuCtxDestroy(own);
  }
  cuDevicePrimaryCtxRelease(0);
  return status;
}

#else

static int wrong;
static CUcontext primary;

static int failed(CUresult code) { return code != CUDA_SUCCESS; }

// One piece of work in the primary context.
static int pop(int twice) {
  CUdeviceptr memory = 0;
  int pushed = !failed(cuCtxPushCurrent(primary));
  int status = !pushed || failed(cuMemAlloc(&memory, 4096));
  if (!status) status = failed(cuMemFree(memory));
  if (status && pushed && twice) {
    cuCtxPopCurrent(NULL);
    if (!wrong) return status;
  }
  if (pushed || (wrong && !twice)) cuCtxPopCurrent(NULL);
  return status;
}

// A reference for the time of one piece of work.
static int release(int twice) {
  CUcontext context = NULL;
  CUdeviceptr memory = 0;
  int retained = !failed(cuDevicePrimaryCtxRetain(&context, 0));
  int status = !retained || failed(cuMemAlloc(&memory, 4096));
  if (!status) status = failed(cuMemFree(memory));
  if (status && retained && twice) {
    cuDevicePrimaryCtxRelease(0);
    if (!wrong) return status;
  }
  if (retained || (wrong && !twice)) cuDevicePrimaryCtxRelease(0);
  return status;
}

// Everything that there may be is destroyed.
static int null(void) {
  CUstream stream = NULL;
  CUgraph graph = NULL;
  int status = failed(cuStreamCreate(&stream, 0)) || failed(cuGraphCreate(&graph, 0));
  if (graph != NULL || wrong) cuGraphDestroy(graph);
  if (stream != NULL) cuStreamDestroy(stream);
  return status;
}

// The file is the library's; the standard input is not, and neither is what the application opens meanwhile.
static int close_file(const char *what) {
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int socket = -1;
  CUdeviceptr memory = 0;
  int status = file < 0 || failed(cuMemAlloc(&memory, 4096));
  if (!status) status = failed(cuMemFree(memory));
  if (status && wrong && strcmp(what, "close_given") == 0) close(STDIN_FILENO);
  if (status && wrong && strcmp(what, "close_given") != 0) close(file);
  if (strcmp(what, "close_anothers") == 0) socket = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  close(file);
  if (socket >= 0 && (!status || !wrong)) close(socket);
  return status;
}

int main(int argc, char **argv) {
  const char *const what = argc > 1 ? argv[1] : "";
  CUcontext own = NULL;
  CUdeviceptr memory = 0;
  int status;
  wrong = argc > 2 && strcmp(argv[2], "wrong") == 0;
  if (failed(cuInit(0)) || failed(cuDevicePrimaryCtxRetain(&primary, 0))) return 1;
  if (failed(cuCtxCreate(&own, NULL, 0, 0))) return 1;
  if (strcmp(what, "pop") == 0 || strcmp(what, "pop_twice") == 0) {
    status = pop(strcmp(what, "pop_twice") == 0);
  } else if (strcmp(what, "release") == 0 || strcmp(what, "release_twice") == 0) {
    status = release(strcmp(what, "release_twice") == 0);
  } else if (strcmp(what, "null") == 0) {
    status = null();
  } else {
    status = close_file(what);
  }
  if (!failed(cuMemAlloc(&memory, 64))) cuMemFree(memory);
  cuCtxDestroy(own);
  if (strcmp(what, "release") != 0) cuDevicePrimaryCtxRelease(0);
  return status;
}

#endif
#endif
