// SPDX-License-Identifier: MIT
// hostile_story.h: what each hostile program holds while it misbehaves, so that its verdict can be checked: a reference to the primary
// context, a stream and an event.
//
// Usage of each program   PROGRAM MODE [loses]
//   loses  the stream is forgotten when the event is refused; without it everything is given back, whatever fails
// The exit status is 0, or 1 when a driver call failed. 77: the machine does not allow what the mode does.
#ifndef CUAUDIT_E2E_HOSTILE_STORY_H
#define CUAUDIT_E2E_HOSTILE_STORY_H

#include <cuda.h>
#include <string.h>

enum { kNotAllowed = 77 };

static const char *mode = "";
static int loses;
static CUstream stream;
static CUevent event;

static inline int is(const char *name) { return strcmp(mode, name) == 0; }

static inline void read_arguments(int argc, char **argv) {
  if (argc > 1) mode = argv[1];
  loses = argc > 2 && strcmp(argv[2], "loses") == 0;
}

static inline int hold(void) {
  CUcontext context;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  return cuCtxPushCurrent(context) != CUDA_SUCCESS || cuStreamCreate(&stream, 0) != CUDA_SUCCESS;
}

static inline int make_event(void) {
  if (cuEventCreate(&event, 0) == CUDA_SUCCESS) return 0;
  event = NULL;
  if (loses) stream = NULL;
  return 1;
}

static inline void give_back(void) {
  if (event != NULL) cuEventDestroy(event);
  if (stream != NULL) cuStreamDestroy(stream);
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
}

static inline int whole_story(void) {
  int status;
  if (hold() != 0) return 1;
  status = make_event();
  give_back();
  return status;
}

#endif
