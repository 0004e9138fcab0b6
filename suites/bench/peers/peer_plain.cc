// SPDX-License-Identifier: MIT
// cudaMalloc and cudaFree: what a cache is for.
#include <cuda_runtime_api.h>

#include "suites/bench/peers/peer.h"

namespace {

const char* Version() { return "runtime API"; }
const char* Open(int device, const char*) { return cudaSetDevice(device) == cudaSuccess ? nullptr : "cudaSetDevice failed"; }
const char* Token(CUstream stream, void** out) {
  *out = stream;
  return nullptr;
}
void* Allocate(std::size_t bytes, void*) {
  void* pointer = nullptr;
  return cudaMalloc(&pointer, bytes) == cudaSuccess ? pointer : nullptr;
}
void Free(void* pointer, void*) { (void)cudaFree(pointer); }
void Empty() {}

const Peer kPeer = {"cudaMalloc", Version, Open, Token, Allocate, Free, nullptr, nullptr, nullptr, nullptr, Empty};

}  // namespace

const Peer* cuaudit_peer() { return &kPeer; }
