// SPDX-License-Identifier: MIT
// unattended: a correct program that waits on the CPU alone for what it queued, or ends in other ways than by returning.
//
//   condition   waits for a condition variable that a host function signals
//   held        holds the mutex that the host function takes while it queues it, and some work behind it
//   callback    the same with a stream callback
//   graph       waits for a host node of a graph
//   flag        reads a word of pinned memory until a copy has written it
//   kernel      the same with a kernel, which would have written it on a device
//   polled      asks the stream, and then an event, until a kernel is done
//   awaited     queues a host function and synchronises: nobody has to step in
//   waits       queues nothing and waits for a signal, after a line on stdout
//   reset       resets the primary context with a stream and an allocation alive
//   used        the same, and then frees the allocation
#include <cuda.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBytes = 4096, kMark = 7 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int done = 0;
static CUstream stream = NULL;
static CUdeviceptr memory = 0;

static void must(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "driver error %d\n", (int)result);
  exit(2);
}

static void CUDA_CB finish(void *argument) {
  (void)argument;
  pthread_mutex_lock(&mutex);
  done = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
}

static void CUDA_CB called_back(CUstream of, CUresult status, void *argument) {
  (void)of;
  (void)status;
  finish(argument);
}

static void wait_until_done(void) {
  pthread_mutex_lock(&mutex);
  while (!done) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void queue_while_holding(int callback) {
  pthread_mutex_lock(&mutex);
  if (callback) {
    must(cuStreamAddCallback(stream, called_back, NULL, 0));
  } else {
    must(cuLaunchHostFunc(stream, finish, NULL));
  }
  must(cuMemsetD8Async(memory, 1, kBytes, stream));
  pthread_mutex_unlock(&mutex);
  wait_until_done();
}

static void wait_for_graph(void) {
  CUgraph graph = NULL;
  CUgraphNode node = NULL;
  CUgraphExec executable = NULL;
  CUDA_HOST_NODE_PARAMS parameters;
  memset(&parameters, 0, sizeof(parameters));
  parameters.fn = finish;
  must(cuGraphCreate(&graph, 0));
  must(cuGraphAddHostNode(&node, graph, NULL, 0, &parameters));
  must(cuGraphInstantiateWithFlags(&executable, graph, 0));
  pthread_mutex_lock(&mutex);
  must(cuGraphLaunch(executable, stream));
  pthread_mutex_unlock(&mutex);
  wait_until_done();
  must(cuGraphExecDestroy(executable));
  must(cuGraphDestroy(graph));
}

static void read_flag(void) {
  void *pinned = NULL;
  must(cuMemAllocHost(&pinned, kBytes));
  volatile unsigned *flag = pinned;
  *flag = 0;
  must(cuMemsetD32Async(memory, kMark, kBytes / 4, stream));
  must(cuMemcpyDtoHAsync(pinned, memory, kBytes, stream));
  while (*flag != kMark) sched_yield();
  must(cuStreamSynchronize(stream));
  must(cuMemFreeHost(pinned));
}

static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry mark(.param .u64 flag)\n{\n ret;\n}\n";

static void launch_kernel(int polled) {
  void *pinned = NULL;
  CUmodule module = NULL;
  CUfunction mark = NULL;
  CUevent event = NULL;
  must(cuModuleLoadData(&module, ptx));
  must(cuModuleGetFunction(&mark, module, "mark"));
  must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  must(cuMemAllocHost(&pinned, kBytes));
  volatile unsigned *flag = pinned;
  *flag = 0;
  void *arguments[] = {&pinned};
  CUresult state = CUDA_ERROR_NOT_READY;
  must(cuLaunchKernel(mark, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
  if (!polled) {
    while (*flag != kMark) sched_yield();
  }
  while ((state = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) sched_yield();
  must(state);
  must(cuLaunchKernel(mark, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
  must(cuEventRecord(event, stream));
  while ((state = cuEventQuery(event)) == CUDA_ERROR_NOT_READY) sched_yield();
  must(state);
  must(cuMemFreeHost(pinned));
  must(cuEventDestroy(event));
  must(cuModuleUnload(module));
}

int main(int argc, char **argv) {
  const char *story = argc > 1 ? argv[1] : "";
  CUcontext context = NULL;
  must(cuInit(0));
  must(cuDevicePrimaryCtxRetain(&context, 0));
  must(cuCtxSetCurrent(context));
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  must(cuMemAlloc(&memory, kBytes));
  if (strcmp(story, "condition") == 0) {
    must(cuMemsetD8Async(memory, 1, kBytes, stream));
    must(cuLaunchHostFunc(stream, finish, NULL));
    wait_until_done();
  } else if (strcmp(story, "held") == 0) {
    queue_while_holding(0);
  } else if (strcmp(story, "callback") == 0) {
    queue_while_holding(1);
  } else if (strcmp(story, "graph") == 0) {
    wait_for_graph();
  } else if (strcmp(story, "flag") == 0) {
    read_flag();
  } else if (strcmp(story, "kernel") == 0 || strcmp(story, "polled") == 0) {
    launch_kernel(strcmp(story, "polled") == 0);
  } else if (strcmp(story, "waits") == 0) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  } else if (strcmp(story, "reset") == 0 || strcmp(story, "used") == 0) {
    must(cuDevicePrimaryCtxReset(0));
    if (strcmp(story, "used") == 0) (void)cuMemFree(memory);
    must(cuDevicePrimaryCtxRelease(0));
    return 0;
  } else if (strcmp(story, "awaited") == 0) {
    must(cuLaunchHostFunc(stream, finish, NULL));
  }
  must(cuStreamSynchronize(stream));
  must(cuMemFree(memory));
  must(cuStreamDestroy(stream));
  must(cuDevicePrimaryCtxRelease(0));
  return 0;
}
