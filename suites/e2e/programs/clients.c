// SPDX-License-Identifier: MIT
// clients.c: programs that make the same calls (lifecycle.h) and differ in how they find the driver; a definition chooses one.
//
//   CLIENT_LINKED        linked to libcuda at build time, the addresses taken; also with AddressSanitizer, which looks for leaks at the end
//                        client_linked [leak]: loses 100 bytes of its own, once
//   CLIENT_LAZY          direct calls through the procedure linkage table, bound at the first call or at once: no address is taken
//   CLIENT_DESCRIPTORS   a daemon's manners: closes every file descriptor, also those that it never opened
//                        descriptors early|late: before the first driver call, or between two lifecycles
//   CLIENT_IDLE          linked to libcuda, and calls nothing of it; idle version: only asks for its version
//   CLIENT_DLOPEN        looks every entry point up in a library opened by name; also as a static position-independent program
//                        client_dlopen [library [deepbind]]
//   CLIENT_REOPEN        closes the driver, opens it again, and still calls it from an exit handler and from a destructor
//   CLIENT_TABLE         the loader of the nv-codec headers: a heap table filled by name, in which every mandatory entry must be there
//   CLIENT_PROC_ADDRESS  gets every entry point from cuGetProcAddress: client_proc_address 1|2 FLAGS, the generation and its flags
//   CLIENT_ANSWERS       prints what both generations of cuGetProcAddress answer to good and bad questions, one line each: proc_address_answers
//                        generation name version flags: result, status (v2 only), which exported symbol the pointer is, or "null", or
//                        "untouched" when the pointer was not written
//   CLIENT_PLUGIN        a host that knows nothing of CUDA and opens a plug-in with RTLD_DEEPBIND: client_plugin PLUGIN.so
//   CLIENT_IS_PLUGIN     that plug-in: a shared library linked to libcuda, which prefers its own dependencies
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(CLIENT_LINKED) || defined(CLIENT_DESCRIPTORS) || defined(CLIENT_IS_PLUGIN)
#include "lifecycle.h"

static const Api linked_api = {
#define ADDRESS(name) .JOINED(p_, name) = &name,
    LIFECYCLE_CALLS(ADDRESS)
#undef ADDRESS
};
#endif

#if defined(CLIENT_DLOPEN) || defined(CLIENT_REOPEN) || defined(CLIENT_TABLE)
#include "lifecycle.h"

/* 0 when the library has all of them. */
static int look_up(void *library, Api *api) {
#define LOOK_UP(name)                                                \
  *(void **)(&api->JOINED(p_, name)) = dlsym(library, SYMBOL(name)); \
  if (api->JOINED(p_, name) == NULL) return 6;
  LIFECYCLE_CALLS(LOOK_UP)
#undef LOOK_UP
  return 0;
}
#endif

#if defined(CLIENT_LINKED)
static void *volatile kept;

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "leak") == 0) {
    kept = malloc(100);
    if (kept != NULL) memset(kept, 1, 100);
    kept = NULL;
  }
  return lifecycle(&linked_api);
}

#elif defined(CLIENT_LAZY)
#include <cuda.h>

int main(void) {
  CUdevice device = 0;
  CUcontext context = NULL;
  CUdeviceptr memory = 0;
  int given = 42, back = 0, failed = 1;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxCreate(&context, NULL, 0, device) != CUDA_SUCCESS) return 1;
  if (cuMemAlloc(&memory, 4096) == CUDA_SUCCESS) {
    failed = cuMemcpyHtoD(memory, &given, sizeof(given)) != CUDA_SUCCESS || cuMemcpyDtoH(&back, memory, sizeof(back)) != CUDA_SUCCESS;
    cuMemFree(memory);
  }
  cuCtxDestroy(context);
  if (!failed) printf("answer %d\n", back);
  return failed;
}

#elif defined(CLIENT_DESCRIPTORS)
static void close_all(void) {
  int fd;
  for (fd = 0; fd < 1024; ++fd) close(fd);
}

int main(int argc, char **argv) {
  int status = 0;
  if (argc > 1 && strcmp(argv[1], "late") == 0) status = lifecycle(&linked_api);
  close_all();
  return status | lifecycle(&linked_api);
}

#elif defined(CLIENT_IDLE)
#include <cuda.h>

int main(int argc, char **argv) {
  int version = 0;
  if (argc > 1 && strcmp(argv[1], "version") == 0 && cuDriverGetVersion(&version) != CUDA_SUCCESS) return 1;
  printf("idle\n");
  return 0;
}

#elif defined(CLIENT_DLOPEN)
int main(int argc, char **argv) {
  Api api;
  const int flags = RTLD_NOW | (argc > 2 && strcmp(argv[2], "deepbind") == 0 ? RTLD_DEEPBIND : 0);
  int status;
  void *library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", flags);
  if (library == NULL) {
    fprintf(stderr, "client_dlopen: %s\n", dlerror());
    return 5;
  }
  status = look_up(library, &api);
  if (status != 0) return status;
  status = lifecycle(&api);
  dlclose(library);
  return status;
}

#elif defined(CLIENT_REOPEN)
static CUresult (*version_of)(int *);

static void ask(const char *when) {
  int version = 0;
  CUresult result = version_of == NULL ? CUDA_ERROR_NOT_FOUND : version_of(&version);
  printf("%s %d\n", when, result == CUDA_SUCCESS && version > 0);
  fflush(stdout);
}

static void at_exit(void) { ask("atexit"); }

__attribute__((destructor)) static void at_end(void) { ask("destructor"); }

