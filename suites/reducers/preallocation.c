// SPDX-License-Identifier: MIT
// preallocation.c: init, preallocate pictures, fetch, close, again and again: what an encoder's quality filter does every 30 frames.
//
// Story   Each turn left memory behind, without bound, and nothing in the library could free it. Four defects, one lifecycle:
//           A1  the caller's state is copied on import; the original has no public free
//           A2  the function table filled from the opened driver library is never freed, the library never closed
//           A3  the ring buffer is freed while its mutex is locked; the mutex is never unlocked or destroyed
//           A4  an init that fails after the primary context was retained does not release it (nor state and table)
// Source  https://github.com/Netflix/vmaf/issues/1300 and https://github.com/lusoris/vmaf, docs/adr/0157; written anew from the facts.
// Forms   REPAIRED: none of them. ONLY_A4: the last alone, so that its state and table show. Otherwise all four.
// Usage   preallocation [cycles]     default 2; a cycle that fails is reported and the next one begins
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(REPAIRED)
enum { kDefectA1 = 0, kDefectA2 = 0, kDefectA3 = 0, kDefectA4 = 0 };
#elif defined(ONLY_A4)
enum { kDefectA1 = 0, kDefectA2 = 0, kDefectA3 = 0, kDefectA4 = 1 };
#else
enum { kDefectA1 = 1, kDefectA2 = 1, kDefectA3 = 1, kDefectA4 = 1 };
#endif

enum { kWidth = 320, kHeight = 180, kPictures = 4, kFrames = 6 };

// The names that the widely used dynamic loader headers bind: _v2 where they do, the first cuDevicePrimaryCtxRelease.
#define USED(X)                                                                                      \
  X(Init, "cuInit", PFN_cuInit_v2000)                                                                \
  X(DeviceGetCount, "cuDeviceGetCount", PFN_cuDeviceGetCount_v2000)                                  \
  X(DeviceGet, "cuDeviceGet", PFN_cuDeviceGet_v2000)                                                 \
  X(GetErrorName, "cuGetErrorName", PFN_cuGetErrorName_v6000)                                        \
  X(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain", PFN_cuDevicePrimaryCtxRetain_v7000)                \
  X(PrimaryCtxRelease, "cuDevicePrimaryCtxRelease", PFN_cuDevicePrimaryCtxRelease_v11000)            \
  X(CtxPush, "cuCtxPushCurrent_v2", PFN_cuCtxPushCurrent_v4000)                                      \
  X(CtxPop, "cuCtxPopCurrent_v2", PFN_cuCtxPopCurrent_v4000)                                         \
  X(CtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", PFN_cuCtxGetStreamPriorityRange_v5050) \
  X(StreamCreate, "cuStreamCreate", PFN_cuStreamCreate_v2000)                                        \
  X(StreamCreateWithPriority, "cuStreamCreateWithPriority", PFN_cuStreamCreateWithPriority_v5050)    \
  X(StreamDestroy, "cuStreamDestroy_v2", PFN_cuStreamDestroy_v4000)                                  \
  X(StreamSynchronize, "cuStreamSynchronize", PFN_cuStreamSynchronize_v2000)                         \
  X(StreamWaitEvent, "cuStreamWaitEvent", PFN_cuStreamWaitEvent_v3020)                               \
  X(EventCreate, "cuEventCreate", PFN_cuEventCreate_v2000)                                           \
  X(EventDestroy, "cuEventDestroy_v2", PFN_cuEventDestroy_v4000)                                     \
  X(EventRecord, "cuEventRecord", PFN_cuEventRecord_v2000)                                           \
  X(EventSynchronize, "cuEventSynchronize", PFN_cuEventSynchronize_v2000)                            \
  X(MemAllocPitch, "cuMemAllocPitch_v2", PFN_cuMemAllocPitch_v3020)                                  \
  X(MemFree, "cuMemFree_v2", PFN_cuMemFree_v3020)                                                    \
  X(Memcpy2DAsync, "cuMemcpy2DAsync_v2", PFN_cuMemcpy2DAsync_v3020)                                  \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", PFN_cuMemcpyHtoDAsync_v3020)

