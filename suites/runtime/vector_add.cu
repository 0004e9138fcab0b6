// SPDX-License-Identifier: MIT
// vector_add.cu: c = a + b in chunks over two streams, with pinned memory and an event per stream. Prints what it computed.
// PLANTED: the constructor of the second stream's half may fail after its stream exists, and then the stream stays.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void Add(const float* a, const float* b, float* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) c[i] = a[i] + b[i];
}

namespace {

constexpr int kStreams = 2;
constexpr int kChunk = 1 << 12;
constexpr int kChunks = 6;
constexpr int kCount = kChunk * kChunks;

bool Good(cudaError_t error, const char* what) {
  if (error != cudaSuccess) std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  return error == cudaSuccess;
}
#define GOOD(call) Good(call, #call)

// A stream with what its chunks need.
struct Lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t done = nullptr;
  float* a = nullptr;
  float* b = nullptr;
  float* c = nullptr;

  bool Open() {
    if (!GOOD(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) return false;
    if (GOOD(cudaEventCreateWithFlags(&done, cudaEventDisableTiming)) && GOOD(cudaMalloc(&a, kChunk * sizeof(float))) &&
        GOOD(cudaMalloc(&b, kChunk * sizeof(float))) && GOOD(cudaMalloc(&c, kChunk * sizeof(float)))) {
      return true;
    }
#ifdef PLANTED
    stream = nullptr;
#endif
    return false;
  }

  bool Run(const float* host_a, const float* host_b, float* host_c) {
    const size_t bytes = kChunk * sizeof(float);
    if (!GOOD(cudaMemcpyAsync(a, host_a, bytes, cudaMemcpyHostToDevice, stream))) return false;
    if (!GOOD(cudaMemcpyAsync(b, host_b, bytes, cudaMemcpyHostToDevice, stream))) return false;
    Add<<<(kChunk + 255) / 256, 256, 0, stream>>>(a, b, c, kChunk);
    if (!GOOD(cudaGetLastError())) return false;
    if (!GOOD(cudaMemcpyAsync(host_c, c, bytes, cudaMemcpyDeviceToHost, stream))) return false;
    return GOOD(cudaEventRecord(done, stream));
  }

  bool Close() {
    bool good = true;
    if (stream != nullptr) good &= GOOD(cudaStreamSynchronize(stream));
    good &= c == nullptr || GOOD(cudaFree(c));
    good &= b == nullptr || GOOD(cudaFree(b));
    good &= a == nullptr || GOOD(cudaFree(a));
    good &= done == nullptr || GOOD(cudaEventDestroy(done));
    good &= stream == nullptr || GOOD(cudaStreamDestroy(stream));
    return good;
  }
};

bool Work(Lane (&lanes)[kStreams], const float* a, const float* b, float* c) {
  for (Lane& lane : lanes) {
    if (!lane.Open()) return false;
  }
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    Lane& lane = lanes[chunk % kStreams];
    if (chunk >= kStreams && !GOOD(cudaEventSynchronize(lane.done))) return false;
    const int at = chunk * kChunk;
    if (!lane.Run(a + at, b + at, c + at)) return false;
  }
  for (Lane& lane : lanes) {
    if (!GOOD(cudaStreamSynchronize(lane.stream))) return false;
  }
  return true;
}

void Print(const float* c) {
  double sum = 0;
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) {
    sum += c[i];
    wrong += c[i] != static_cast<float>(i % 101) + static_cast<float>(i % 13);
  }
  std::printf("vector_add: sum %.1f, wrong %d, c[7] %.1f, c[%d] %.1f\n", sum, wrong, c[7], kCount - 1, c[kCount - 1]);
}

bool Cycle(bool print) {
  float* host = nullptr;
  if (!GOOD(cudaMallocHost(&host, 3 * kCount * sizeof(float)))) return false;
  float* const a = host;
  float* const b = host + kCount;
  float* const c = host + 2 * kCount;
  for (int i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i % 101);
    b[i] = static_cast<float>(i % 13);
    c[i] = 0;
  }
  Lane lanes[kStreams];
  bool good = Work(lanes, a, b, c);
  if (good && print) Print(c);
  for (Lane& lane : lanes) good &= lane.Close();
  good &= GOOD(cudaFreeHost(host));
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  const int cycles = argc > 1 ? std::atoi(argv[1]) : 1;
  bool good = true;
  for (int i = 0; good && i < cycles; ++i) good = Cycle(i == 0);
  return good ? 0 : 1;
}
