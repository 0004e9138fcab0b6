// SPDX-License-Identifier: MIT
// misuse.c: broken rules that no fault is needed for; a definition chooses the program.
//
//   misuse double_release|use_after_release|over_released_primary|unbalanced_stack|wrong_order|right_order
//     wrong_order  the state is freed before the close that still uses it: its stream is synchronized after it was destroyed
//   twice wrong|right CYCLES (TWICE)
//     marks its cycles. Where the memory of one cannot be had, it destroys the stream once too often; or, right, once
//   standing texture|surface|level|node|function|registration [clean] (STANDING)
//     destroys what another object stands on, and uses that one; or, clean, uses it before
#include <cuda.h>
#include <string.h>
#include <sys/mman.h>

#if defined(STANDING)

// Leaves the function on the first error, with its code.
#define DO(call)                                 \
  do {                                           \
    const CUresult result_ = (call);             \
    if (result_ != CUDA_SUCCESS) return result_; \
  } while (0)

static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry look(.param .u64 at)\n{\n ret;\n}\n";
static const CUDA_ARRAY3D_DESCRIPTOR kShape = {16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};

static CUresult launch(CUfunction function, unsigned long long word) {
  void *arguments[1];
  arguments[0] = &word;
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
}

static CUresult view(CUfunction function, int is_texture, int clean) {
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC how;
  CUarray array;
  unsigned long long object;
  memset(&resource, 0, sizeof(resource));
  memset(&how, 0, sizeof(how));
  DO(cuArray3DCreate(&array, &kShape));
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  DO(is_texture ? cuTexObjectCreate(&object, &resource, &how, NULL) : cuSurfObjectCreate(&object, &resource));
  if (!clean) DO(cuArrayDestroy(array));
  DO(launch(function, object));
  DO(cuCtxSynchronize());
  DO(is_texture ? cuTexObjectDestroy(object) : cuSurfObjectDestroy(object));
  if (clean) DO(cuArrayDestroy(array));
  return CUDA_SUCCESS;
}

static CUresult level(int clean) {
  CUDA_ARRAY_DESCRIPTOR seen;
  CUmipmappedArray whole;
  CUarray part;
  DO(cuMipmappedArrayCreate(&whole, &kShape, 2));
  DO(cuMipmappedArrayGetLevel(&part, whole, 1));
  if (!clean) DO(cuMipmappedArrayDestroy(whole));
  cuArrayGetDescriptor(&seen, part);
  if (clean) DO(cuMipmappedArrayDestroy(whole));
  return CUDA_SUCCESS;
}

static CUresult node(CUmodule module, CUfunction function, int clean) {
  CUDA_KERNEL_NODE_PARAMS kernel;
  unsigned long long word = 0;
  void *arguments[1];
  CUgraph graph;
  CUgraphNode added;
  CUgraphExec executable;
  memset(&kernel, 0, sizeof(kernel));
  arguments[0] = &word;
  kernel.func = function;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = arguments;
  DO(cuGraphCreate(&graph, 0));
  DO(cuGraphAddKernelNode(&added, graph, NULL, 0, &kernel));
  DO(cuGraphInstantiate(&executable, graph, 0));
  if (!clean) DO(cuModuleUnload(module));
  cuGraphLaunch(executable, NULL);
  cuCtxSynchronize();
  if (clean) DO(cuModuleUnload(module));  // the graph is not launched any more
  DO(cuGraphExecDestroy(executable));
  return cuGraphDestroy(graph);
}

