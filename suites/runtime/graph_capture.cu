// SPDX-License-Identifier: MIT
// graph_capture.cu: captures a fork and join over two streams, launches the graph several times, replaces it by an update. Prints the result.
// PLANTED: when the graph cannot be instantiated, the captured graph stays.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void Scale(float* values, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

__global__ void Sum(const float* left, const float* right, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] += left[i] + right[i];
}

namespace {

constexpr int kCount = 1 << 12;
constexpr int kBytes = kCount * sizeof(float);
constexpr int kBlocks = (kCount + 255) / 256;

bool Good(cudaError_t error, const char* what) {
  if (error != cudaSuccess) std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  return error == cudaSuccess;
}
#define GOOD(call) Good(call, #call)

struct Pipeline {
  cudaStream_t main = nullptr;
  cudaStream_t side = nullptr;
  cudaEvent_t fork = nullptr;
  cudaEvent_t join = nullptr;
  float* left = nullptr;
  float* right = nullptr;
  float* out = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;

  bool Open() {
    return GOOD(cudaStreamCreate(&main)) && GOOD(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking)) &&
           GOOD(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming)) && GOOD(cudaEventCreateWithFlags(&join, cudaEventDisableTiming)) &&
           GOOD(cudaMalloc(&left, kBytes)) && GOOD(cudaMalloc(&right, kBytes)) && GOOD(cudaMalloc(&out, kBytes)) &&
           GOOD(cudaMemsetAsync(out, 0, kBytes, main));
  }

  bool Fill(const float* host) {
    return GOOD(cudaMemcpyAsync(left, host, kBytes, cudaMemcpyHostToDevice, main)) &&
           GOOD(cudaMemcpyAsync(right, host, kBytes, cudaMemcpyHostToDevice, main)) && GOOD(cudaStreamSynchronize(main));
  }

  bool Record(float factor) {
    if (!GOOD(cudaEventRecord(fork, main)) || !GOOD(cudaStreamWaitEvent(side, fork, 0))) return false;
    Scale<<<kBlocks, 256, 0, main>>>(left, factor, kCount);
    if (!GOOD(cudaGetLastError())) return false;
    Scale<<<kBlocks, 256, 0, side>>>(right, 1 / factor, kCount);
    if (!GOOD(cudaGetLastError())) return false;
    if (!GOOD(cudaEventRecord(join, side)) || !GOOD(cudaStreamWaitEvent(main, join, 0))) return false;
    Sum<<<kBlocks, 256, 0, main>>>(left, right, out, kCount);
    return GOOD(cudaGetLastError());
  }

  // A capture that failed half-way has to be ended all the same.
  bool Capture(float factor) {
    if (!GOOD(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal))) return false;
    const bool recorded = Record(factor);
    const bool ended = GOOD(cudaStreamEndCapture(main, &graph));
    return recorded && ended;
  }

  bool Instantiate() {
    if (GOOD(cudaGraphInstantiate(&executable, graph, 0))) return true;
#ifdef PLANTED
    graph = nullptr;
#endif
    return false;
  }

  // The same shape with another factor: the executable graph takes it over.
  bool Update(float factor) {
    const cudaGraph_t old = graph;
    graph = nullptr;
    if (!GOOD(cudaGraphDestroy(old)) || !Capture(factor)) return false;
    cudaGraphExecUpdateResultInfo info{};
    return GOOD(cudaGraphExecUpdate(executable, graph, &info));
  }

  bool Launch(int times) {
    for (int i = 0; i < times; ++i) {
      if (!GOOD(cudaGraphLaunch(executable, main))) return false;
    }
    return GOOD(cudaStreamSynchronize(main));
  }

  bool Close() {
    bool good = true;
    good &= executable == nullptr || GOOD(cudaGraphExecDestroy(executable));
    good &= graph == nullptr || GOOD(cudaGraphDestroy(graph));
    good &= out == nullptr || GOOD(cudaFree(out));
    good &= right == nullptr || GOOD(cudaFree(right));
    good &= left == nullptr || GOOD(cudaFree(left));
    good &= join == nullptr || GOOD(cudaEventDestroy(join));
    good &= fork == nullptr || GOOD(cudaEventDestroy(fork));
    good &= side == nullptr || GOOD(cudaStreamDestroy(side));
    good &= main == nullptr || GOOD(cudaStreamDestroy(main));
    return good;
  }
};

float values[kCount];

bool Work(Pipeline* pipeline, bool print) {
  for (int i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 32);
  if (!pipeline->Open() || !pipeline->Fill(values)) return false;
  if (!pipeline->Capture(2.0f) || !pipeline->Instantiate() || !pipeline->Launch(3)) return false;
  if (!pipeline->Update(4.0f) || !pipeline->Launch(2)) return false;
  size_t nodes = 0;
  if (!GOOD(cudaGraphGetNodes(pipeline->graph, nullptr, &nodes))) return false;
  if (!GOOD(cudaMemcpy(values, pipeline->out, kBytes, cudaMemcpyDeviceToHost))) return false;
  double sum = 0;
  for (const float value : values) sum += value;
  if (print) std::printf("graph_capture: %zu nodes, sum %.4f, out[31] %.6f\n", nodes, sum, values[31]);
  return true;
}

bool Cycle(bool print) {
  Pipeline pipeline;
  const bool good = Work(&pipeline, print);
  return pipeline.Close() && good;
}

}  // namespace

int main(int argc, char** argv) {
  const int cycles = argc > 1 ? std::atoi(argv[1]) : 1;
  bool good = true;
  for (int i = 0; good && i < cycles; ++i) good = Cycle(i == 0);
  return good ? 0 : 1;
}
