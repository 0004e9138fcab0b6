// SPDX-License-Identifier: MIT
#include "allocator/tables/identities.h"

#include <memory>

#include "allocator/driver_scope.h"
#include "allocator/errors.h"
#include "allocator/uses/stamps.h"

namespace cuaudit::alloc {

// On a captured stream cuStreamGetId fails and ends the capture, so cuStreamIsCapturing is asked first; it costs less than asking for the
// capture itself. A primary context's legacy stream is never captured; a green context's may be. The legacy stream of any other context
// that was given refuses to tell while a blocking stream is captured, and that ends no capture (contract question capture.legacy_asked).
[[gnu::always_inline]] inline Identities::Named Identities::Ask(Device* device, CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = CUDA_SUCCESS;
  if (stream != nullptr || !device->retained) result = env_.driver.StreamIsCapturing(stream, &status);
  if (stream == nullptr && result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) result = CUDA_SUCCESS;
  if (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE) [[unlikely]] {
    const Named captured = AskCaptured(device, stream);
    if (captured.result != CUDA_SUCCESS || captured.record != nullptr) return captured;
  }
  unsigned long long id = 0;
  if (result == CUDA_SUCCESS) [[likely]]
    result = env_.driver.StreamGetId(stream, &id);
  if (result != CUDA_SUCCESS) [[unlikely]]
    return DoesNotKnow(result, stream);
  StreamRecord* const found = streams_.Find(id);
  if (found == nullptr || streams_.captures_noted() != 0) [[unlikely]]
    return See(device, stream, id, found);
  return {CUDA_SUCCESS, found};
}

[[gnu::cold]] Identities::Named Identities::DoesNotKnow(CUresult result, CUstream stream) noexcept {
  return {Refuse(result, "stream %p: the driver does not know it", static_cast<void*>(stream)), nullptr};
}

// A stream in a capture; no record: that has ended meanwhile.
[[gnu::noinline]] Identities::Named Identities::AskCaptured(Device* device, CUstream stream) noexcept {
  std::uint64_t capture = 0;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = CaptureOf(env_.driver, stream, &status, &capture);
  if (result != CUDA_SUCCESS) return DoesNotKnow(result, stream);
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
    return {Refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "stream %p: its capture has been invalidated", static_cast<void*>(stream)),
            nullptr};
  }
  Named named;
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) named.result = IdentifyCaptured(device, stream, capture, &named.record);
  return named;
}

// A stream outside captures that was not seen before, or not since some were noted.
[[gnu::noinline]] Identities::Named Identities::See(Device* device, CUstream stream, std::uint64_t id, StreamRecord* found) noexcept {
  if (streams_.captures_noted() != 0) streams_.EndCapturesOf(stream, device->context, found);
  Named named{CUDA_SUCCESS, found};
  if (found != nullptr) return named;
  CUcontext context = device->context;
  if (!IsDefaultStream(stream)) named.result = ContextOf(env_.driver, stream, &context);
  if (named.result == CUDA_SUCCESS) named.result = streams_.Make(id, stream, context, &named.record);
  return named;
}

Identities::Named Identities::Name(int device, CUstream stream) noexcept {
  const CUresult result = env_.Usable("Identify");
  if (result != CUDA_SUCCESS) return {result, nullptr};
  Device* const target = devices_.At(device);
  if (target == nullptr) return {Refuse(CUDA_ERROR_INVALID_VALUE, "device %d: 0 to %zu are known", device, devices_.size() - 1), nullptr};
  StreamRecord* const known = Known(target, stream);
  return known == nullptr ? NameAnew(target, stream) : Named{CUDA_SUCCESS, known};
}