/* The pages of a registration are given back, and others come to their address. */
static CUresult registration(int clean) {
  const size_t bytes = 1 << 16;
  char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CUdeviceptr memory;
  if (pages == MAP_FAILED) return CUDA_ERROR_OPERATING_SYSTEM;
  DO(cuMemAlloc(&memory, bytes));
  DO(cuMemHostRegister(pages, bytes, 0));
  if (clean) DO(cuMemHostUnregister(pages));
  munmap(pages, bytes);
  if (mmap(pages, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != pages)
    return CUDA_ERROR_OPERATING_SYSTEM;
  DO(cuMemcpyHtoD(memory, pages + 64, 64));
  if (!clean) DO(cuMemHostUnregister(pages));
  munmap(pages, bytes);
  return cuMemFree(memory);
}

static CUresult run(const char *what, int clean) {
  const int unloads = strcmp(what, "node") == 0 || strcmp(what, "function") == 0;
  CUmodule module;
  CUfunction function;
  DO(cuModuleLoadData(&module, kPtx));
  DO(cuModuleGetFunction(&function, module, "look"));
  if (strcmp(what, "texture") == 0) DO(view(function, 1, clean));
  if (strcmp(what, "surface") == 0) DO(view(function, 0, clean));
  if (strcmp(what, "level") == 0) DO(level(clean));
  if (strcmp(what, "registration") == 0) DO(registration(clean));
  if (strcmp(what, "node") == 0) DO(node(module, function, clean));
  if (strcmp(what, "function") == 0) {
    if (clean) DO(launch(function, 0));
    DO(cuModuleUnload(module));
    if (!clean) launch(function, 0);
  }
  return unloads ? CUDA_SUCCESS : cuModuleUnload(module);
}

int main(int argc, char **argv) {
  CUcontext context;
  CUresult result;
  if (argc < 2) return 9;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  result = cuCtxPushCurrent(context);
  if (result == CUDA_SUCCESS) {
    result = run(argv[1], argc > 2);
    cuCtxPopCurrent(NULL);
  }
  cuDevicePrimaryCtxRelease(0);
  return result == CUDA_SUCCESS ? 0 : 1;
}

#elif defined(TWICE)

#include <cuaudit/mark.h>
#include <stdlib.h>

static void give_up(CUstream stream, int wrong) {
  cuStreamDestroy(stream);
  if (wrong) cuStreamDestroy(stream);
}

static CUresult run_cycle(int wrong) {
  CUstream stream;
  CUdeviceptr memory;
  CUresult freed, destroyed, result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  result = cuMemAlloc(&memory, 64);
  if (result != CUDA_SUCCESS) {
    give_up(stream, wrong);
    return result;
  }
  freed = cuMemFree(memory);
  destroyed = cuStreamDestroy(stream);
  if (destroyed != CUDA_SUCCESS) cuStreamDestroy(stream);  // as far as it was told, the stream is still there
  return freed != CUDA_SUCCESS ? freed : destroyed;
}

int main(int argc, char **argv) {
  CUcontext context;
  int cycle, pushed, failed = 0;
  if (argc < 3) return 9;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  pushed = cuCtxPushCurrent(context) == CUDA_SUCCESS;
  for (cycle = 0; pushed && cycle < atoi(argv[2]); ++cycle) {
    CUresult result;
    cuaudit_cycle_begin();
    result = run_cycle(argv[1][0] == 'w');
    cuaudit_report((int)result);
    cuaudit_cycle_end();
    failed += result != CUDA_SUCCESS;
  }
  if (pushed) cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  return pushed && failed == 0 ? 0 : 1;
}

#else

typedef struct State {
  CUcontext context;
  CUstream stream;
} State;

static void state_free(State *state) { cuStreamDestroy(state->stream); }

static void close_with(const State *state) {
  CUevent last;
  if (cuEventCreate(&last, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
  cuEventRecord(last, state->stream);
  cuStreamSynchronize(state->stream);
  cuEventDestroy(last);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  State state;
  CUdeviceptr memory = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&state.context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(state.context) != CUDA_SUCCESS) return 1;
  if (strcmp(mode, "double_release") == 0) {
    if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) return 1;
    cuMemFree(memory);
    cuMemFree(memory);
  }
  if (strcmp(mode, "use_after_release") == 0) {
    if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) return 1;
    cuMemFree(memory);
    cuMemsetD8(memory, 0, 64);
  }
  if (strcmp(mode, "wrong_order") == 0 || strcmp(mode, "right_order") == 0) {
    if (cuStreamCreate(&state.stream, 0) != CUDA_SUCCESS) return 1;
    if (mode[0] == 'r') close_with(&state);
    state_free(&state);
    if (mode[0] == 'w') close_with(&state);
  }
  if (strcmp(mode, "unbalanced_stack") != 0) cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  if (strcmp(mode, "over_released_primary") == 0) cuDevicePrimaryCtxRelease(0);
  return 0;
}

#endif
