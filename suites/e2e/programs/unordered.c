// SPDX-License-Identifier: MIT
// unordered.c: work that nothing orders, which a driver accepts and hardware may forgive; and the same work in order.
// Usage   unordered STORY [TIMES]
//   STORY   race, freed, early, graph_memory, graph_event, host_freed, host_unregistered, host_freed_elsewhere, foreign, told, columns,
//           recorded_early, dropped_early, waited_elsewhere, freed_early: wrong; with "_ordered" behind it: right
//           event_ignored: right until the call that orders its streams fails, which it does not notice
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBytes = 4096 };

static CUcontext context;
static CUstream first, second;
static CUevent event;

static void must(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  printf("driver error %d\n", (int)result);
  exit(1);
}

static void write_first(CUdeviceptr memory) { must(cuMemsetD8Async(memory, 1, kBytes, first)); }
static void fill_second(CUdeviceptr memory) { must(cuMemsetD8Async(memory, 2, kBytes, second)); }

static void order_second_behind_first(void) {
  must(cuEventRecord(event, first));
  must(cuStreamWaitEvent(second, event, 0));
}

static void race(int ordered) {
  CUdeviceptr memory = 0;
  must(cuMemAlloc(&memory, kBytes));
  write_first(memory);
  if (ordered) order_second_behind_first();
  fill_second(memory);
  must(cuCtxSynchronize());
  must(cuMemFree(memory));
}

static void event_ignored(void) {
  CUdeviceptr memory = 0;
  must(cuMemAlloc(&memory, kBytes));
  write_first(memory);
  cuEventRecord(event, first);
  cuStreamWaitEvent(second, event, 0);
  fill_second(memory);
  must(cuCtxSynchronize());
  must(cuMemFree(memory));
}

static void freed(int ordered) {
  CUdeviceptr memory = 0;
  must(cuMemAllocAsync(&memory, kBytes, first));
  must(cuStreamSynchronize(first));
  write_first(memory);
  if (ordered) must(cuStreamSynchronize(first));
  must(cuMemFree(memory));
}

static void early(int ordered) {
  CUdeviceptr memory = 0;
  must(cuMemAllocAsync(&memory, kBytes, first));
  if (ordered) order_second_behind_first();
  fill_second(memory);
  must(cuCtxSynchronize());
  must(cuMemFree(memory));
}

static CUgraphExec executable_of(CUgraph graph) {
  CUgraphExec executable = NULL;
  must(cuGraphInstantiateWithFlags(&executable, graph, 0));
  must(cuGraphDestroy(graph));
  return executable;
}

