// SPDX-License-Identifier: MIT
// pool_user.cu: stream-ordered memory from a pool of its own and from the device's default one. Prints what it computed.
// PLANTED: a round that fails after its allocation forgets the memory.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void Accumulate(const int* in, int* total, int count) {
  // One thread: the order of the sum is fixed.
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += in[i] & 0xff;
  *total += sum;
}

namespace {

constexpr int kRounds = 4;

bool Good(cudaError_t error, const char* what) {
  if (error != cudaSuccess) std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  return error == cudaSuccess;
}
#define GOOD(call) Good(call, #call)

struct PoolUser {
  cudaStream_t stream = nullptr;
  cudaMemPool_t pool = nullptr;
  int* total = nullptr;

  bool Open() {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    if (!GOOD(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) || !GOOD(cudaMemPoolCreate(&pool, &properties))) return false;
    unsigned long long keep = ~0ull;
    if (!GOOD(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep))) return false;
    return GOOD(cudaMallocAsync(&total, sizeof(int), stream)) && GOOD(cudaMemsetAsync(total, 0, sizeof(int), stream));
  }

  bool Use(int* block, int count, int byte) {
    if (!GOOD(cudaMemsetAsync(block, byte, count * sizeof(int), stream))) return false;
    Accumulate<<<1, 32, 0, stream>>>(block, total, count);
    return GOOD(cudaGetLastError());
  }

  bool Round(int round) {
    const int count = 1000 * (round + 1);
    int* block = nullptr;
    if (!GOOD(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&block), count * sizeof(int), pool, stream))) return false;
    const bool used = Use(block, count, round);
#ifdef PLANTED
    if (!used) return false;
#endif
    return GOOD(cudaFreeAsync(block, stream)) && used;
  }

  bool Report(bool print) {
    int answer = 0;
    if (!GOOD(cudaMemcpyAsync(&answer, total, sizeof(answer), cudaMemcpyDeviceToHost, stream))) return false;
    if (!GOOD(cudaStreamSynchronize(stream))) return false;
    unsigned long long used = 1;
    if (!GOOD(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used))) return false;
    if (!GOOD(cudaMemPoolTrimTo(pool, 0))) return false;
    unsigned long long reserved = 1;
    if (!GOOD(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved))) return false;
    if (print) std::printf("pool_user: total %d, used %llu, reserved after trimming %llu\n", answer, used, reserved);
    return true;
  }

  bool Close() {
    bool good = true;
    good &= total == nullptr || GOOD(cudaFreeAsync(total, stream));
    good &= stream == nullptr || GOOD(cudaStreamSynchronize(stream));
    good &= pool == nullptr || GOOD(cudaMemPoolDestroy(pool));
    good &= stream == nullptr || GOOD(cudaStreamDestroy(stream));
    return good;
  }
};

bool Cycle(bool print) {
  PoolUser user;
  bool good = user.Open();
  for (int round = 0; good && round < kRounds; ++round) good = user.Round(round);
  good = good && user.Report(print);
  return user.Close() && good;
}

}  // namespace

int main(int argc, char** argv) {
  const int cycles = argc > 1 ? std::atoi(argv[1]) : 1;
  bool good = true;
  for (int i = 0; good && i < cycles; ++i) good = Cycle(i == 0);
  return good ? 0 : 1;
}
