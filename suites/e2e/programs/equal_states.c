// SPDX-License-Identifier: MIT
// equal_states.c: programs whose defect hangs on data that is in no call stack and in no ledger.
// Usage   equal_states MODE [LIBRARY...]
//   careful   two turns of a loop, nothing wrong
//   item      the error path of the second turn loses its stream
//   planes    five planes in an array; the error path frees the first three, as it did when there were three
//   cycles    a marked cycle for each of four codecs; that of the third loses its stream
//   back      the way back of the second turn loses its stream when the event's release is refused, too
//   library   the libraries in turn, which may be copies of one file; the second call loses its event
// With LIBRARY: the library of `library`, an event and a stream; the second time the error path loses the event.
#ifdef LIBRARY
#include <cuda.h>

int work(int careless) {
  CUevent event;
  CUstream stream;
  if (cuEventCreate(&event, 0) != CUDA_SUCCESS) return 1;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    if (!careless) cuEventDestroy(event);
    return 1;
  }
  cuStreamDestroy(stream);
  cuEventDestroy(event);
  return 0;
}
#else
#include <cuaudit/mark.h>
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char *mode = "";

static int is(const char *name) { return strcmp(mode, name) == 0; }

static CUresult make(int number, int careless) {
  CUstream stream;
  CUevent event;
  CUresult result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), back;
  if (result != CUDA_SUCCESS) return result;
  result = cuEventCreate(&event, 0);
  if (result != CUDA_SUCCESS) {
    if (!is("back") && number == careless) return result;
  } else {
    result = cuEventRecord(event, stream);
    back = cuEventDestroy(event);
    if (result != CUDA_SUCCESS && back != CUDA_SUCCESS && is("back") && number == careless) return result;
    if (result == CUDA_SUCCESS) result = back;
  }
  back = cuStreamDestroy(stream);
  return result == CUDA_SUCCESS ? back : result;
}

static int items(int count, int careless) {
  int failed = 0;
  for (int i = 0; i < count && !failed; ++i) failed = make(i, careless) != CUDA_SUCCESS;
  return failed;
}

static int planes(int count) {
  CUdeviceptr plane[5];
  int made = 0, failed = 0;
  while (made < count && !failed) {
    failed = cuMemAlloc(&plane[made], 4096) != CUDA_SUCCESS;
    if (!failed) ++made;
  }
  if (failed && made > 3) made = 3;
  for (int i = 0; i < made; ++i) cuMemFree(plane[i]);
  return failed;
}

static int cycles(int count, int careless) {
  int any = 0;
  for (int i = 0; i < count; ++i) {
    cuaudit_cycle_begin();
    const CUresult result = make(i, careless);
    cuaudit_report((int)result);
    cuaudit_cycle_end();
    any |= result != CUDA_SUCCESS;
  }
  return any;
}

static int libraries(char **path) {
  int failed = 0;
  for (int i = 0; path[i] != NULL && !failed; ++i) {
    void *library = dlopen(path[i], RTLD_NOW);
    int (*work)(int);
    if (library == NULL) return 1;
    *(void **)&work = dlsym(library, "work");
    failed = work == NULL || work(i) != 0;
    dlclose(library);
  }
  return failed;
}

int main(int argc, char **argv) {
  CUcontext context;
  int failed = 1;
  if (argc < 2) return 2;
  mode = argv[1];
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxSetCurrent(context) == CUDA_SUCCESS) {
    failed = is("planes")    ? planes(5)
             : is("cycles")  ? cycles(4, 2)
             : is("library") ? libraries(argv + 2)
                             : items(2, is("careful") ? -1 : 1);
    cuCtxSetCurrent(NULL);
  }
  cuDevicePrimaryCtxRelease(0);
  return failed;
}
#endif
