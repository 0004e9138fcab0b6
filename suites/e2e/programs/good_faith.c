// SPDX-License-Identifier: MIT
// good_faith.c: programs that do what they can, or have nothing to do; a definition chooses the program.
//
// silent (SILENT): programs that do nothing wrong, whatever fails.
// Usage   silent retry|optional|atexit|shared · silent cache N
//   retry     an allocation that fails is tried again after trimming: the fault is absorbed
//   optional  a feature that the driver refuses is done without
//   atexit    everything is given back in an exit handler
//   shared    two users of one stream; the last one destroys it
//   cache     N rounds over a stream that is made once and lives as long as the process
//
// good_faith: programs that do what they can after a failure and look as if they did not; each has a neighbour that really does not.
// Usage   good_faith STORY [CYCLES]
//   upload       pinned memory under a copy: waited for on every way back; upload_hasty: not waited for when the work failed
//   handover     two streams, with a wait of the host between them; handover_blind: reports success whatever the wait answers
//   context      a context of its own takes the rest along; context_callers: the same in the primary context
//   popped       a context that was popped, or tried to be, goes with its own destruction
//   object       memory of a user object, freed when its launch is over; object_lost: forgotten when the object cannot be made
//   leaves       calls _exit after a failure; a user object, whose launch nobody waited for, does not outlast that
//   signal       after a wait that was refused the program waits for what a host function says
//   modules      each marked cycle loads a module and keeps it; modules_once: only the first one does
#if defined(SILENT)
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

typedef struct Shared {
  CUstream stream;
  int users;
} Shared;

static CUcontext context;
static CUstream cached;
static CUdeviceptr held;

static void drop(Shared *shared) {
  if (--shared->users == 0) cuStreamDestroy(shared->stream);
}

static void leave(void) {
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
}

static void at_exit(void) {
  if (held != 0) cuMemFree(held);
  leave();
}

