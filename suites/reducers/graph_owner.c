// SPDX-License-Identifier: MIT
// graph_owner.c: who keeps the buffer alive that a graph's kernel node was given the address of?
//
// Story   Adding a kernel node copies raw argument values. The owner of a buffer may go before the graph runs, unless the graph holds it as
//         a user object. Review then found the other half: the owner was attached and never let go.
//           C1  plain: the owner is not attached, the buffer is freed before the launch
//           C1b attached without moving the reference; the caller's own reference is never released: user object and buffer stay
//           C2  clone: the owner was held beside the original graph, not by it; only user objects travel to the clone
//         The kernel ignores its pointer, so that the defective form is harmless on a GPU. What is wrong is the lifetime.
// Source  https://github.com/NVIDIA/cuda-python/issues/2039 and pull request 2041; written anew from the facts.
// Forms   REPAIRED: the graph holds the owner in all three. Otherwise all three defects.
// Usage   graph_owner [cycles]       default 2; a cycle that fails is reported and the next one begins
#include <cuda.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(REPAIRED)
enum { kGraphOwns = 1 };
#else
enum { kGraphOwns = 0 };
#endif

enum { kBufferBytes = 4 << 20, kScratchWords = 1024, kWaitSeconds = 2 };

static const char kModule[] =
    ".version 7.0\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry ignore_pointer(.param .u64 pointer)\n"
    "{\n"
    "  ret;\n"
    "}\n";

// One buffer and whether its last user has let go. `dropped` is set by the driver, on a thread of its own if it likes.
typedef struct Owner {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int dropped;
  CUdeviceptr buffer;
} Owner;

typedef struct Session {
  CUmodule module;
  CUfunction function;
  CUstream stream;
  CUdeviceptr scratch;  // what the memset nodes write; outlives every graph
} Session;

typedef enum Keeper { kNobody, kGraphByMove, kGraphAndCaller } Keeper;

// Not on the heap: the driver may call back later than anybody waits.
static Owner owners[3] = {{PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0},
                          {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0},
                          {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0}};

static int report(const char *what, CUresult result) {
  const char *name = NULL;
  if (result == CUDA_SUCCESS) return 0;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) name = "no name";
  fprintf(stderr, "graph_owner: %s: %s (%d)\n", what, name, (int)result);
  return -1;
}

// The user object's destructor: it may not call the driver, so it only says that the buffer is free to go.
static void CUDA_CB drop(void *user) {
  Owner *owner = user;
  pthread_mutex_lock(&owner->lock);
  owner->dropped = 1;
  pthread_cond_broadcast(&owner->changed);
  pthread_mutex_unlock(&owner->lock);
}

// Executable graphs let go asynchronously. After a failed destroy nobody lets go any more, and nobody launches either.
static void await_drop(Owner *owner) {
  struct timespec deadline;
  int late = 0;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += kWaitSeconds;
  pthread_mutex_lock(&owner->lock);
  while (!owner->dropped && !late) late = pthread_cond_timedwait(&owner->changed, &owner->lock, &deadline) == ETIMEDOUT;
  pthread_mutex_unlock(&owner->lock);
  if (late) fprintf(stderr, "graph_owner: the graph still holds its buffer after %d s\n", kWaitSeconds);
}

static void buffer_free(Owner *owner) {
  report("buffer free", cuMemFree(owner->buffer));
  owner->buffer = 0;
}

static CUresult graph_fill(const Session *session, CUgraph graph, CUdeviceptr buffer) {
  CUDA_KERNEL_NODE_PARAMS kernel;
  CUDA_MEMSET_NODE_PARAMS fill;
  CUgraphNode first, second;
  CUcontext context;
  void *arguments[1];
  CUresult result = cuCtxGetCurrent(&context);
  if (result != CUDA_SUCCESS) return result;
  memset(&fill, 0, sizeof fill);
  fill.dst = session->scratch;
  fill.elementSize = 4;
  fill.width = kScratchWords;
  fill.height = 1;
  fill.value = 7;
  result = cuGraphAddMemsetNode(&first, graph, NULL, 0, &fill, context);
  if (result != CUDA_SUCCESS) return result;
  arguments[0] = &buffer;
  memset(&kernel, 0, sizeof kernel);
  kernel.func = session->function;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = arguments;
  return cuGraphAddKernelNode(&second, graph, &first, 1, &kernel);
}

// A call that fails may have written anything to its output; nobody may take that for a handle.
static CUresult graph_instantiate(CUgraph graph, CUgraphExec *executable) {
  const CUresult result = cuGraphInstantiateWithFlags(executable, graph, 0);
  if (result != CUDA_SUCCESS) *executable = NULL;
  return result;
}

