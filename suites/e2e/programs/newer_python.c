// SPDX-License-Identifier: MIT
// newer_python.c: a program that contains what looks like a CPython of a version that does not exist yet. It loses an event.
#include <cuda.h>
#include <string.h>

const unsigned long Py_Version = 0x036300f0;  // 3.99.0 final
char _PyRuntime[1024];
char PyCode_Type[8], PyUnicode_Type[8], PyBytes_Type[8];
const char *Py_GetVersion(void);
const char *Py_GetVersion(void) { return "3.99.0"; }

int main(void) {
  CUcontext context;
  CUevent event;
  memcpy(_PyRuntime, "xdebugpy", 8);
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&event, 0) != CUDA_SUCCESS) return 1;
  cuCtxDestroy(context);
  return 0;
}
