/* SPDX-License-Identifier: MIT
 * subject.h: what the programs of vmaf_states.cc, vmaf_pools.cc and further_programs.cc share: the primary context, current from Enter to
 * Leave, and a line for what failed. No C++ runtime: every allocation that is counted is one that the program's text shows. */
#pragma once

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace cuaudit::reducers {

inline int Failed(const char* what) {
  fprintf(stderr, "%s failed\n", what);
  return 1;
}

inline int Enter() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return Failed("init");
  if (cuCtxPushCurrent(context) == CUDA_SUCCESS) return 0;
  (void)cuDevicePrimaryCtxRelease(0);
  return Failed("enter");
}

inline int Leave() {
  CUcontext popped = nullptr;
  const bool left = cuCtxPopCurrent(&popped) == CUDA_SUCCESS;
  return cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS && left ? 0 : Failed("leave");
}

inline bool IsDefective(int argc, char** argv) { return argc > 1 && strcmp(argv[1], "defective") == 0; }

// argv: the form. With the primary context current.
inline int Once(int argc, char** argv, int (*run)(bool defective)) {
  if (Enter() != 0) return 1;
  const int status = run(IsDefective(argc, argv));
  return Leave() != 0 || status != 0 ? 1 : 0;
}

// A context of the program's own, current.
inline CUresult CreateContext(CUcontext* context) {
#if CUDA_VERSION >= 13000
  return cuCtxCreate(context, nullptr, 0, 0);
#else
  return cuCtxCreate(context, 0, 0);
#endif
}

// argv: the form, then how many cycles.
inline int Cycles(int argc, char** argv, int (*cycle)(bool repaired)) {
  const bool repaired = argc > 1 && strcmp(argv[1], "repaired") == 0;
  const long cycles = argc > 2 ? strtol(argv[2], nullptr, 10) : 1;
  int status = 0;
  for (long i = 0; i < cycles; ++i) status |= cycle(repaired);
  return status;
}

}  // namespace cuaudit::reducers
