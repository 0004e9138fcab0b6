// SPDX-License-Identifier: MIT
// runtime_program.cu: an ordinary program of the CUDA runtime; built with the static and with the shared runtime. Prints what it computed.
#include <cstdio>
#include <vector>

#define CHECK(call)                                                          \
  do {                                                                       \
    const cudaError_t error = (call);                                        \
    if (error != cudaSuccess) {                                              \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));    \
      return 1;                                                              \
    }                                                                        \
  } while (0)

__global__ void Scale(float* values, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

int main() {
  const int count = 1 << 16;
  std::vector<float> host(count);
  for (int i = 0; i < count; ++i) host[i] = static_cast<float>(i % 97);
  float* device = nullptr;
  float* pooled = nullptr;
  cudaStream_t stream;
  cudaEvent_t done;
  CHECK(cudaMalloc(&device, count * sizeof(float)));
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&done));
  CHECK(cudaMallocAsync(&pooled, 1 << 20, stream));
  CHECK(cudaMemcpyAsync(device, host.data(), count * sizeof(float), cudaMemcpyHostToDevice, stream));
  Scale<<<(count + 255) / 256, 256, 0, stream>>>(device, 2.0f, count);
  CHECK(cudaGetLastError());

  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  Scale<<<(count + 255) / 256, 256, 0, stream>>>(device, 0.5f, count);
  Scale<<<(count + 255) / 256, 256, 0, stream>>>(device, 3.0f, count);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaEventRecord(done, stream));
  CHECK(cudaMemcpyAsync(host.data(), device, count * sizeof(float), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaEventQuery(done));
  double sum = 0;
  for (const float value : host) sum += value;
  std::printf("sum %.3f\n", sum);

  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFreeAsync(pooled, stream));
  CHECK(cudaEventDestroy(done));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(device));
  return 0;
}