static void graph_memory(int ordered) {
  CUdeviceptr memory = 0;
  CUgraph graph = NULL;
  must(cuMemAlloc(&memory, kBytes));
  must(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
  write_first(memory);
  must(cuStreamEndCapture(first, &graph));
  CUgraphExec executable = executable_of(graph);
  if (ordered) must(cuGraphLaunch(executable, first));
  must(cuMemFree(memory));
  // An error here is the driver's word on it, if it has one.
  if (!ordered) cuGraphLaunch(executable, first);
  must(cuGraphExecDestroy(executable));
}

static void graph_event(int ordered) {
  CUevent own = NULL;
  CUgraph graph = NULL;
  CUgraphNode node = NULL;
  must(cuEventCreate(&own, CU_EVENT_DISABLE_TIMING));
  must(cuGraphCreate(&graph, 0));
  must(cuGraphAddEventRecordNode(&node, graph, NULL, 0, own));
  CUgraphExec executable = executable_of(graph);
  if (ordered) must(cuGraphLaunch(executable, first));
  must(cuEventDestroy(own));
  if (!ordered) must(cuGraphLaunch(executable, first));
  must(cuCtxSynchronize());
  must(cuGraphExecDestroy(executable));
}

static CUcontext another_context(void) {
  CUcontext other = NULL;
#if CUDA_VERSION >= 13000
  must(cuCtxCreate(&other, NULL, 0, 0));
#else
  must(cuCtxCreate(&other, 0, 0));
#endif
  return other;
}

// A driver may wait; its manual does not say so.
static void host_freed(int ordered) {
  void *pinned = NULL;
  CUdeviceptr memory = 0;
  must(cuMemAllocHost(&pinned, kBytes));
  must(cuMemAlloc(&memory, kBytes));
  must(cuMemcpyHtoDAsync(memory, pinned, kBytes, first));
  if (ordered) must(cuStreamSynchronize(first));
  must(cuMemFreeHost(pinned));
  must(cuMemFree(memory));
}

static void host_unregistered(int ordered) {
  void *own = NULL;
  CUdeviceptr memory = 0;
  if (posix_memalign(&own, kBytes, kBytes) != 0) exit(1);
  must(cuMemHostRegister(own, kBytes, 0));
  must(cuMemAlloc(&memory, kBytes));
  must(cuMemcpyDtoHAsync(own, memory, kBytes, first));
  must(cuEventRecord(event, first));
  if (ordered) must(cuEventSynchronize(event));
  must(cuMemHostUnregister(own));
  free(own);
  must(cuMemFree(memory));
}

// What this waits for is its own context, not another one that copies from it.
static void host_freed_elsewhere(int ordered) {
  void *pinned = NULL;
  CUdeviceptr memory = 0;
  CUstream stream = NULL;
  must(cuMemAllocHost(&pinned, kBytes));
  CUcontext other = another_context();
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  must(cuMemAlloc(&memory, kBytes));
  must(cuMemcpyHtoDAsync(memory, pinned, kBytes, stream));
  if (ordered) must(cuStreamSynchronize(stream));
  must(cuMemFreeHost(pinned));
  must(cuStreamDestroy(stream));
  must(cuMemFree(memory));
  must(cuCtxDestroy(other));
}

static const char ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry fill(.param .u64 target, .param .u32 count)\n{\n ret;\n}\n";

// A kernel of device 0 that is handed memory of device 1 without peer access. Needs two devices.
static void foreign(int ordered) {
  CUcontext other = NULL;
  CUdeviceptr here = 0, there = 0;
  CUmodule module = NULL;
  CUfunction fill = NULL;
  must(cuMemAlloc(&here, kBytes));
  must(cuDevicePrimaryCtxRetain(&other, 1));
  must(cuCtxPushCurrent(other));
  must(cuMemAlloc(&there, kBytes));
  must(cuCtxPopCurrent(NULL));
  must(cuModuleLoadData(&module, ptx));
  must(cuModuleGetFunction(&fill, module, "fill"));
  int count = 4;
  void *arguments[] = {ordered ? &here : &there, &count};
  must(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, first, arguments, NULL));
  must(cuCtxSynchronize());
  must(cuModuleUnload(module));
  must(cuMemFree(there));
  must(cuDevicePrimaryCtxRelease(1));
  must(cuMemFree(here));
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int has_run = 0;

static void CUDA_CB say(void *argument) {
  (void)argument;
  pthread_mutex_lock(&mutex);
  has_run = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
}

// A host function is queued behind the writer; who waits for it knows that the writer is done, who merely queued it does not.
static void told(int ordered) {
  CUdeviceptr memory = 0;
  has_run = 0;
  must(cuMemAlloc(&memory, kBytes));
  write_first(memory);
  must(cuLaunchHostFunc(first, say, NULL));
  if (ordered) {
    pthread_mutex_lock(&mutex);
    while (!has_run) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
  }
  fill_second(memory);
  must(cuCtxSynchronize());
  must(cuMemFree(memory));
}

// Two halves of a matrix, a column of one byte in common or not.
static void columns(int ordered) {
  enum { kPitch = 512, kRows = 100 };
  CUdeviceptr matrix = 0;
  must(cuMemAlloc(&matrix, kPitch * kRows));
  must(cuMemsetD2D8Async(matrix, kPitch, 1, kPitch / 2 + !ordered, kRows, first));
  must(cuMemsetD2D8Async(matrix + kPitch / 2, kPitch, 2, kPitch / 2, kRows, second));
  must(cuCtxSynchronize());
  must(cuMemFree(matrix));
}

// The recipe for a tensor of the first stream that the second one reads: read it there, record the event there, wait for it in the
// first stream, and only then use the memory again.
enum wrong { kRight, kRecordedEarly, kDroppedEarly, kWaitedElsewhere };

static void read_second(CUdeviceptr result, CUdeviceptr tensor) { must(cuMemcpyDtoDAsync(result, tensor, kBytes, second)); }
static void use_again(CUdeviceptr tensor) { must(cuMemsetD8Async(tensor, 3, kBytes, first)); }

static void follow_recipe(enum wrong wrong) {
  CUdeviceptr tensor = 0, result = 0;
  CUstream third = NULL;
  must(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
  must(cuMemAlloc(&tensor, kBytes));
  must(cuMemAlloc(&result, kBytes));
  write_first(tensor);
  order_second_behind_first();
  if (wrong == kRecordedEarly) must(cuEventRecord(event, second));
  read_second(result, tensor);
  if (wrong != kRecordedEarly) must(cuEventRecord(event, second));
  if (wrong == kDroppedEarly) use_again(tensor);
  must(cuStreamWaitEvent(wrong == kWaitedElsewhere ? third : first, event, 0));
  if (wrong != kDroppedEarly) use_again(tensor);
  must(cuCtxSynchronize());
  must(cuStreamDestroy(third));
  must(cuMemFree(result));
  must(cuMemFree(tensor));
}

// The same with memory that goes back to its pool, and a kernel that reads it.
static void freed_early(int ordered) {
  CUdeviceptr tensor = 0;
  CUmodule module = NULL;
  CUfunction reader = NULL;
  must(cuModuleLoadData(&module, ptx));
  must(cuModuleGetFunction(&reader, module, "fill"));
  must(cuMemAllocAsync(&tensor, kBytes, first));
  order_second_behind_first();
  if (!ordered) must(cuEventRecord(event, second));
  int count = 4;
  void *arguments[] = {&tensor, &count};
  must(cuLaunchKernel(reader, 1, 1, 1, 1, 1, 1, 0, second, arguments, NULL));
  if (ordered) must(cuEventRecord(event, second));
  must(cuStreamWaitEvent(first, event, 0));
  must(cuMemFreeAsync(tensor, first));
  must(cuCtxSynchronize());
  must(cuModuleUnload(module));
}

static int is(const char *story, const char *name) {
  const size_t length = strlen(name);
  return strncmp(story, name, length) == 0 && (story[length] == 0 || strcmp(story + length, "_ordered") == 0);
}

int main(int argc, char **argv) {
  const char *story = argc > 1 ? argv[1] : "";
  const int ordered = strstr(story, "_ordered") != NULL;
  must(cuInit(0));
  must(cuDevicePrimaryCtxRetain(&context, 0));
  must(cuCtxPushCurrent(context));
  must(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  must(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  for (int times = argc > 2 ? atoi(argv[2]) : 1; times > 0; --times) {
    if (is(story, "race")) race(ordered);
    if (is(story, "freed")) freed(ordered);
    if (is(story, "early")) early(ordered);
    if (is(story, "graph_memory")) graph_memory(ordered);
    if (is(story, "graph_event")) graph_event(ordered);
    if (is(story, "host_freed")) host_freed(ordered);
    if (is(story, "host_unregistered")) host_unregistered(ordered);
    if (is(story, "host_freed_elsewhere")) host_freed_elsewhere(ordered);
    if (is(story, "foreign")) foreign(ordered);
    if (is(story, "told")) told(ordered);
    if (is(story, "columns")) columns(ordered);
    if (is(story, "recorded_early")) follow_recipe(ordered ? kRight : kRecordedEarly);
    if (is(story, "dropped_early")) follow_recipe(ordered ? kRight : kDroppedEarly);
    if (is(story, "waited_elsewhere")) follow_recipe(ordered ? kRight : kWaitedElsewhere);
    if (is(story, "freed_early")) freed_early(ordered);
    if (is(story, "event_ignored")) event_ignored();
  }
  must(cuEventDestroy(event));
  must(cuStreamDestroy(second));
  must(cuStreamDestroy(first));
  must(cuCtxPopCurrent(NULL));
  must(cuDevicePrimaryCtxRelease(0));
  return 0;
}
