// SPDX-License-Identifier: MIT
// client_table.c: the loader of the nv-codec headers: a heap table filled by name, in which every mandatory entry must be there.
// Story   cuGLGetDevices and the graphics calls are mandatory for that loader although no audio or video program here calls them; the
//         first-generation symbols (cuDevicePrimaryCtxRelease without suffix, cuLinkCreate) are asked for on purpose.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "lifecycle.h"

static char mandatory[] =
    "cuInit cuDeviceGetCount cuDeviceGet cuDeviceGetAttribute cuDeviceGetName cuDeviceGetUuid "
    "cuDeviceComputeCapability cuCtxCreate_v2 cuCtxSetLimit cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuCtxDestroy_v2 "
    "cuMemAlloc_v2 cuMemAllocPitch_v2 cuMemAllocManaged cuMemsetD8Async cuMemFree_v2 cuMemcpy cuMemcpyAsync "
    "cuMemcpy2D_v2 cuMemcpy2DAsync_v2 cuMemcpyHtoD_v2 cuMemcpyHtoDAsync_v2 cuMemcpyDtoH_v2 cuMemcpyDtoHAsync_v2 "
    "cuMemcpyDtoD_v2 cuMemcpyDtoDAsync_v2 cuGetErrorName cuGetErrorString cuCtxGetDevice cuDevicePrimaryCtxRetain "
    "cuDevicePrimaryCtxRelease cuDevicePrimaryCtxSetFlags cuDevicePrimaryCtxGetState cuDevicePrimaryCtxReset "
    "cuStreamCreate cuStreamQuery cuStreamSynchronize cuStreamDestroy_v2 cuStreamAddCallback cuStreamWaitEvent "
    "cuEventCreate cuEventDestroy_v2 cuEventSynchronize cuEventQuery cuEventRecord cuLaunchKernel cuLinkCreate "
    "cuLinkAddData cuLinkComplete cuLinkDestroy cuModuleLoadData cuModuleUnload cuModuleGetFunction "
    "cuModuleGetGlobal cuTexObjectCreate cuTexObjectDestroy cuGLGetDevices_v2 cuGraphicsGLRegisterImage "
    "cuGraphicsUnregisterResource cuGraphicsMapResources cuGraphicsUnmapResources "
    "cuGraphicsSubResourceGetMappedArray cuGraphicsResourceGetMappedPointer_v2 cuDeviceGetUuid_v2 "
    "cuImportExternalMemory cuDestroyExternalMemory cuExternalMemoryGetMappedBuffer cuImportExternalSemaphore "
    "cuDestroyExternalSemaphore cuSignalExternalSemaphoresAsync";

typedef struct Table {
  void *library;
  void *optional_egl;
  Api api;
} Table;

int main(void) {
  int status;
  char *name;
  Table *table = calloc(1, sizeof(*table));
  if (table == NULL || (table->library = dlopen("libcuda.so.1", RTLD_LAZY)) == NULL) return 5;
  for (name = strtok(mandatory, " "); name != NULL; name = strtok(NULL, " ")) {
    if (dlsym(table->library, name) == NULL) {
      fprintf(stderr, "client_table: no %s\n", name);
      return 6;
    }
  }
  table->optional_egl = dlsym(table->library, "cuEGLStreamProducerConnect");
#define LOOK_UP(name) *(void **)(&table->api.JOINED(p_, name)) = dlsym(table->library, SYMBOL(name));
  LIFECYCLE_CALLS(LOOK_UP)
#undef LOOK_UP
  *(void **)(&table->api.JOINED(p_, cuDevicePrimaryCtxRelease)) = dlsym(table->library, "cuDevicePrimaryCtxRelease");
  status = lifecycle(&table->api);
  dlclose(table->library);
  free(table);
  return status;
}
