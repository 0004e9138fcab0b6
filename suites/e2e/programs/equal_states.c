// SPDX-License-Identifier: MIT
// equal_states.c: programs with states or ways back that are equal or only look so; a definition chooses the program.
//
// Usage   equal_states MODE [LIBRARY...]      the defect hangs on data that is in no call stack and in no ledger
//   careful   two turns of a loop, nothing wrong
//   item      the error path of the second turn loses its stream
//   planes    five planes in an array; the error path frees the first three, as it did when there were three
//   cycles    a marked cycle for each of four codecs; that of the third loses its stream
//   back      the way back of the second turn loses its stream when the event's release is refused, too
//   library   the libraries in turn, which may be copies of one file; the second call loses its event
// With LIBRARY, the library of `library`, an event and a stream; the second time the error path loses the event.
//
// With FRAMES, the program frames: a library that works on frame after frame, as video filters do, and closes in one place whatever failed.
// Usage   frames MODE [frames]      default 48
//   sound        nothing wrong
//   gives_up     on the way back, a plane whose release is refused keeps the events and the stream from being released
//   later        the same, but only when a frame of the second half failed: data that is in no call stack and in no ledger
//   two_kinds    the scratch of odd frames is of another make; when its release is refused on the way back, the events and the stream are
//                lost. Calls and places are the same for both kinds
// A cycle makes 7 calls for each frame and 40 around them. So most first faults have the same way back, of 17 calls.
#if defined(FRAMES)
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

enum { kPlanes = 12, kEvents = 2 };

struct library {
  CUstream stream;
  CUevent event[kEvents];
  CUdeviceptr plane[kPlanes], scratch;
};

static const char *mode = "";
static int odd, later;

static int is(const char *name) { return strcmp(mode, name) == 0; }

static CUresult make_small(CUdeviceptr *scratch) { return cuMemAlloc(scratch, 512); }
static CUresult make_large(CUdeviceptr *scratch) { return cuMemAlloc(scratch, 65536); }

static CUresult open_library(struct library *one) {
  CUresult result = cuStreamCreate(&one->stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) one->stream = NULL;
  for (int i = 0; i < kEvents && result == CUDA_SUCCESS; ++i) {
    result = cuEventCreate(&one->event[i], 0);
    if (result != CUDA_SUCCESS) one->event[i] = NULL;
  }
  for (int i = 0; i < kPlanes && result == CUDA_SUCCESS; ++i) {
    result = cuMemAlloc(&one->plane[i], 4096);
    if (result != CUDA_SUCCESS) one->plane[i] = 0;
  }
  return result;
}

static CUresult close_library(struct library *one, int failed) {
  CUresult result = CUDA_SUCCESS, back;
  int stop = 0;
  if (one->stream != NULL) result = cuStreamSynchronize(one->stream);
  if (one->scratch != 0) {
    back = cuMemFree(one->scratch);
    if (back != CUDA_SUCCESS && failed && odd && is("two_kinds")) stop = 1;
    if (result == CUDA_SUCCESS) result = back;
  }
  for (int i = 0; i < kPlanes; ++i) {
    if (one->plane[i] == 0) continue;
    back = cuMemFree(one->plane[i]);
    if (back != CUDA_SUCCESS && failed && (is("gives_up") || (is("later") && later))) stop = 1;
    if (result == CUDA_SUCCESS) result = back;
  }
  for (int i = 0; i < kEvents && !stop; ++i) {
    if (one->event[i] == NULL) continue;
    back = cuEventDestroy(one->event[i]);
    if (result == CUDA_SUCCESS) result = back;
  }
  if (one->stream != NULL && !stop) {
    back = cuStreamDestroy(one->stream);
    if (result == CUDA_SUCCESS) result = back;
  }
  return result;
}

static CUresult frame(struct library *one, int number) {
  CUresult result;
  odd = number % 2;
  result = odd ? make_large(&one->scratch) : make_small(&one->scratch);
  if (result != CUDA_SUCCESS) {
    one->scratch = 0;
    return result;
  }
  if ((result = cuMemsetD8Async(one->scratch, 1, 512, one->stream)) != CUDA_SUCCESS) return result;
  if ((result = cuMemcpyDtoDAsync(one->plane[number % kPlanes], one->scratch, 512, one->stream)) != CUDA_SUCCESS) return result;
  if ((result = cuEventRecord(one->event[number % kEvents], one->stream)) != CUDA_SUCCESS) return result;
  if ((result = cuStreamWaitEvent(one->stream, one->event[number % kEvents], 0)) != CUDA_SUCCESS) return result;
  if ((result = cuStreamSynchronize(one->stream)) != CUDA_SUCCESS) return result;
  if ((result = cuMemFree(one->scratch)) != CUDA_SUCCESS) return result;
  one->scratch = 0;
  return CUDA_SUCCESS;
}

int main(int argc, char **argv) {
  struct library one;
  CUcontext context;
  int frames = argc > 2 ? atoi(argv[2]) : 48;
  CUresult result, back;
  if (argc < 2) return 2;
  mode = argv[1];
  memset(&one, 0, sizeof one);
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  result = cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS) {
    result = open_library(&one);
    for (int i = 0; i < frames && result == CUDA_SUCCESS; ++i) {
      later = i >= frames / 2;
      result = frame(&one, i);
    }
    back = close_library(&one, result != CUDA_SUCCESS);
    if (result == CUDA_SUCCESS) result = back;
  }
  back = cuDevicePrimaryCtxRelease(0);
  return result != CUDA_SUCCESS || back != CUDA_SUCCESS;
}

#elif defined(LIBRARY)
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
