// SPDX-License-Identifier: MIT
// The allocator of this house, on whatever libcuda.so.1 the process gets, in the device's primary context as everybody here. With
// CUAUDIT_THROUGH_PLUG_IN as PyTorch calls it: by the plug-in's C functions and the stream's handle.
#include <memory>
#include <string>

#include "allocator/allocator.h"
#ifdef CUAUDIT_THROUGH_PLUG_IN
#include "allocator/plugin/pluggable.h"
#include "allocator/plugin/plugin_state.h"
#endif
#include "allocator/plugin/process_driver.h"
#include "allocator/settings.h"
#include "faults/driver/genuine_driver.h"
#include "suites/bench/peers/peer.h"

namespace {

using cuaudit::alloc::Allocator;
using cuaudit::alloc::Statistics;
using cuaudit::alloc::StreamRef;

Allocator* allocator = nullptr;  // never destroyed

const char* Version() { return "this tree"; }

#ifdef CUAUDIT_THROUGH_PLUG_IN

const char* Open(int device, const char*) {
  cuaudit::alloc::PluginState& state = cuaudit::alloc::PluginState::Get();
  if (device != 0) return "device 0 alone is compared here";
  if (state.BackendFor(device) == nullptr) return cuaudit_last_error();
  allocator = state.Native(device);
  return allocator == nullptr ? "only backend:native is compared here: the others are peers themselves" : nullptr;
}

const char* Token(CUstream stream, void** out) {
  *out = stream;
  return nullptr;
}

void* Allocate(std::size_t bytes, void* token) { return cuaudit_malloc(static_cast<ssize_t>(bytes), 0, static_cast<CUstream>(token)); }
void Free(void* pointer, void* token) { cuaudit_free(pointer, 0, 0, static_cast<CUstream>(token)); }
void Record(void* pointer, void* token) { (void)cuaudit_record_use(pointer, static_cast<CUstream>(token)); }

#else

cuaudit::driver::GenuineDriver* driver = nullptr;
std::string error_text;

const char* Open(int device, const char* text) {
  cuaudit::alloc::Settings settings;
  if (!ParseSettings(text == nullptr ? "" : text, &settings, &error_text)) return error_text.c_str();
  if (settings.backend != cuaudit::alloc::BackendKind::Native)
    return "only backend:native is compared here: the others are peers themselves";
  driver = new cuaudit::driver::GenuineDriver();
  if (const char* const wrong = cuaudit::alloc::OpenProcessDriver(driver); wrong != nullptr) return wrong;
  cuaudit::alloc::DeviceConfig config;
  const cuaudit::driver::DriverRef ref = cuaudit::driver::Driver(driver);
  if (ref.Init(0) != CUDA_SUCCESS || ref.DeviceGet(&config.device, device) != CUDA_SUCCESS) return "cuInit or cuDeviceGet failed";
  std::unique_ptr<Allocator> made;
  if (Allocator::Create(ref, &config, 1, settings.options, &made) != CUDA_SUCCESS) return "Allocator::Create failed";
  allocator = made.release();
  return nullptr;
}

const char* Token(CUstream stream, void** out) {
  StreamRef ref;
  if (allocator->Identify(0, stream, &ref) != CUDA_SUCCESS) return allocator->LastErrorText();
  *out = ref.record();
  return nullptr;
}

StreamRef Stream(void* token) { return StreamRef(static_cast<cuaudit::alloc::StreamRecord*>(token)); }

void* Allocate(std::size_t bytes, void* token) {
  CUdeviceptr address = 0;
  if (allocator->Allocate(bytes, Stream(token), &address) != CUDA_SUCCESS) return nullptr;
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): a device address is both
}

void Free(void* pointer, void*) { (void)allocator->Free(reinterpret_cast<CUdeviceptr>(pointer)); }
void Record(void* pointer, void* token) { (void)allocator->RecordUse(reinterpret_cast<CUdeviceptr>(pointer), Stream(token)); }

#endif

bool Usage(PeerUsage* out) {
  Statistics statistics;
  allocator->GetStatistics(0, &statistics);
  out->allocated = static_cast<std::size_t>(statistics.allocated_bytes[0].current);
  out->allocated_peak = static_cast<std::size_t>(statistics.allocated_bytes[0].peak);
  out->reserved = static_cast<std::size_t>(statistics.reserved_bytes[0].current);
  out->reserved_peak = static_cast<std::size_t>(statistics.reserved_bytes[0].peak);
  return true;
}

bool Counters(PeerCounters* out) {
  Statistics statistics;
  allocator->GetStatistics(0, &statistics);
  out->events_live = statistics.events_live;
  out->blocks_pending = statistics.blocks_pending;
  out->segments = static_cast<std::uint64_t>(statistics.segment[0].current);
  return true;
}

void ResetPeaks() { allocator->ResetPeaks(0); }
void Empty() { (void)allocator->EmptyCache(); }

const Peer kPeer = {"cuaudit", Version, Open, Token, Allocate, Free, Record, Usage, Counters, ResetPeaks, Empty};

}  // namespace

const Peer* cuaudit_peer() { return &kPeer; }