static int rounds(int n) {
  int i;
  for (i = 0; i < n; ++i) {
    CUdeviceptr memory;
    if (cached == NULL && cuStreamCreate(&cached, 0) != CUDA_SUCCESS) return 1;
    if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) return 1;
    cuMemFree(memory);
  }
  return 0;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  int status = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) {
    cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  if (strcmp(mode, "atexit") == 0) {
    atexit(&at_exit);
    if (cuMemAlloc(&held, 64) != CUDA_SUCCESS) held = 0;
    exit(held == 0);
  }
  if (strcmp(mode, "retry") == 0) {
    if (cuMemAlloc(&held, 64) != CUDA_SUCCESS && cuMemAlloc(&held, 64) != CUDA_SUCCESS) held = 0;
    status = held == 0;
    if (held != 0) cuMemFree(held);
  }
  if (strcmp(mode, "optional") == 0 && cuMemAllocManaged(&held, 64, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS) cuMemFree(held);
  if (strcmp(mode, "cache") == 0) status = rounds(argc > 2 ? atoi(argv[2]) : 3);
  if (strcmp(mode, "shared") == 0) {
    Shared shared = {NULL, 2};
    status = cuStreamCreate(&shared.stream, 0) != CUDA_SUCCESS;
    if (status == 0) drop(&shared);
    if (status == 0) drop(&shared);
  }
  leave();
  return status;
}
#else
#include <cuaudit/mark.h>
#include <cuda.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBytes = 4096 };

static CUcontext context;
static CUstream first, second;

static int failed(CUresult result) { return result != CUDA_SUCCESS; }

static int upload(int hasty) {
  void *pinned = NULL;
  CUdeviceptr memory = 0;
  int bad = failed(cuMemAllocHost(&pinned, kBytes)) || failed(cuMemAlloc(&memory, kBytes));
  int queued = 0;
  if (!bad) {
    queued = !failed(cuMemcpyHtoDAsync(memory, pinned, kBytes / 2, first));
    bad = !queued || failed(cuMemsetD8Async(memory + kBytes / 2, 0, kBytes / 2, first));
  }
  if (queued && !(hasty && bad)) bad |= failed(cuStreamSynchronize(first));
  if (pinned != NULL) bad |= failed(cuMemFreeHost(pinned));
  if (memory != 0) bad |= failed(cuMemFree(memory));
  return bad;
}

static int handover(int blind) {
  CUdeviceptr memory = 0;
  CUresult code = cuMemAlloc(&memory, kBytes);
  if (failed(code)) return 1;
  code = cuMemsetD8Async(memory, 1, kBytes, first);
  if (!failed(code)) {
    code = cuStreamSynchronize(first);
    if (blind) code = CUDA_SUCCESS;
    cuMemsetD8Async(memory, 2, kBytes, second); /* on the way back: no half of a result stays */
  }
  if (failed(cuMemFree(memory))) return 1;
  return failed(code);
}

static int make_context(CUcontext *own) {
#if CUDA_VERSION >= 13000
  return failed(cuCtxCreate(own, NULL, 0, 0));
#else
  return failed(cuCtxCreate(own, 0, 0));
#endif
}

static int use_context(int callers) {
  CUcontext own = NULL;
  CUstream stream = NULL;
  CUevent event = NULL;
  if (!callers && make_context(&own)) return 1;
  int bad = failed(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) || failed(cuEventCreate(&event, CU_EVENT_DEFAULT));
  if (!bad) bad = failed(cuEventRecord(event, stream));
  if (!bad) bad = failed(cuEventDestroy(event)) | failed(cuStreamDestroy(stream));
  if (!callers) bad |= failed(cuCtxDestroy(own));
  return bad;
}

static int popped(void) {
  CUcontext own = NULL, top = NULL;
  if (make_context(&own)) return 1;
  int bad = failed(cuCtxPopCurrent(&top)) || failed(cuCtxPushCurrent(own)) || failed(cuCtxPopCurrent(&top));
  return bad | failed(cuCtxDestroy(own));
}

static int object(int loses) {
  CUgraph graph = NULL;
  CUgraphExec executable = NULL;
  CUuserObject object = NULL;
  CUdeviceptr memory = 0;
  if (failed(cuGraphCreate(&graph, 0))) return 1;
  void *data = malloc(kBytes);
  int bad = failed(cuUserObjectCreate(&object, data, free, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  if (bad && !loses) free(data);
  if (!bad) {
    bad = failed(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    if (bad) cuUserObjectRelease(object, 1);
  }
  if (!bad) bad = failed(cuGraphInstantiateWithFlags(&executable, graph, 0));
  bad |= failed(cuGraphDestroy(graph));
  if (!bad) {
    bad = failed(cuGraphLaunch(executable, first)) || failed(cuMemAlloc(&memory, kBytes)) || failed(cuStreamSynchronize(first));
    if (memory != 0) bad |= failed(cuMemFree(memory));
  }
  if (executable != NULL) bad |= failed(cuGraphExecDestroy(executable));
  return bad;
}

static int leaving;

static void CUDA_CB end_object(void *data) {
  if (leaving) abort();  // a destructor may lock what the thread that calls _exit has locked
  free(data);
}

static int leaves(void) {
  CUgraph graph = NULL;
  CUgraphExec executable = NULL;
  CUuserObject object = NULL;
  CUdeviceptr memory = 0;
  if (failed(cuGraphCreate(&graph, 0))) return 1;
  void *data = malloc(kBytes);
  int bad = failed(cuUserObjectCreate(&object, data, end_object, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  if (bad) free(data);
  if (!bad) {
    bad = failed(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    if (bad) cuUserObjectRelease(object, 1);
  }
  if (!bad) bad = failed(cuGraphInstantiateWithFlags(&executable, graph, 0)) || failed(cuGraphLaunch(executable, first));
  if (executable != NULL) bad |= failed(cuGraphExecDestroy(executable));
  bad |= failed(cuGraphDestroy(graph));
  if (!bad && failed(cuMemAlloc(&memory, kBytes))) {
    leaving = 1;
    _exit(1);
  }
  if (!bad) bad = failed(cuStreamSynchronize(first)) | failed(cuMemFree(memory));
  return bad;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int said;

static void CUDA_CB say(void *unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  said = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
}

static int wait_for_signal(void) {
  if (failed(cuLaunchHostFunc(first, say, NULL))) return 1;
  const int bad = failed(cuStreamSynchronize(first));
  pthread_mutex_lock(&mutex);
  while (!said) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
  return bad;
}

static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry none()\n{\n ret;\n}\n";

static int load_in_cycles(int cycles, int once) {
  int bad = 0;
  for (int i = 0; i < cycles; ++i) {
    CUmodule module = NULL;
    CUstream stream = NULL;
    cuaudit_cycle_begin();
    int wrong = (i == 0 || !once) && failed(cuModuleLoadData(&module, ptx));
    if (!wrong) wrong = failed(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) || failed(cuStreamDestroy(stream));
    bad |= wrong;
    cuaudit_cycle_end();
  }
  return bad;
}

int main(int argc, char **argv) {
  const char *story = argc > 1 ? argv[1] : "";
  const int cycles = argc > 2 ? atoi(argv[2]) : 3;
  int bad = 0;
  if (failed(cuInit(0)) || failed(cuDevicePrimaryCtxRetain(&context, 0))) return 1;
  if (failed(cuCtxSetCurrent(context))) bad = 1;
  if (!bad) bad = failed(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  if (!bad && failed(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING))) {
    cuStreamDestroy(first);
    bad = 1;
  }
  if (!bad) {
    if (strncmp(story, "upload", 6) == 0) bad = upload(strcmp(story, "upload_hasty") == 0);
    if (strncmp(story, "handover", 8) == 0) bad = handover(strcmp(story, "handover_blind") == 0);
    if (strncmp(story, "context", 7) == 0) bad = use_context(strcmp(story, "context_callers") == 0);
    if (strcmp(story, "popped") == 0) bad = popped();
    if (strncmp(story, "object", 6) == 0) bad = object(strcmp(story, "object_lost") == 0);
    if (strcmp(story, "leaves") == 0) bad = leaves();
    if (strcmp(story, "signal") == 0) bad = wait_for_signal();
    if (strncmp(story, "modules", 7) == 0) bad = load_in_cycles(cycles, strcmp(story, "modules_once") == 0);
    bad |= failed(cuStreamDestroy(second)) | failed(cuStreamDestroy(first));
  }
  bad |= failed(cuDevicePrimaryCtxRelease(0));
  return bad;
}
#endif
