// SPDX-License-Identifier: MIT
// unordered.c: work that nothing orders, which a driver accepts and hardware may forgive; and the same work in order.
// Usage   unordered STORY [TIMES]
//   STORY   race, freed, early, graph_memory, graph_event, host_freed, foreign: wrong; with "_ordered" behind it: right
//           event_ignored: right until the call that orders its streams fails, which it does not notice
#include <cuda.h>
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

// Freeing host memory waits for its own context, not for another one that copies from it.
static void host_freed(int ordered) {
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

static int is(const char *story, const char *name) { return strncmp(story, name, strlen(name)) == 0; }

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
    if (is(story, "foreign")) foreign(ordered);
    if (is(story, "event_ignored")) event_ignored();
  }
  must(cuEventDestroy(event));
  must(cuStreamDestroy(second));
  must(cuStreamDestroy(first));
  must(cuCtxPopCurrent(NULL));
  must(cuDevicePrimaryCtxRelease(0));
  return 0;
}
