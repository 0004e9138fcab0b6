// SPDX-License-Identifier: MIT
// leak_work.c: contexts, queues and graphs; what is shared with other interfaces or processes, and what belongs to a device as a whole.
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leak_kind.h"

int context(const Ground *ground, int cycle, int clean) {
  CUcontext made;
  (void)ground, (void)cycle;
  DO(cuCtxCreate(&made, 0, 0, 0));
  DO(cuCtxPopCurrent(0));
  if (clean) DO(cuCtxDestroy(made));
  return 0;
}

int primary_context(const Ground *ground, int cycle, int clean) {
  CUcontext same;
  (void)ground, (void)cycle;
  DO(cuDevicePrimaryCtxRetain(&same, 0));
  if (clean) DO(cuDevicePrimaryCtxRelease(0));
  return 0;
}

int context_stack_entry(const Ground *ground, int cycle, int clean) {
  (void)cycle;
  DO(cuCtxPushCurrent(ground->context));
  if (clean) DO(cuCtxPopCurrent(0));
  return 0;
}

int stream(const Ground *ground, int cycle, int clean) {
  CUstream made;
  (void)ground, (void)cycle;
  DO(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
  if (clean) DO(cuStreamDestroy(made));
  return 0;
}

int event(const Ground *ground, int cycle, int clean) {
  CUevent made;
  (void)cycle;
  DO(cuEventCreate(&made, CU_EVENT_DISABLE_TIMING));
  DO(cuEventRecord(made, ground->stream));
  if (clean) DO(cuEventDestroy(made));
  return 0;
}

int graph(const Ground *ground, int cycle, int clean) {
  CUgraph made;
  CUgraphNode node;
  (void)ground, (void)cycle;
  DO(cuGraphCreate(&made, 0));
  DO(cuGraphAddEmptyNode(&node, made, 0, 0));
  if (clean) DO(cuGraphDestroy(made));
  return 0;
}

int executable_graph(const Ground *ground, int cycle, int clean) {
  CUgraph source;
  CUgraphNode node;
  CUgraphExec made;
  (void)cycle;
  DO(cuGraphCreate(&source, 0));
  DO(cuGraphAddEmptyNode(&node, source, 0, 0));
  DO(cuGraphInstantiate(&made, source, 0));
  DO(cuGraphDestroy(source));
  DO(cuGraphLaunch(made, ground->stream));
  DO(cuStreamSynchronize(ground->stream));
  if (clean) DO(cuGraphExecDestroy(made));
  return 0;
}

static void nothing(void *unused) { (void)unused; }

int user_object(const Ground *ground, int cycle, int clean) {
  CUuserObject made;
  (void)ground, (void)cycle;
  DO(cuUserObjectCreate(&made, 0, &nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  if (clean) DO(cuUserObjectRelease(made, 1));
  return 0;
}

// Texture references are deprecated, and still there to be lost.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
int texture_reference(const Ground *ground, int cycle, int clean) {
  CUtexref reference;
  (void)ground, (void)cycle;
  DO(cuTexRefCreate(&reference));
  if (clean) DO(cuTexRefDestroy(reference));
  return 0;
}
#pragma GCC diagnostic pop

static void CUDA_CB notified(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle) {
  (void)info, (void)data, (void)handle;
}

int callback(const Ground *ground, int cycle, int clean) {
  CUasyncCallbackHandle handle;
  (void)ground, (void)cycle;
  DO(cuDeviceRegisterAsyncNotification(0, &notified, NULL, &handle));
  if (clean) DO(cuDeviceUnregisterAsyncNotification(0, handle));
  return 0;
}

int green_context(const Ground *ground, int cycle, int clean) {
  CUdevResource all, part, rest;
  CUdevResourceDesc description;
  unsigned groups = 1;
  CUgreenCtx green;
  (void)ground, (void)cycle;
  DO(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  DO(cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 16));
  DO(cuDevResourceGenerateDesc(&description, &part, 1));
  DO(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  if (clean) DO(cuGreenCtxDestroy(green));
  return 0;
}

// Physical memory, exported once and imported in each cycle.
int external_memory(const Ground *ground, int cycle, int clean) {
  static const size_t kBytes = (size_t)2 << 20;
  const CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  CUmemGenericAllocationHandle physical;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC from;
  CUexternalMemory memory;
  (void)ground, (void)cycle;
  memset(&from, 0, sizeof(from));
  from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  from.size = kBytes;
  DO(cuMemCreate(&physical, kBytes, &wanted, 0));
  DO(cuMemExportToShareableHandle(&from.handle.fd, physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  DO(cuImportExternalMemory(&memory, &from));
  DO(cuMemRelease(physical));
  if (clean) DO(cuDestroyExternalMemory(memory));
  return 0;
}

// The other process: allocates, hands out names, and waits until nobody needs them any more.
static int share(int names, int done) {
  CUcontext context;
  CUdeviceptr memory[kMostCycles];
  CUipcMemHandle handle[kMostCycles];
  char end;
  int i;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxPushCurrent(context) != CUDA_SUCCESS)
    return 1;
  for (i = 0; i < kMostCycles; ++i) {
    if (cuMemAlloc(&memory[i], 4096) != CUDA_SUCCESS || cuIpcGetMemHandle(&handle[i], memory[i]) != CUDA_SUCCESS) return 1;
  }
  if (write(names, handle, sizeof(handle)) != (ssize_t)sizeof(handle)) return 1;
  if (read(done, &end, 1) != 0) return 1;
  for (i = 0; i < kMostCycles; ++i) cuMemFree(memory[i]);
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  close(names);
  close(done);
  return 0;
}

static CUipcMemHandle shared[kMostCycles];
static pid_t other;
static int done_here;

int before_ipc_memory(void) {
  int names[2], done[2];
  if (pipe(names) != 0 || pipe(done) != 0) return 1;
  other = fork();
  if (other < 0) return 1;
  if (other == 0) {
    close(names[0]);
    close(done[1]);
    exit(share(names[1], done[0]));
  }
  close(names[1]);
  close(done[0]);
  if (read(names[0], shared, sizeof(shared)) != (ssize_t)sizeof(shared)) return 1;
  close(names[0]);
  done_here = done[1];
  return 0;
}

// Whatever is still open here, the other process may give back what it shared.
int after_ipc_memory(void) {
  int status = 1;
  close(done_here);
  return waitpid(other, &status, 0) == other ? status : 1;
}

int ipc_memory(const Ground *ground, int cycle, int clean) {
  CUdeviceptr memory;
  (void)ground;
  DO(cuIpcOpenMemHandle(&memory, shared[cycle], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  if (clean) DO(cuIpcCloseMemHandle(memory));
  return 0;
}

static CUcontext peers[kMostCycles];

int before_peer_access(void) {
  int i;
  if (cuInit(0) != CUDA_SUCCESS) return 1;
  for (i = 0; i < kMostCycles; ++i) {
#if CUDA_VERSION >= 13000
    if (cuCtxCreate(&peers[i], NULL, 0, 1) != CUDA_SUCCESS) return 1;
#else
    if (cuCtxCreate(&peers[i], 0, 1) != CUDA_SUCCESS) return 1;
#endif
    if (cuCtxPopCurrent(NULL) != CUDA_SUCCESS) return 1;
  }
  return 0;
}

// Whatever still has access to them, the context of device 0 is gone.
int after_peer_access(void) {
  int i;
  for (i = 0; i < kMostCycles; ++i) {
    if (cuCtxDestroy(peers[i]) != CUDA_SUCCESS) return 1;
  }
  return 0;
}

int peer_access(const Ground *ground, int cycle, int clean) {
  (void)ground;
  DO(cuCtxEnablePeerAccess(peers[cycle], 0));
  if (clean) DO(cuCtxDisablePeerAccess(peers[cycle]));
  return 0;
}
