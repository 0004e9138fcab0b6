// SPDX-License-Identifier: MIT
// PyTorch's native allocator, from the headers and libraries of an installed wheel. A translation unit of its own, built where the wheel
// is:
//
//     torch=$(python3 -c 'import torch; print(torch.__path__[0])')
//     g++ -std=c++20 -O2 -shared -fPIC -I. -I$torch/include -I/usr/local/cuda/include suites/bench/peers/peer_torch.cc
//         -L$torch/lib -Wl,--no-as-needed -ltorch_cuda -ltorch_cpu -ltorch -lc10_cuda -lc10 -Wl,-rpath,$torch/lib -o libpeer_torch.so
//
// libtorch_cuda brings the hooks that the allocator asks ATen for (recordStream). CUAUDIT_TORCH_WITHOUT_ATEN leaves it out; then uses
// cannot be recorded either. CUAUDIT_TORCH_WITHOUT_RECORD and CUAUDIT_TORCH_WITHOUT_STATISTICS leave out what a wheel's headers may spell
// differently.
#ifndef CUAUDIT_TORCH_WITHOUT_ATEN
#include <ATen/Context.h>
#endif
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <exception>
#include <string>

#include "suites/bench/peers/peer.h"

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

c10::DeviceIndex device_index = 0;
std::string error_text;

#ifdef CUAUDIT_TORCH_VERSION
const char* Version() { return "torch " CUAUDIT_TORCH_VERSION; }
#else
const char* Version() { return "torch"; }
#endif

const char* Open(int device, const char*) {
  try {
    device_index = static_cast<c10::DeviceIndex>(device);
#ifndef CUAUDIT_TORCH_WITHOUT_ATEN
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
#endif
    caching::get()->init(c10::cuda::device_count());
    c10::cuda::set_device(device_index);
    return nullptr;
  } catch (const std::exception& error) {
    error_text = error.what();
    return error_text.c_str();
  }
}

const char* Token(CUstream stream, void** out) {
  *out = stream;
  return nullptr;
}

void* Allocate(std::size_t bytes, void* token) {
  try {
    return caching::get()->raw_alloc_with_stream(bytes, static_cast<cudaStream_t>(token));
  } catch (const std::exception&) {
    return nullptr;
  }
}

void Free(void* pointer, void*) { caching::get()->raw_delete(pointer); }
void Empty() { caching::emptyCache(); }

#if !defined(CUAUDIT_TORCH_WITHOUT_RECORD) && !defined(CUAUDIT_TORCH_WITHOUT_ATEN)
// recordStream wants a DataPtr with the allocator's own deleter; the pointer stays ours.
void Record(void* pointer, void* token) {
  c10::DataPtr data(pointer, pointer, caching::get()->raw_deleter(), c10::Device(c10::DeviceType::CUDA, device_index));
  caching::recordStream(data, c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(token), device_index));
  (void)data.release_context();
}
#else
constexpr void (*Record)(void*, void*) = nullptr;
#endif

#ifndef CUAUDIT_TORCH_WITHOUT_STATISTICS
bool Usage(PeerUsage* out) {
  const auto statistics = caching::getDeviceStats(device_index);
  out->allocated = static_cast<std::size_t>(statistics.allocated_bytes[0].current);
  out->allocated_peak = static_cast<std::size_t>(statistics.allocated_bytes[0].peak);
  out->reserved = static_cast<std::size_t>(statistics.reserved_bytes[0].current);
  out->reserved_peak = static_cast<std::size_t>(statistics.reserved_bytes[0].peak);
  return true;
}
void ResetPeaks() { caching::resetPeakStats(device_index); }
#else
constexpr bool (*Usage)(PeerUsage*) = nullptr;
constexpr void (*ResetPeaks)() = nullptr;
#endif

const Peer kPeer = {"pytorch", Version, Open, Token, Allocate, Free, Record, Usage, nullptr, ResetPeaks, Empty};

}  // namespace

const Peer* cuaudit_peer() { return &kPeer; }