// Bound like the others and never called here; a driver may lack them.
// clang-format off
static const char *const kCarried[] = {
    "cuDeviceGetAttribute", "cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceGetUuid_v2", "cuDeviceGetLuid", "cuDeviceGetByPCIBusId",
    "cuDeviceGetPCIBusId", "cuDeviceComputeCapability", "cuDriverGetVersion", "cuCtxCreate_v2", "cuCtxDestroy_v2", "cuCtxSetLimit",
    "cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxGetDevice", "cuCtxSynchronize", "cuDevicePrimaryCtxSetFlags",
    "cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxReset", "cuMemAlloc_v2", "cuMemAllocManaged", "cuMemsetD8Async", "cuMemsetD8_v2",
    "cuMemcpy", "cuMemcpyAsync", "cuMemcpy2D_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoD_v2",
    "cuMemcpyDtoDAsync_v2", "cuGetErrorString", "cuStreamQuery", "cuStreamAddCallback", "cuEventQuery", "cuLaunchKernel", "cuLinkCreate",
    "cuLinkAddData", "cuLinkComplete", "cuLinkDestroy", "cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuModuleGetGlobal",
    "cuTexObjectCreate", "cuTexObjectDestroy", "cuGLGetDevices_v2", "cuGraphicsGLRegisterImage", "cuGraphicsUnregisterResource",
    "cuGraphicsMapResources", "cuGraphicsUnmapResources", "cuGraphicsSubResourceGetMappedArray", "cuGraphicsResourceGetMappedPointer_v2",
    "cuImportExternalMemory", "cuDestroyExternalMemory", "cuExternalMemoryGetMappedBuffer", "cuExternalMemoryGetMappedMipmappedArray",
    "cuMipmappedArrayGetLevel", "cuMipmappedArrayDestroy", "cuImportExternalSemaphore", "cuDestroyExternalSemaphore",
    "cuSignalExternalSemaphoresAsync", "cuWaitExternalSemaphoresAsync", "cuArrayCreate_v2", "cuArray3DCreate_v2", "cuArrayDestroy",
    "cuEGLStreamConsumerConnect", "cuEGLStreamConsumerDisconnect", "cuEGLStreamProducerConnect", "cuEGLStreamProducerDisconnect",
    "cuEGLStreamProducerPresentFrame"};
// clang-format on

typedef struct Functions {
#define MEMBER(member, name, type) type member;
  USED(MEMBER)
#undef MEMBER
  void *carried[sizeof(kCarried) / sizeof(kCarried[0])];
  void *library;
} Functions;
typedef char FunctionsTakes752Bytes[sizeof(Functions) == 752 ? 1 : -1];

typedef struct State {
  CUcontext context;
  CUstream stream;
  Functions *functions;
  CUdevice device;
  int priority;
  unsigned long frames;
} State;
typedef char StateTakes40Bytes[sizeof(State) == 40 ? 1 : -1];

typedef struct Picture {
  CUdeviceptr plane[3];
  size_t pitch[3];
  CUstream stream;
  CUevent uploaded, used;
} Picture;

typedef struct RingBuffer {
  pthread_mutex_t busy;
  unsigned count, next;
  Picture picture[kPictures];
} RingBuffer;

typedef struct Framework {
  State state;  // by value: the caller keeps the original
  RingBuffer *ring;
} Framework;

static unsigned char frame_on_host[kWidth * kHeight];

static int report(const Functions *cu, const char *what, CUresult result) {
  const char *name = NULL;
  if (result == CUDA_SUCCESS) return 0;
  if (cu == NULL || cu->GetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) name = "no name";
  fprintf(stderr, "preallocation: %s: %s (%d)\n", what, name, (int)result);
  return -1;
}

static void functions_free(Functions *cu) {
  if (cu == NULL) return;
  if (cu->library != NULL) dlclose(cu->library);
  free(cu);
}

static Functions *functions_load(void) {
  size_t i;
  Functions *cu = calloc(1, sizeof *cu);
  if (cu == NULL) return NULL;
  cu->library = dlopen("libcuda.so.1", RTLD_LAZY);
  if (cu->library == NULL) {
    fprintf(stderr, "preallocation: %s\n", dlerror());
    functions_free(cu);
    return NULL;
  }
#define BIND(member, name, type)                                    \
  *(void **)(&cu->member) = dlsym(cu->library, name);               \
  if (cu->member == NULL) {                                         \
    fprintf(stderr, "preallocation: the driver has no %s\n", name); \
    functions_free(cu);                                             \
    return NULL;                                                    \
  }
  USED(BIND)
#undef BIND
  for (i = 0; i < sizeof(kCarried) / sizeof(kCarried[0]); ++i) cu->carried[i] = dlsym(cu->library, kCarried[i]);
  return cu;
}

