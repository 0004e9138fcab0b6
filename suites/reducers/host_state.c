// SPDX-License-Identifier: MIT
// host_state.c: three small lifecycles that lose host memory because a driver call failed, or because nobody thought of it.
//
// Story   E2  an encoder is opened: its state is allocated first, the stream after it; without a stream it returns, and the state stays
//         E3  a wrapper copies the addresses of a launch's arguments into an array on the heap, and keeps the array
//         E6  a memory domain is opened: the domain is lost when the first driver call fails, the domain and its list of rails when the
//             second one does
// Source  https://gitlab.freedesktop.org/gstreamer/gstreamer (nvcodec), https://github.com/eyalroz/cuda-api-wrappers,
//         https://github.com/openucx/ucx (uct/cuda); written anew from the facts of the fixes.
// Forms   REPAIRED: whoever allocates frees, on every way out. Otherwise all defects.
// Usage   host_state [cycles]      default 2; a cycle that fails is reported and the next one begins
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(REPAIRED)
enum { kFrees = 1 };
#else
enum { kFrees = 0 };
#endif

enum { kArguments = 3, kStateBytes = 312, kDomainBytes = 96, kRailBytes = 160, kProbeBytes = 4096 };

static const char kPtx[] =
    ".version 8.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry scale(.param .u64 to, .param .u64 from, .param .u32 count) { ret; }\n";

static int report(const char *what, CUresult result) {
  const char *name = NULL;
  if (result == CUDA_SUCCESS) return 0;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) name = "no name";
  fprintf(stderr, "host_state: %s: %s (%d)\n", what, name, (int)result);
  return -1;
}

// E2.
typedef struct Encoder {
  CUstream stream;
  char settings[kStateBytes - sizeof(CUstream)];
} Encoder;

static CUresult encoder_open(Encoder **out) {
  Encoder *encoder = calloc(1, sizeof *encoder);
  CUresult result;
  if (encoder == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  result = cuStreamCreate(&encoder->stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) {
    if (kFrees) free(encoder);
    return result;
  }
  *out = encoder;
  return CUDA_SUCCESS;
}

static int run_encoder(void) {
  Encoder *encoder = NULL;
  const int failed = report("encoder", encoder_open(&encoder));
  if (encoder == NULL) return failed;
  report("stream destroy", cuStreamDestroy(encoder->stream));
  free(encoder);
  return failed;
}

// E3. Two device buffers and a count.
static CUresult enqueue_launch(CUfunction function, CUdeviceptr memory) {
  CUdeviceptr to = memory, from = memory;
  unsigned count = 16;
  CUresult result;
  void **arguments = malloc(kArguments * sizeof *arguments);
  if (arguments == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  arguments[0] = &to;
  arguments[1] = &from;
  arguments[2] = &count;
  result = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL);
  if (kFrees) free(arguments);
  return result;
}

static int run_launch(void) {
  CUmodule module;
  CUfunction function;
  CUdeviceptr memory;
  CUresult result = cuModuleLoadData(&module, kPtx);
  if (result != CUDA_SUCCESS) return report("module", result);
  result = cuMemAlloc(&memory, kProbeBytes);
  if (result == CUDA_SUCCESS) {
    result = cuModuleGetFunction(&function, module, "scale");
    if (result == CUDA_SUCCESS) result = enqueue_launch(function, memory);
    report("launch free", cuMemFree(memory));
  }
  report("module unload", cuModuleUnload(module));
  return report("launch", result);
}

// E6.
typedef struct Domain {
  char *rails;
  CUdeviceptr probe;
  char description[kDomainBytes - sizeof(char *) - sizeof(CUdeviceptr)];
} Domain;

static CUresult domain_open(CUdevice device, Domain **out) {
  int unified = 0;
  CUresult result;
  Domain *domain = calloc(1, sizeof *domain);
  if (domain == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  result = cuDeviceGetAttribute(&unified, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, device);
  if (result != CUDA_SUCCESS) {
    if (kFrees) free(domain);
    return result;
  }
  domain->rails = calloc(1, kRailBytes);
  result = domain->rails == NULL ? CUDA_ERROR_OUT_OF_MEMORY : cuMemAlloc(&domain->probe, kProbeBytes);
  if (result != CUDA_SUCCESS) {
    if (kFrees) {
      free(domain->rails);
      free(domain);
    }
    return result;
  }
  *out = domain;
  return CUDA_SUCCESS;
}

static int run_domain(CUdevice device) {
  Domain *domain = NULL;
  const int failed = report("domain", domain_open(device, &domain));
  if (domain == NULL) return failed;
  report("probe free", cuMemFree(domain->probe));
  free(domain->rails);
  free(domain);
  return failed;
}

static int run_cycle(void) {
  CUcontext context, popped;
  CUdevice device;
  int failed;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDeviceGet(&device, 0);
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, device);
  if (result != CUDA_SUCCESS) return report("context", result);
  result = cuCtxPushCurrent(context);
  failed = report("enter", result);
  if (result == CUDA_SUCCESS) {
    failed |= run_encoder();
    failed |= run_launch();
    failed |= run_domain(device);
    failed |= report("leave", cuCtxPopCurrent(&popped));
  }
  report("context release", cuDevicePrimaryCtxRelease(device));
  return failed;
}

int main(int argc, char **argv) {
  const long cycles = argc > 1 ? strtol(argv[1], NULL, 10) : 2;
  long i, failures = 0;
  for (i = 0; i < cycles; ++i) {
    if (run_cycle() == 0) continue;
    fprintf(stderr, "host_state: cycle %ld failed\n", i + 1);
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}
