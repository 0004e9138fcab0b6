// SPDX-License-Identifier: MIT
// cudaMallocAsync from a pool that keeps everything: with the default threshold it would give all back at each synchronisation.
#include <cuda_runtime_api.h>

#include <cstdio>

#include "suites/bench/peers/peer.h"

namespace {

cudaMemPool_t pool = nullptr;
char version_text[64];

const char* Version() {
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  std::snprintf(version_text, sizeof(version_text), "driver API %d, runtime %d", driver, runtime);
  return version_text;
}

const char* Open(int device, const char*) {
  if (cudaSetDevice(device) != cudaSuccess) return "cudaSetDevice failed";
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  if (cudaMemPoolCreate(&pool, &properties) != cudaSuccess) return "cudaMemPoolCreate failed";
  unsigned long long threshold = ~0ULL;
  return cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold) == cudaSuccess ? nullptr
                                                                                                   : "cudaMemPoolSetAttribute failed";
}

const char* Token(CUstream stream, void** out) {
  *out = stream;
  return nullptr;
}

void* Allocate(std::size_t bytes, void* token) {
  void* pointer = nullptr;
  return cudaMallocFromPoolAsync(&pointer, bytes, pool, static_cast<cudaStream_t>(token)) == cudaSuccess ? pointer : nullptr;
}

void Free(void* pointer, void* token) { (void)cudaFreeAsync(pointer, static_cast<cudaStream_t>(token)); }

bool Usage(PeerUsage* out) {
  const auto read = [](cudaMemPoolAttr attribute, std::size_t* to) {
    unsigned long long value = 0;
    const bool is_read = cudaMemPoolGetAttribute(pool, attribute, &value) == cudaSuccess;
    *to = value;
    return is_read;
  };
  return read(cudaMemPoolAttrUsedMemCurrent, &out->allocated) && read(cudaMemPoolAttrUsedMemHigh, &out->allocated_peak) &&
         read(cudaMemPoolAttrReservedMemCurrent, &out->reserved) && read(cudaMemPoolAttrReservedMemHigh, &out->reserved_peak);
}

void ResetPeaks() {
  unsigned long long none = 0;
  (void)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &none);
  (void)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &none);
}

void Empty() {
  (void)cudaDeviceSynchronize();
  (void)cudaMemPoolTrimTo(pool, 0);
}

const Peer kPeer = {"cudaMallocAsync", Version, Open, Token, Allocate, Free, nullptr, Usage, nullptr, ResetPeaks, Empty};

}  // namespace

const Peer* cuaudit_peer() { return &kPeer; }
