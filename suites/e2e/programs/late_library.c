// SPDX-License-Identifier: MIT
// late_library.c: libraries in the place of the driver's, and the program that opens one late; a definition chooses the program.
//
// other_driver (OTHER_DRIVER): a libcuda.so.1 that is not cuaudit's: enough of one to run `marked` and the hostile programs that a machine
// may refuse, where no tool is in the process.
//
// late_library: each cycle forks a child that opens the driver's library, lets it work and closes it; with LATE_DRIVER that library,
// named as the driver's own are, which keeps a block and a mutex for itself and calls its caller back meanwhile.
//
// Usage   late_library LIBRARY clean|leaks CYCLES. `leaks`: the program's own callback keeps a block, below the driver's frames.
#if defined(OTHER_DRIVER)
#include <cuda.h>

static int object;

CUresult CUDAAPI cuInit(unsigned int flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  *context = (CUcontext)(void *)&object;
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) { return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }
CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) { return context != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }
CUresult CUDAAPI cuCtxPopCurrent(CUcontext *context) {
  if (context != NULL) *context = (CUcontext)(void *)&object;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context) {
  *context = (CUcontext)(void *)&object;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned int flags) {
  *stream = (CUstream)(void *)&object;
  return flags < 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuStreamDestroy(CUstream stream) { return stream != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }
CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned int flags) {
  *event = (CUevent)(void *)&object;
  return flags < 8 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  return event != NULL && stream != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult CUDAAPI cuEventDestroy(CUevent event) { return event != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }
#else
#ifdef LATE_DRIVER
#include <pthread.h>
#include <stdlib.h>

void late_work(void (*callback)(void));
void late_work(void (*callback)(void)) {
  pthread_mutex_t *const mutex = malloc(sizeof(*mutex));
  if (mutex == NULL || pthread_mutex_init(mutex, NULL) != 0) abort();
  callback();
}
#else
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int leaks;
static void *volatile kept;

static void own_callback(void) {
  void *const block = malloc(24);
  if (leaks) {
    kept = block;
  } else {
    free(block);
  }
}

static int child(const char *file) {
  void (*work)(void (*)(void));
  void *const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL || cuInit(0) != CUDA_SUCCESS) return 3;
  *(void **)(&work) = dlsym(library, "late_work");
  work(&own_callback);
  return dlclose(library);
}

int main(int argc, char **argv) {
  int i;
  if (argc != 4) return 2;
  leaks = strcmp(argv[2], "leaks") == 0;
  for (i = 0; i < atoi(argv[3]); ++i) {
    int status = 1;
    const pid_t process = fork();
    if (process == 0) _exit(child(argv[1]));
    if (waitpid(process, &status, 0) != process || status != 0) return 1;
  }
  return 0;
}
#endif
#endif