int main(void) {
  int round, status = 0;
  for (round = 0; round < 2; ++round) {
    Api api;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return 5;
    if (look_up(library, &api) != 0) return 6;
    *(void **)(&version_of) = dlsym(library, "cuDriverGetVersion");
    if (round == 0) atexit(&at_exit);
    status |= lifecycle(&api);
    dlclose(library);
  }
  return status;
}

#elif defined(CLIENT_TABLE)
/* cuGLGetDevices and the graphics calls are mandatory for that loader although no audio or video program here calls them; the
   first-generation symbols (cuDevicePrimaryCtxRelease without suffix, cuLinkCreate) are asked for on purpose. */
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
  if (look_up(table->library, &table->api) != 0) return 6;
  *(void **)(&table->api.JOINED(p_, cuDevicePrimaryCtxRelease)) = dlsym(table->library, "cuDevicePrimaryCtxRelease");
  status = lifecycle(&table->api);
  dlclose(table->library);
  free(table);
  return status;
}

#elif defined(CLIENT_PROC_ADDRESS)
#include "lifecycle.h"

typedef CUresult (*First)(const char *, void **, int, cuuint64_t);
typedef CUresult (*Second)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

int main(int argc, char **argv) {
  Api api;
  First first;
  Second second;
  int generation = argc > 1 ? atoi(argv[1]) : 2;
  cuuint64_t flags = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return 5;
  *(void **)(&first) = dlsym(library, "cuGetProcAddress");
  *(void **)(&second) = dlsym(library, "cuGetProcAddress_v2");
  if (first == NULL || second == NULL) return 6;
#define ASK(name)                                                                                                     \
  {                                                                                                                   \
    CUdriverProcAddressQueryResult how = CU_GET_PROC_ADDRESS_SUCCESS;                                                 \
    void **where = (void **)(&api.JOINED(p_, name));                                                                  \
    CUresult answer = generation == 1 ? first(#name, where, 12000, flags) : second(#name, where, 12000, flags, &how); \
    if (answer != CUDA_SUCCESS || how != CU_GET_PROC_ADDRESS_SUCCESS || *where == NULL) {                             \
      fprintf(stderr, "client_proc_address: %s: %d %d\n", #name, (int)answer, (int)how);                              \
      return 7;                                                                                                       \
    }                                                                                                                 \
  }
  LIFECYCLE_CALLS(ASK)
#undef ASK
  return lifecycle(&api);
}

#elif defined(CLIENT_PLUGIN)
int main(int argc, char **argv) {
  int (*run)(void);
  int status;
  void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
  if (plugin == NULL) {
    fprintf(stderr, "client_plugin: %s\n", dlerror());
    return 5;
  }
  *(void **)(&run) = dlsym(plugin, "run_plugin");
  if (run == NULL) return 6;
  status = run();
  dlclose(plugin);
  return status;
}

#elif defined(CLIENT_IS_PLUGIN)
int run_plugin(void);
int run_plugin(void) { return lifecycle(&linked_api); }

#elif defined(CLIENT_ANSWERS)
#include <cuda.h>

typedef CUresult (*First)(const char *, void **, int, cuuint64_t);
typedef CUresult (*Second)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static char untouched;

static const char *what(void *pointer) {
  Dl_info info;
  if (pointer == NULL) return "null";
  if (pointer == &untouched) return "untouched";
  return dladdr(pointer, &info) != 0 && info.dli_saddr == pointer ? info.dli_sname : "unknown";
}

int main(void) {
  static const struct {
    const char *name;
    int version;
    cuuint64_t flags;
  } kQuestions[] = {
      {"cuMemAlloc", 3020, 0},           {"cuMemAlloc", 12000, 1},
      {"cuMemAlloc", 99000, 0},          {"cuMemcpyHtoD", 12000, 2},
      {"cuStreamSynchronize", 12000, 2}, {"cuStreamSynchronize", 12000, 0},
      {"cuStreamSynchronize", 6000, 2},  {"cuNoSuchCall", 12000, 0},
      {"cuMemAlloc_v2", 12000, 0},       {"", 0, 0},
      {"cuGraphCreate", 9000, 0},        {"cuMemAlloc", 12000, 7},
      {"cuGraphInstantiate", 11000, 0},  {"cuGraphInstantiate", 12000, 0},
      {"cuCtxCreate", 3020, 0},          {"cuCtxCreate", 11040, 0},
      {"cuGetProcAddress", 12000, 0},
  };
  First first;
  Second second;
  size_t i;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return 5;
  *(void **)(&first) = dlsym(library, "cuGetProcAddress");
  *(void **)(&second) = dlsym(library, "cuGetProcAddress_v2");
  for (i = 0; i < sizeof(kQuestions) / sizeof(kQuestions[0]); ++i) {
    CUdriverProcAddressQueryResult how = (CUdriverProcAddressQueryResult)9;
    void *one = &untouched, *two = &untouched, *three = &untouched;
    CUresult r1 = first(kQuestions[i].name, &one, kQuestions[i].version, kQuestions[i].flags);
    CUresult r2 = second(kQuestions[i].name, &two, kQuestions[i].version, kQuestions[i].flags, &how);
    CUresult r3 = second(kQuestions[i].name, &three, kQuestions[i].version, kQuestions[i].flags, NULL);
    printf("'%s' %d %d: v1 %d %s, v2 %d", kQuestions[i].name, kQuestions[i].version, (int)kQuestions[i].flags, (int)r1, what(one), (int)r2);
    if (r2 == CUDA_SUCCESS) printf(" %d %s", (int)how, what(two));
    printf("%s\n", r3 == r2 && three == two ? "" : ", another answer without a status pointer");
  }
  return 0;
}

#else
#error "clients.c: a definition must choose the client"
#endif