// Twice: without the context current, nothing that lives in it can be released.
static CUresult enter(const State *state) {
  CUresult result = state->functions->CtxPush(state->context);
  if (result != CUDA_SUCCESS) result = state->functions->CtxPush(state->context);
  return result;
}

static CUresult leave(const State *state) {
  CUcontext popped;
  return state->functions->CtxPop(&popped);
}

static void state_release_stream(State *state) {
  Functions *cu = state->functions;
  const int entered = report(cu, "enter", enter(state)) == 0;
  report(cu, "stream synchronize", cu->StreamSynchronize(state->stream));
  report(cu, "stream destroy", cu->StreamDestroy(state->stream));
  if (entered) report(cu, "leave", leave(state));
  state->stream = NULL;
}

// With the context current. What fails here leaves nothing but the reference that its caller holds.
static CUresult state_create_stream(State *state) {
  Functions *cu = state->functions;
  int least = 0, greatest = 0;
  CUresult result = cu->CtxGetStreamPriorityRange(&least, &greatest);
  if (result != CUDA_SUCCESS) return result;
  state->priority = greatest;
  return cu->StreamCreateWithPriority(&state->stream, CU_STREAM_NON_BLOCKING, greatest);
}

static CUresult state_open_context(State *state) {
  CUresult left, result = state->functions->CtxPush(state->context);
  if (result != CUDA_SUCCESS) return result;
  result = state_create_stream(state);
  left = leave(state);
  if (result == CUDA_SUCCESS && left != CUDA_SUCCESS) {
    state_release_stream(state);
    result = left;
  }
  return result;
}

static int state_init(State **out) {
  CUresult result;
  int devices = 0;
  State *state = calloc(1, sizeof *state);
  if (state == NULL) return -1;
  state->functions = functions_load();
  if (state->functions == NULL) {
    free(state);
    return -1;
  }
  result = state->functions->Init(0);
  if (result == CUDA_SUCCESS) result = state->functions->DeviceGetCount(&devices);
  if (result == CUDA_SUCCESS && devices == 0) result = CUDA_ERROR_NO_DEVICE;
  if (result == CUDA_SUCCESS) result = state->functions->DeviceGet(&state->device, 0);
  if (result == CUDA_SUCCESS) result = state->functions->PrimaryCtxRetain(&state->context, state->device);
  if (result == CUDA_SUCCESS) {
    result = state_open_context(state);
    if (result != CUDA_SUCCESS && kDefectA4) return report(state->functions, "init", result);
    if (result != CUDA_SUCCESS) {
      report(state->functions, "context release", state->functions->PrimaryCtxRelease(state->device));
    }
  }
  if (result != CUDA_SUCCESS) {
    report(state->functions, "init", result);
    functions_free(state->functions);
    free(state);
    return -1;
  }
  *out = state;
  return 0;
}

static void picture_free(const State *state, Picture *picture) {
  Functions *cu = state->functions;
  int i;
  if (picture->stream != NULL) report(cu, "picture synchronize", cu->StreamSynchronize(picture->stream));
  for (i = 2; i >= 0; --i) {
    if (picture->plane[i] != 0) report(cu, "plane free", cu->MemFree(picture->plane[i]));
  }
  if (picture->used != NULL) report(cu, "event destroy", cu->EventDestroy(picture->used));
  if (picture->uploaded != NULL) report(cu, "event destroy", cu->EventDestroy(picture->uploaded));
  if (picture->stream != NULL) report(cu, "stream destroy", cu->StreamDestroy(picture->stream));
  memset(picture, 0, sizeof *picture);
}

// A call that fails may have written anything to its output; nobody may take that for a handle.
#define STEP(call, output)        \
  do {                            \
    const CUresult step = (call); \
    if (step != CUDA_SUCCESS) {   \
      (output) = 0;               \
      return step;                \
    }                             \
  } while (0)

static CUresult picture_steps(Functions *cu, Picture *picture) {
  int i;
  STEP(cu->StreamCreate(&picture->stream, CU_STREAM_NON_BLOCKING), picture->stream);
  STEP(cu->EventCreate(&picture->uploaded, CU_EVENT_DISABLE_TIMING), picture->uploaded);
  STEP(cu->EventCreate(&picture->used, CU_EVENT_DISABLE_TIMING), picture->used);
  for (i = 0; i < 3; ++i) {
    const size_t half = i == 0 ? 1 : 2;
    STEP(cu->MemAllocPitch(&picture->plane[i], &picture->pitch[i], kWidth / half, kHeight / half, 4), picture->plane[i]);
  }
  return CUDA_SUCCESS;
}

