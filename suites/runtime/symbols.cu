// SPDX-License-Identifier: MIT
// symbols.cu: variables of a module through their host names, managed ones by plain access, and what the runtime says of misuse.
#include <cuda_runtime.h>

#include <cstdio>

__constant__ float weights[8];
__device__ int counter = 5;
__device__ double table[4][3];
__managed__ int shared_count = 7;

__global__ void Bump(int by) {
  counter += by;
}

static const char* Name(cudaError_t error) { return cudaGetErrorName(error); }

int main() {
  float in[8], out[8] = {};
  for (int i = 0; i < 8; ++i) in[i] = 0.5f * i;
  std::printf("to %s\n", Name(cudaMemcpyToSymbol(weights, in, sizeof(in))));
  std::printf("from %s", Name(cudaMemcpyFromSymbol(out, weights, 4 * sizeof(float), 2 * sizeof(float))));
  std::printf(" %.1f %.1f\n", out[0], out[3]);
  size_t bytes = 0;
  std::printf("size %s", Name(cudaGetSymbolSize(&bytes, table)));
  std::printf(" %zu\n", bytes);
  int* address = nullptr;
  int value = 0;
  std::printf("initial %s", Name(cudaMemcpyFromSymbol(&value, counter, sizeof(value))));
  std::printf(" %d %d\n", value, shared_count);
  value = 41;
  std::printf("address %s", Name(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), counter)));
  std::printf(" %s", Name(cudaMemcpy(address, &value, sizeof(value), cudaMemcpyHostToDevice)));
  value = 0;
  std::printf(" %s", Name(cudaMemcpyFromSymbol(&value, counter, sizeof(value))));
  std::printf(" %d\n", value);
  std::printf("beyond %s\n", Name(cudaMemcpyToSymbol(weights, in, sizeof(in), sizeof(float))));
  std::printf("direction %s\n", Name(cudaMemcpyToSymbol(weights, in, sizeof(in), 0, cudaMemcpyDeviceToHost)));
  std::printf("foreign %s\n", Name(cudaMemcpyToSymbol(in, in, sizeof(float))));
  std::printf("last %s", Name(cudaPeekAtLastError()));
  std::printf(" %s", Name(cudaGetLastError()));
  std::printf(" %s\n", Name(cudaGetLastError()));
  shared_count = 9;
  cudaPointerAttributes attributes{};
  std::printf("managed %s", Name(cudaPointerGetAttributes(&attributes, &shared_count)));
  std::printf(" %s", Name(cudaMemcpyFromSymbol(&value, shared_count, sizeof(value))));
  std::printf(" %d %d\n", attributes.type == cudaMemoryTypeManaged, value);
  Bump<<<1, 2048>>>(1);
  std::printf("block %s\n", Name(cudaGetLastError()));
  std::printf("sync %s\n", Name(cudaDeviceSynchronize()));
  std::printf("reset %s", Name(cudaDeviceReset()));
  std::printf(" %s", Name(cudaMemcpyToSymbol(weights, in, sizeof(in))));
  std::printf(" %s\n", Name(cudaDeviceReset()));
  return 0;
}