[[gnu::noinline]] Identities::Named Identities::NameAnew(Device* device, CUstream stream) noexcept {
  if (stream == CU_STREAM_LEGACY) stream = nullptr;  // one handle for it, by which captures are noted
  // A stream of its own tells its context. So whether one is current is asked only where the driver wants one.
  Named named{CUDA_ERROR_INVALID_CONTEXT, nullptr};
  if (!IsDefaultStream(stream)) [[likely]]
    named = Ask(device, stream);
  if (named.result == CUDA_ERROR_INVALID_CONTEXT) [[unlikely]]
    named = AskInContext(device, stream);
  if (named.result != CUDA_SUCCESS) [[unlikely]]
    return {env_.Note(named.result), nullptr};
  std::atomic<StreamRecord*>* const memory = MemoryOf(device, stream);
  if (memory != nullptr && named.record->scope == Scope::Stream) memory->store(named.record, std::memory_order_release);
  return named;
}

[[gnu::noinline]] Identities::Named Identities::AskInContext(Device* device, CUstream stream) noexcept {
  const bool is_default = IsDefaultStream(stream);
  CurrentContext current(env_.driver, device->context, !is_default);
  Named named{current.result(), nullptr};
  if (named.result != CUDA_SUCCESS) return named;
  named.result = CUDA_ERROR_INVALID_CONTEXT;
  if (is_default || current.has_pushed()) named = Ask(device, stream);
  const CUresult left = current.Leave();
  if (named.result == CUDA_SUCCESS) named.result = left;
  return named;
}

// The handle may have been another stream's when it was last seen outside, so no identity from there is used: what that stream freed may
// still be in use. Captures that share a private pool promise to be replayed one after the other, so there the handle stays itself.
CUresult Identities::IdentifyCaptured(Device* device, CUstream stream, std::uint64_t capture, StreamRecord** out) noexcept {
  const bool own_thread = stream == CU_STREAM_PER_THREAD;
  CUcontext context = device->context;
  if (!IsDefaultStream(stream)) {
    const CUresult result = ContextOf(env_.driver, stream, &context);
    if (result != CUDA_SUCCESS) return result;
  }
  Scope scope = Scope::Capture;
  std::uint64_t scope_id = capture;
  for (const std::unique_ptr<Device>& each : devices_) {
    if (own_thread || each->context != context || each->routed.load(std::memory_order_acquire) == 0) continue;
    StreamRecord asked;
    asked.handle = stream;
    asked.context = context;
    asked.device = each.get();
    if (const Pool* const pool = pools_.RouteOf(each.get(), &asked); pool != &pools_.shared) {
      scope = Scope::Pool;
      scope_id = pool->id().second;
    }
  }
  streams_.NoteCaptured(stream, context, capture);
  const CUresult result = streams_.MakeCaptured(stream, context, scope, scope_id, out);
  if (result == CUDA_SUCCESS) (*out)->capture.store(capture, std::memory_order_release);
  return result;
}

CUresult Identities::RetireStream(int device, CUstream stream) noexcept {
  StreamRef ref;
  CUresult result = Identify(device, stream, &ref);
  if (result != CUDA_SUCCESS) return result;
  StreamRecord* const record = ref.record();
  if (record->device == nullptr || record->retired.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  CurrentContext current(env_.driver, record->context);
  result = current.result();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (result == CUDA_SUCCESS) result = env_.driver.StreamIsCapturing(stream, &status);
  if (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE)
    result = Refuse(CUDA_ERROR_ILLEGAL_STATE, "RetireStream: the stream is being captured: end the capture first");
  std::uint64_t sequence = 0;
  if (result == CUDA_SUCCESS) result = record->Record(env_.driver, stream, &sequence);
  // Whoever is told of an error goes on using the stream: so nothing that may fail comes after this.
  const CUresult left = current.Leave();
  if (result == CUDA_SUCCESS) result = left;
  if (result != CUDA_SUCCESS) return env_.Note(result);
  record->retired.store(true, std::memory_order_release);
  record->ForgetWaits();
  streams_.NoteRetired(record, stream);
  // Whoever took it for sure to live, and is about to record on it, is through.
  if (env_.moves_pages) {
    const Held releasing(record->device->releasing);
  }
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::alloc
