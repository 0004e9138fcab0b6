// SPDX-License-Identifier: MIT
// CUB's CachingDeviceAllocator, with bins up to 128 MiB and no limit on what it caches: with its defaults blocks over 2 MiB and caches over
// 6 MiB would be cudaMalloc's. It frees with the stream that it was allocated with, so no token is needed there.
#include <cstdio>
#include <cub/util_allocator.cuh>
#include <cub/version.cuh>

#include "suites/bench/peers/peer.h"

namespace {

cub::CachingDeviceAllocator* allocator = nullptr;
char version_text[64];

const char* Version() {
  std::snprintf(version_text, sizeof(version_text), "CUB %d.%d.%d", CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
  return version_text;
}

const char* Open(int device, const char*) {
  if (cudaSetDevice(device) != cudaSuccess) return "cudaSetDevice failed";
  allocator = new cub::CachingDeviceAllocator(8, 3, 9, cub::CachingDeviceAllocator::INVALID_SIZE, true);  // never destroyed
  return nullptr;
}

const char* Token(CUstream stream, void** out) {
  *out = stream;
  return nullptr;
}

void* Allocate(std::size_t bytes, void* token) {
  void* pointer = nullptr;
  return allocator->DeviceAllocate(&pointer, bytes, static_cast<cudaStream_t>(token)) == cudaSuccess ? pointer : nullptr;
}

void Free(void* pointer, void*) { (void)allocator->DeviceFree(pointer); }

bool Usage(PeerUsage* out) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return false;
  const auto& cached = allocator->cached_bytes[device];
  out->allocated = cached.live;
  out->reserved = cached.live + cached.free;
  return true;
}

void Empty() { (void)allocator->FreeAllCached(); }

const Peer kPeer = {"cub", Version, Open, Token, Allocate, Free, nullptr, Usage, nullptr, nullptr, Empty};

}  // namespace

const Peer* cuaudit_peer() { return &kPeer; }
