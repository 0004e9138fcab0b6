// SPDX-License-Identifier: MIT
// leak_work.c: contexts, queues and graphs.
#include "leak_kind.h"

int context(const Ground *ground, int cycle, int clean) {
  CUcontext made;
  (void)ground, (void)cycle;
  DO(cuCtxCreate(&made, 0, 0, 0));
  DO(cuCtxPopCurrent(0));
  if (clean) DO(cuCtxDestroy(made));
  return 0;
}

int primary_context(const Ground *ground, int cycle, int clean) {
  CUcontext same;
  (void)ground, (void)cycle;
  DO(cuDevicePrimaryCtxRetain(&same, 0));
  if (clean) DO(cuDevicePrimaryCtxRelease(0));
  return 0;
}

int context_stack_entry(const Ground *ground, int cycle, int clean) {
  (void)cycle;
  DO(cuCtxPushCurrent(ground->context));
  if (clean) DO(cuCtxPopCurrent(0));
  return 0;
}

int stream(const Ground *ground, int cycle, int clean) {
  CUstream made;
  (void)ground, (void)cycle;
  DO(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
  if (clean) DO(cuStreamDestroy(made));
  return 0;
}

int event(const Ground *ground, int cycle, int clean) {
  CUevent made;
  (void)cycle;
  DO(cuEventCreate(&made, CU_EVENT_DISABLE_TIMING));
  DO(cuEventRecord(made, ground->stream));
  if (clean) DO(cuEventDestroy(made));
  return 0;
}

int graph(const Ground *ground, int cycle, int clean) {
  CUgraph made;
  CUgraphNode node;
  (void)ground, (void)cycle;
  DO(cuGraphCreate(&made, 0));
  DO(cuGraphAddEmptyNode(&node, made, 0, 0));
  if (clean) DO(cuGraphDestroy(made));
  return 0;
}

int executable_graph(const Ground *ground, int cycle, int clean) {
  CUgraph source;
  CUgraphNode node;
  CUgraphExec made;
  (void)cycle;
  DO(cuGraphCreate(&source, 0));
  DO(cuGraphAddEmptyNode(&node, source, 0, 0));
  DO(cuGraphInstantiate(&made, source, 0));
  DO(cuGraphDestroy(source));
  DO(cuGraphLaunch(made, ground->stream));
  DO(cuStreamSynchronize(ground->stream));
  if (clean) DO(cuGraphExecDestroy(made));
  return 0;
}

static void nothing(void *unused) { (void)unused; }

int user_object(const Ground *ground, int cycle, int clean) {
  CUuserObject made;
  (void)ground, (void)cycle;
  DO(cuUserObjectCreate(&made, 0, &nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  if (clean) DO(cuUserObjectRelease(made, 1));
  return 0;
}
