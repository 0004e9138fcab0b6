// SPDX-License-Identifier: MIT
// exports.c: shares memory by file descriptors. When the call after the export fails, it goes wrong with the descriptor, or, `clean`, does
// not.
// Usage   exports allocation|pool|range|import|unseen|reused [clean]
//   unseen  the driver closes the descriptor of the import past the host probes, as a genuine one does
//   reused  another file then gets its number, unseen as well
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const size_t kBytes = (size_t)2 << 20;
static int unseen = 0;

// The simulated driver calls this function, too.
int close(int descriptor) {
  static int (*next)(int) = NULL;
  if (unseen) return (int)syscall(SYS_close, descriptor);
  if (next == NULL) {
    void *found = dlsym(RTLD_NEXT, "close");
    memcpy(&next, &found, sizeof(next));
  }
  return next(descriptor);
}

typedef struct Shared {
  CUmemGenericAllocationHandle physical;
  CUmemoryPool pool;
  CUdeviceptr memory;
  CUexternalMemory external;
  int descriptor;
} Shared;

static CUresult export_allocation(Shared *shared) {
  const CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  const CUresult result = cuMemCreate(&shared->physical, kBytes, &wanted, 0);
  if (result != CUDA_SUCCESS) return result;
  return cuMemExportToShareableHandle(&shared->descriptor, shared->physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

static CUresult export_pool(Shared *shared) {
  CUmemPoolProps wanted;
  CUresult result;
  memset(&wanted, 0, sizeof(wanted));
  wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  result = cuMemPoolCreate(&shared->pool, &wanted);
  if (result != CUDA_SUCCESS) return result;
  return cuMemPoolExportToShareableHandle(&shared->descriptor, shared->pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

static CUresult export_range(Shared *shared) {
  const CUresult result = cuMemAlloc(&shared->memory, kBytes);
  if (result != CUDA_SUCCESS) return result;
  return cuMemGetHandleForAddressRange(&shared->descriptor, shared->memory, kBytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
}

// The driver takes the descriptor over when the import succeeds. The wrong program closes it on its failing path all the same.
static CUresult import(Shared *shared, const char *how, int clean) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC from;
  CUresult result = export_allocation(shared);
  if (result != CUDA_SUCCESS) return result;
  memset(&from, 0, sizeof(from));
  from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  from.size = kBytes;
  from.handle.fd = shared->descriptor;
  unseen = strcmp(how, "import") != 0;
  result = cuImportExternalMemory(&shared->external, &from);
  unseen = 0;
  if (result != CUDA_SUCCESS) return result;
  if (clean) shared->descriptor = -1;
  if (strcmp(how, "reused") == 0) shared->descriptor = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY);
  return CUDA_SUCCESS;
}

static CUresult use(void) {
  CUevent event;
  const CUresult result = cuEventCreate(&event, 0);
  return result == CUDA_SUCCESS ? cuEventDestroy(event) : result;
}

static CUresult run(const char *what, int clean) {
  const int reused = strcmp(what, "reused") == 0;
  const int imports = reused || strcmp(what, "import") == 0 || strcmp(what, "unseen") == 0;
  Shared shared = {0, NULL, 0, NULL, -1};
  CUresult result;
  if (imports) {
    result = import(&shared, what, clean);
  } else if (strcmp(what, "pool") == 0) {
    result = export_pool(&shared);
  } else {
    result = strcmp(what, "range") == 0 ? export_range(&shared) : export_allocation(&shared);
  }
  const int exported = shared.descriptor >= 0;
  if (result == CUDA_SUCCESS) {
    result = use();
    if (imports && !reused && result == CUDA_SUCCESS) shared.descriptor = -1;  // forgotten when `use` fails
    if (!imports && exported && result != CUDA_SUCCESS && !clean) shared.descriptor = -1;
  }
  if (shared.descriptor >= 0) close(shared.descriptor);
  if (shared.external != NULL) cuDestroyExternalMemory(shared.external);
  if (shared.memory != 0) cuMemFree(shared.memory);
  if (shared.pool != NULL) cuMemPoolDestroy(shared.pool);
  if (shared.physical != 0) cuMemRelease(shared.physical);
  return result;
}

int main(int argc, char **argv) {
  CUcontext context;
  CUresult result;
  if (argc < 2) return 9;
  result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, 0);
  if (result != CUDA_SUCCESS) return 1;
  result = cuCtxPushCurrent(context);
  if (result == CUDA_SUCCESS) {
    result = run(argv[1], argc > 2);
    cuCtxPopCurrent(NULL);
  }
  cuDevicePrimaryCtxRelease(0);
  return result == CUDA_SUCCESS ? 0 : 1;
}
