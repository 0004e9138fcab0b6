// SPDX-License-Identifier: MIT
// drifting.c: every other run makes one more event than the runs between; the stream is lost when the event that every run makes fails.
// Usage   drifting FILE      grows FILE by a byte a run: at an odd length the additional event comes first
#include <cuda.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_odd_run(const char *path) {
  struct stat facts = {0};
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file < 0) return 0;
  (void)!write(file, ".", 1);
  (void)!fstat(file, &facts);
  close(file);
  return (int)(facts.st_size % 2);
}

static int sometimes(void) {
  CUevent event;
  if (cuEventCreate(&event, 0) != CUDA_SUCCESS) return 1;
  return cuEventDestroy(event) != CUDA_SUCCESS;
}

static int always(CUevent *event) { return cuEventCreate(event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS; }

int main(int argc, char **argv) {
  int odd = is_odd_run(argc > 1 ? argv[1] : "/dev/null");
  int failed = 0;
  CUcontext context;
  CUstream stream;
  CUevent event;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS) return 1;
  if (odd) failed = sometimes();
  if (!failed && cuStreamCreate(&stream, 0) == CUDA_SUCCESS) {
    if (always(&event) == 0) {
      cuEventDestroy(event);
      cuStreamDestroy(stream);
    } else {
      failed = 1;
    }
  } else {
    failed = 1;
  }
  cuCtxDestroy(context);
  return failed;
}
