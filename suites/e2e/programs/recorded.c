// SPDX-License-Identifier: MIT
// recorded.c: what a program in production does while it is recorded. Each word does one thing: `recorded early churn late keep kill`.
//
//   keep      keep_stream acquires a stream, which stays
//   early     acquires a stream that `late` destroys
//   late      destroys it
//   churn     60,000 events are made and destroyed
//   copies    60,000 copies
//   ask       60,000 times which device is current, and once about a device that is not there
//   unwritable asks how much memory is free, for a place that cannot be written: dies of SIGSEGV in the call
//   cache     40 cycles are marked; each makes an event and destroys the one of eight cycles ago
//   grow      40 cycles are marked; each makes an event that stays
//   secret    the bytes of the variable RECORDED_SECRET go to the device, into memsets and into kernels' arguments
//   push pop  a context onto the stack of this thread, and down again
//   twice     an event is destroyed twice
//   crash     abort()
//   kill      SIGKILL
//   killer    another thread kills the process while this one makes calls
#include <cuaudit/mark.h>
#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUcontext context;
static CUstream early;
static volatile int calls;

static int keep_stream(void) {
  CUstream stream;
  return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
}

static int churn(int turns) {
  for (int i = 0; i < turns; ++i) {
    CUevent event;
    if (cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS || cuEventDestroy(event) != CUDA_SUCCESS) return 0;
    ++calls;
  }
  return 1;
}

static int copies(int turns) {
  CUdeviceptr memory;
  char bytes[16] = {0};
  if (cuMemAlloc(&memory, sizeof(bytes)) != CUDA_SUCCESS) return 0;
  for (int i = 0; i < turns; ++i) {
    if (cuMemcpyHtoD(memory, bytes, sizeof(bytes)) != CUDA_SUCCESS) return 0;
  }
  return cuMemFree(memory) == CUDA_SUCCESS;
}

static int ask(int turns) {
  CUdevice device;
  int value;
  for (int i = 0; i < turns; ++i) {
    if (cuCtxGetDevice(&device) != CUDA_SUCCESS) return 0;
  }
  return cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99) != CUDA_SUCCESS;
}

static int cycles(int kept) {
  CUevent ring[8] = {0};
  for (int i = 0; i < 40; ++i) {
    CUevent event;
    cuaudit_cycle_begin();
    if (cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return 0;
    if (!kept && ring[i % 8] != NULL && cuEventDestroy(ring[i % 8]) != CUDA_SUCCESS) return 0;
    ring[i % 8] = event;
    cuaudit_cycle_end();
  }
  for (int i = 0; i < 8 && !kept; ++i) cuEventDestroy(ring[i]);
  return 1;
}

// A kernel whose argument is the secret, launched, in a graph, and captured.
static int secret_kernel(const char *text) {
  const char *image = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry kernel_of_somebody(.param .u64 word) { ret; }\n";
  unsigned long long word;
  void *parameters[] = {&word};
  CUmodule module;
  CUfunction function;
  CUgraph graph, captured;
  CUgraphNode node;
  CUstream stream;
  CUDA_KERNEL_NODE_PARAMS launch = {0};
  memcpy(&word, text, sizeof(word));
  if (cuModuleLoadData(&module, image) != CUDA_SUCCESS || cuModuleGetFunction(&function, module, "kernel_of_somebody") != CUDA_SUCCESS)
    return 0;
  launch.func = function;
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
  launch.kernelParams = parameters;
  if (cuGraphCreate(&graph, 0) != CUDA_SUCCESS || cuGraphAddKernelNode(&node, graph, NULL, 0, &launch) != CUDA_SUCCESS) return 0;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return 0;
  if (cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL) != CUDA_SUCCESS) return 0;
  if (cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS) return 0;
  if (cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL) != CUDA_SUCCESS) return 0;
  return cuStreamEndCapture(stream, &captured) == CUDA_SUCCESS && cuGraphDestroy(captured) == CUDA_SUCCESS &&
         cuGraphDestroy(graph) == CUDA_SUCCESS && cuStreamDestroy(stream) == CUDA_SUCCESS && cuModuleUnload(module) == CUDA_SUCCESS;
}

static int secret(void) {
  const char *text = getenv("RECORDED_SECRET");
  CUdeviceptr memory;
  unsigned word;
  if (text == NULL || strlen(text) < 16 || cuMemAlloc(&memory, 4096) != CUDA_SUCCESS) return 0;
  memcpy(&word, text, sizeof(word));
  return secret_kernel(text) && cuMemcpyHtoD(memory, text, strlen(text)) == CUDA_SUCCESS && cuMemsetD32(memory, word, 16) == CUDA_SUCCESS &&
         cuMemsetD8Async(memory, (unsigned char)word, 16, NULL) == CUDA_SUCCESS && cuMemsetD2D32(memory, 16, word, 1, 1) == CUDA_SUCCESS &&
         cuCtxSynchronize() == CUDA_SUCCESS && cuMemFree(memory) == CUDA_SUCCESS;
}

static int twice(void) {
  CUevent event;
  if (cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS || cuEventDestroy(event) != CUDA_SUCCESS) return 0;
  cuEventDestroy(event);
  return 1;
}

static void *kill_later(void *unused) {
  (void)unused;
  while (calls < 500) {
  }
  kill(getpid(), SIGKILL);
  return NULL;
}

static int killer(void) {
  pthread_t thread;
  cuCtxSetCurrent(context);
  return pthread_create(&thread, NULL, &kill_later, NULL) == 0 && churn(1000000);
}

static int act(const char *word) {
  if (strcmp(word, "keep") == 0) return keep_stream();
  if (strcmp(word, "early") == 0) return cuStreamCreate(&early, CU_STREAM_DEFAULT) == CUDA_SUCCESS;
  if (strcmp(word, "late") == 0) return cuStreamDestroy(early) == CUDA_SUCCESS;
  if (strcmp(word, "churn") == 0) return churn(60000);
  if (strcmp(word, "copies") == 0) return copies(60000);
  if (strcmp(word, "ask") == 0) return ask(60000);
  if (strcmp(word, "unwritable") == 0) return cuMemGetInfo((size_t *)8, (size_t *)8) == CUDA_SUCCESS;
  if (strcmp(word, "cache") == 0) return cycles(0);
  if (strcmp(word, "grow") == 0) return cycles(1);
  if (strcmp(word, "secret") == 0) return secret();
  if (strcmp(word, "push") == 0) return cuCtxPushCurrent(context) == CUDA_SUCCESS;
  if (strcmp(word, "pop") == 0) return cuCtxPopCurrent(NULL) == CUDA_SUCCESS;
  if (strcmp(word, "twice") == 0) return twice();
  if (strcmp(word, "crash") == 0) abort();
  if (strcmp(word, "kill") == 0) return kill(getpid(), SIGKILL) == 0;
  return strcmp(word, "killer") == 0 && killer();
}

int main(int argc, char **argv) {
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS)
    return 1;
  for (int i = 1; i < argc; ++i) {
    // Words behind "--" are not read: they only stand in the arguments.
    if (strcmp(argv[i], "--") == 0) break;
    if (!act(argv[i])) return 4;
  }
  cuCtxSetCurrent(NULL);
  return cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS ? 0 : 1;
}