static CUresult picture_alloc(const State *state, Picture *picture) {
  const CUresult result = picture_steps(state->functions, picture);
  if (result != CUDA_SUCCESS) picture_free(state, picture);
  return result;
}

static int framework_preallocate(Framework *framework) {
  CUresult result, left;
  RingBuffer *ring = calloc(1, sizeof *ring);
  if (ring == NULL) return -1;
  pthread_mutex_init(&ring->busy, NULL);
  framework->ring = ring;
  result = framework->state.functions->CtxPush(framework->state.context);
  if (result != CUDA_SUCCESS) return report(framework->state.functions, "preallocate", result);
  while (ring->count < kPictures) {
    result = picture_alloc(&framework->state, &ring->picture[ring->count]);
    if (result != CUDA_SUCCESS) break;
    ++ring->count;
  }
  left = leave(&framework->state);
  return report(framework->state.functions, "preallocate", result != CUDA_SUCCESS ? result : left);
}

static CUresult upload(const State *state, const Picture *picture) {
  Functions *cu = state->functions;
  CUDA_MEMCPY2D copy;
  CUresult result = CUDA_SUCCESS;
  int i;
  for (i = 0; i < 2 && result == CUDA_SUCCESS; ++i) {
    memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = frame_on_host;
    copy.srcPitch = kWidth;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = picture->plane[i];
    copy.dstPitch = picture->pitch[i];
    copy.WidthInBytes = i == 0 ? kWidth : kWidth / 2;
    copy.Height = i == 0 ? kHeight : kHeight / 2;
    result = cu->Memcpy2DAsync(&copy, picture->stream);
  }
  if (result == CUDA_SUCCESS) result = cu->MemcpyHtoDAsync(picture->plane[2], frame_on_host, kWidth / 2, picture->stream);
  if (result == CUDA_SUCCESS) result = cu->EventRecord(picture->uploaded, picture->stream);
  if (result == CUDA_SUCCESS) result = cu->StreamWaitEvent(state->stream, picture->uploaded, 0);
  if (result == CUDA_SUCCESS) result = cu->EventRecord(picture->used, state->stream);
  if (result == CUDA_SUCCESS) result = cu->EventSynchronize(picture->used);
  return result;
}

static int framework_fetch(Framework *framework) {
  RingBuffer *ring = framework->ring;
  Picture *picture;
  CUresult result, left;
  pthread_mutex_lock(&ring->busy);
  picture = &ring->picture[ring->next];
  ring->next = (ring->next + 1) % ring->count;
  pthread_mutex_unlock(&ring->busy);
  result = framework->state.functions->CtxPush(framework->state.context);
  if (result != CUDA_SUCCESS) return report(framework->state.functions, "fetch", result);
  result = upload(&framework->state, picture);
  left = leave(&framework->state);
  return report(framework->state.functions, "fetch", result != CUDA_SUCCESS ? result : left);
}

static void ring_close(const State *state, RingBuffer *ring) {
  unsigned i;
  int entered;
  pthread_mutex_lock(&ring->busy);
  entered = report(state->functions, "enter", enter(state)) == 0;
  for (i = 0; i < ring->count; ++i) picture_free(state, &ring->picture[i]);
  if (entered) report(state->functions, "leave", leave(state));
  if (!kDefectA3) {
    pthread_mutex_unlock(&ring->busy);
    pthread_mutex_destroy(&ring->busy);
  }
  free(ring);
}

static void framework_close(Framework *framework) {
  State *state = &framework->state;
  if (framework->ring != NULL) ring_close(state, framework->ring);
  state_release_stream(state);
  report(state->functions, "context release", state->functions->PrimaryCtxRelease(state->device));
  if (!kDefectA2) functions_free(state->functions);
}

static int run_cycle(void) {
  Framework framework;
  State *state = NULL;
  int i, failed;
  if (state_init(&state) != 0) return -1;
  memset(&framework, 0, sizeof framework);
  framework.state = *state;
  failed = framework_preallocate(&framework);
  for (i = 0; i < kFrames && failed == 0; ++i) failed = framework_fetch(&framework);
  framework_close(&framework);
  if (!kDefectA1) free(state);
  return failed;
}

int main(int argc, char **argv) {
  const long cycles = argc > 1 ? strtol(argv[1], NULL, 10) : 2;
  long i, failures = 0;
  for (i = 0; i < cycles; ++i) {
    if (run_cycle() == 0) continue;
    fprintf(stderr, "preallocation: cycle %ld failed\n", i + 1);
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}
