/* SPDX-License-Identifier: MIT
 * clients.c: programs of the shared runtime that need no nvcc; a definition chooses the program.
 *
 * client_12: a program of the 12.4 runtime. Where 12.4's ABI is not the headers', its own declarations stand here under other names.
 *
 * client_late (LATE): the runtime called where it is easily forgotten: after a fork, in other threads, from exit handlers and destructors.
 * Usage   client_late [left|left_memory]   leaves by _exit, so that the runtime gives nothing back; left_memory keeps memory
 */
#if defined(LATE)
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void* memory;

static void say(const char* where, cudaError_t error) { printf("%s %s\n", where, cudaGetErrorName(error)); }

static void* other_thread(void* argument) {
  cudaError_t* const error = argument;
  void* none = NULL;
  error[0] = cudaPeekAtLastError();
  error[1] = cudaMalloc(&none, (size_t)1 << 60);
  error[2] = cudaGetLastError();
  return NULL;
}

static void at_exit(void) {
  say("exit handler", cudaFree(memory));
  fflush(stdout);
}

__attribute__((destructor)) static void destructor(void) {
  void* late = NULL;
  const cudaError_t error = cudaMalloc(&late, 16);
  say("destructor", error == cudaSuccess ? cudaFree(late) : error);
  fflush(stdout);
}

static int leave(int keeps) {
  if (cudaMalloc(&memory, 4096) != cudaSuccess) return 1;
  if (!keeps && cudaFree(memory) != cudaSuccess) return 1;
  _exit(0);
}

