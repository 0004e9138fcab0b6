/* SPDX-License-Identifier: MIT
 * client_12.c: a program of the 12.4 runtime. Where 12.4's ABI is not the headers', its own declarations stand here under other names.
 */
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