// Makes `owner` a user object of `graph`. The caller is left with a reference of its own only on success without a move.
static CUresult graph_keep(CUgraph graph, Owner *owner, Keeper keeper, CUuserObject *object) {
  CUresult result;
  const unsigned flags = keeper == kGraphByMove ? CU_GRAPH_USER_OBJECT_MOVE : 0;
  owner->dropped = 0;
  result = cuUserObjectCreate(object, owner, drop, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (result != CUDA_SUCCESS) return result;
  result = cuGraphRetainUserObject(graph, *object, 1, flags);
  if (result != CUDA_SUCCESS) report("user object release", cuUserObjectRelease(*object, 1));
  return result;
}

static CUresult graph_launch(const Session *session, CUgraphExec executable) {
  CUresult result = cuGraphLaunch(executable, session->stream);
  if (result == CUDA_SUCCESS) result = cuStreamSynchronize(session->stream);
  return result;
}

// C1, first half. Nobody but the graph needs the buffer once the node is added.
static CUresult run_plain(const Session *session, CUgraph graph, CUgraphExec *executable, Owner *owner, int *kept) {
  CUuserObject object;
  CUresult result = graph_fill(session, graph, owner->buffer);
  if (result == CUDA_SUCCESS && kGraphOwns) {
    result = graph_keep(graph, owner, kGraphByMove, &object);
    *kept = result == CUDA_SUCCESS;
  }
  if (result == CUDA_SUCCESS) result = graph_instantiate(graph, executable);
  if (result == CUDA_SUCCESS && !kGraphOwns) buffer_free(owner);
  if (result == CUDA_SUCCESS) result = graph_launch(session, *executable);
  return result;
}

// C1, second half: two references, the graph's and the caller's.
static CUresult run_attached(const Session *session, CUgraph graph, CUgraphExec *executable, Owner *owner, int *kept) {
  CUuserObject object;
  CUresult result = graph_fill(session, graph, owner->buffer);
  if (result == CUDA_SUCCESS) {
    result = graph_keep(graph, owner, kGraphAndCaller, &object);
    *kept = result == CUDA_SUCCESS;
  }
  if (result == CUDA_SUCCESS) result = graph_instantiate(graph, executable);
  if (result == CUDA_SUCCESS) result = graph_launch(session, *executable);
  if (*kept && kGraphOwns) *kept = report("user object release", cuUserObjectRelease(object, 1)) == 0;
  return result;
}

// C2: the clone outlives the original, and so must the buffer.
static CUresult run_clone(const Session *session, CUgraph *graph, CUgraphExec *executable, Owner *owner, int *kept) {
  CUuserObject object;
  CUgraph clone = NULL;
  CUresult result = graph_fill(session, *graph, owner->buffer);
  if (result == CUDA_SUCCESS && kGraphOwns) {
    result = graph_keep(*graph, owner, kGraphByMove, &object);
    *kept = result == CUDA_SUCCESS;
  }
  if (result == CUDA_SUCCESS) result = cuGraphClone(&clone, *graph);
  if (result != CUDA_SUCCESS) return result;
  if (report("original destroy", cuGraphDestroy(*graph)) != 0) *kept = 0;
  *graph = clone;
  result = graph_instantiate(clone, executable);
  if (!kGraphOwns) buffer_free(owner);
  if (result == CUDA_SUCCESS) result = graph_launch(session, *executable);
  return result;
}

typedef enum Variant { kPlain, kAttached, kClone } Variant;

// `kept`: a user object will say when the buffer may go. In the defective C1b nobody ever says so.
static int run_variant(const Session *session, Variant variant) {
  Owner *owner = &owners[variant];
  CUgraphExec executable = NULL;
  CUgraph graph = NULL;
  int kept = 0, destroyed = 0;
  CUresult result = cuMemAlloc(&owner->buffer, kBufferBytes);
  if (result != CUDA_SUCCESS) return report("buffer", result);
  result = cuGraphCreate(&graph, 0);
  if (result == CUDA_SUCCESS) {
    if (variant == kPlain) result = run_plain(session, graph, &executable, owner, &kept);
    if (variant == kAttached) result = run_attached(session, graph, &executable, owner, &kept);
    if (variant == kClone) result = run_clone(session, &graph, &executable, owner, &kept);
    if (executable != NULL) destroyed |= report("executable destroy", cuGraphExecDestroy(executable));
    destroyed |= report("graph destroy", cuGraphDestroy(graph));
  }
  if (kept && !kGraphOwns && variant == kAttached) return report("attached", result);
  if (kept && destroyed == 0) await_drop(owner);
  if (owner->buffer != 0) buffer_free(owner);
  return report(variant == kPlain ? "plain" : variant == kAttached ? "attached" : "clone", result);
}

static int run_session(Session *session) {
  static const unsigned kStreamFlags = CU_STREAM_NON_BLOCKING;
  int failed = -1;
  if (report("module", cuModuleLoadData(&session->module, kModule)) != 0) return -1;
  if (report("function", cuModuleGetFunction(&session->function, session->module, "ignore_pointer")) == 0 &&
      report("stream", cuStreamCreate(&session->stream, kStreamFlags)) == 0) {
    if (report("scratch", cuMemAlloc(&session->scratch, kScratchWords * 4)) == 0) {
      failed = run_variant(session, kPlain);
      if (failed == 0) failed = run_variant(session, kAttached);
      if (failed == 0) failed = run_variant(session, kClone);
      report("scratch free", cuMemFree(session->scratch));
    }
    report("stream destroy", cuStreamDestroy(session->stream));
  }
  report("module unload", cuModuleUnload(session->module));
  return failed;
}

static int run_cycle(void) {
  Session session;
  CUcontext context, popped;
  CUdevice device;
  int failed = -1;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDeviceGet(&device, 0);
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, device);
  if (result != CUDA_SUCCESS) return report("init", result);
  memset(&session, 0, sizeof session);
  if (report("context push", cuCtxPushCurrent(context)) == 0) {
    failed = run_session(&session);
    failed |= report("context pop", cuCtxPopCurrent(&popped));
  }
  report("context release", cuDevicePrimaryCtxRelease(device));
  return failed;
}

int main(int argc, char **argv) {
  const long cycles = argc > 1 ? strtol(argv[1], NULL, 10) : 2;
  long i, failures = 0;
  for (i = 0; i < cycles; ++i) {
    if (run_cycle() == 0) continue;
    fprintf(stderr, "graph_owner: cycle %ld failed\n", i + 1);
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}