int main(int argc, char** argv) {
  cudaError_t errors[3];
  pthread_t thread;
  pid_t child;
  int status = 0;
  if (argc > 1) return leave(strcmp(argv[1], "left_memory") == 0);
  atexit(at_exit);
  say("first", cudaMalloc(&memory, 256));
  say("invalid", cudaMemcpy(memory, memory, 16, (enum cudaMemcpyKind)9));
  if (pthread_create(&thread, NULL, other_thread, errors) != 0 || pthread_join(thread, NULL) != 0) return 1;
  say("other thread before", errors[0]);
  say("other thread", errors[1]);
  say("other thread last", errors[2]);
  say("this thread last", cudaGetLastError());
  fflush(stdout);
  child = fork();
  if (child == 0) {
    void* more = NULL;
    const cudaError_t error = cudaMalloc(&more, 64);
    /* Whatever the driver says in a child that did not exec: an answer, and no crash. */
    _exit(error == cudaSuccess || error == cudaErrorInitializationError ? 0 : 1);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  printf("child %d\n", status);
  return 0;
}
#else
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

/* 24 bytes in 12.4; 13.0 has reserved words behind them. */
struct pointer_attributes_12 {
  enum cudaMemoryType type;
  int device;
  void* device_pointer;
  void* host_pointer;
};
extern cudaError_t get_attributes_12(struct pointer_attributes_12*, const void*) __asm__("cudaPointerGetAttributes");
extern cudaError_t advise_12(const void*, size_t, int, int) __asm__("cudaMemAdvise");
extern cudaError_t get_properties_12(void*, int) __asm__("cudaGetDeviceProperties_v2");
extern cudaError_t set_double_12(double*) __asm__("cudaSetDoubleForHost");
extern cudaError_t thread_synchronize_12(void) __asm__("cudaThreadSynchronize");
extern cudaError_t capture_info_12(cudaStream_t, enum cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                                   size_t*) __asm__("cudaStreamGetCaptureInfo_v2");
extern cudaError_t add_dependencies_12(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*,
                                       size_t) __asm__("cudaGraphAddDependencies");
extern cudaError_t get_edges_12(cudaGraph_t, cudaGraphNode_t*, cudaGraphNode_t*, size_t*) __asm__("cudaGraphGetEdges");

#define MUST(call)                                                                          \
  do {                                                                                      \
    const cudaError_t error = (call);                                                       \
    if (error != cudaSuccess) return printf("%s: %s\n", #call, cudaGetErrorName(error)), 1; \
  } while (0)

/* cudaDeviceProp of 12.4 has 1032 bytes. */
static void show_properties(void) {
  unsigned char answer[1032 + 64];
  size_t i, overwritten = 0;
  int processors = 0, function_pointers = 0, reserved = 1;
  memset(answer, 0x5a, sizeof(answer));
  printf("%s", cudaGetErrorName(get_properties_12(answer, 0)));
  for (i = 1032; i < sizeof(answer); ++i) overwritten += answer[i] != 0x5a;
  memcpy(&processors, answer + 388, sizeof(int));
  memcpy(&function_pointers, answer + 776, sizeof(int));
  memcpy(&reserved, answer + 1028, sizeof(int));
  printf(" processors %d function pointers %d reserved %d overwritten %zu\n", processors, function_pointers, reserved, overwritten);
}

static int graphs(void) {
  cudaGraph_t graph = NULL;
  cudaGraphNode_t nodes[2] = {NULL, NULL}, from = NULL, to = NULL;
  cudaStream_t stream = NULL;
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  size_t count = 1;
  MUST(cudaGraphCreate(&graph, 0));
  MUST(cudaGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
  MUST(cudaGraphAddEmptyNode(&nodes[1], graph, NULL, 0));
  MUST(add_dependencies_12(graph, &nodes[0], &nodes[1], 1));
  MUST(get_edges_12(graph, &from, &to, &count));
  printf("edges %zu right %d", count, from == nodes[0] && to == nodes[1]);
  MUST(cudaGraphDestroy(graph));
  MUST(cudaStreamCreate(&stream));
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  graph = NULL;
  count = 7;
  MUST(capture_info_12(stream, &status, &id, &graph, NULL, &count));
  printf(" capturing %d graph %d dependencies %zu\n", status == cudaStreamCaptureStatusActive, graph != NULL, count);
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaStreamDestroy(stream));
  return 0;
}

int main(void) {
  struct {
    struct pointer_attributes_12 attributes;
    unsigned char guard[64];
  } answer;
  int version = 0;
  char* memory = NULL;
  char* managed = NULL;
  double number = 0;
  char text[6] = "";
  size_t i, overwritten = 0;
  if (cudaRuntimeGetVersion(&version) != cudaSuccess || cudaMalloc((void**)&memory, 64) != cudaSuccess) return 1;
  if (cudaMemcpy(memory, "hello", 6, cudaMemcpyHostToDevice) != cudaSuccess) return 1;
  if (cudaMemcpy(text, memory, 6, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  memset(&answer, 0x5a, sizeof(answer));
  if (get_attributes_12(&answer.attributes, memory) != cudaSuccess) return 1;
  for (i = 0; i < sizeof(answer.guard); ++i) overwritten += answer.guard[i] != 0x5a;
  printf("%d %s type %d device %d same %d overwritten %zu\n", version, text, (int)answer.attributes.type, answer.attributes.device,
         answer.attributes.device_pointer == memory, overwritten);
  (void)advise_12(memory, 64, 1, 0); /* said once */
  show_properties();
  if (cudaMallocManaged((void**)&managed, 65536, 1) != cudaSuccess) return 1;
  printf("%s", cudaGetErrorName(advise_12(managed, 65536, 1, 0)));
  printf(" %s", cudaGetErrorName(advise_12(managed, 65536, 5, -1)));
  printf(" %s\n", cudaGetErrorName(advise_12(memory, 64, 1, 0)));
  printf("%s", cudaGetErrorName(set_double_12(&number)));
  printf(" %s", cudaGetErrorName(cudaGetLastError()));
  printf(" %s\n", cudaGetErrorName(thread_synchronize_12()));
  if (cudaFree(managed) != cudaSuccess) return 1;
  if (cudaFree(memory) != cudaSuccess) return 1;
  return graphs();
}
#endif
