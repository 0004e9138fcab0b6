// SPDX-License-Identifier: MIT
#include "allocator/core/core.h"

#include <new>
#include <utility>

#include "allocator/allocator.h"
#include "allocator/driver_scope.h"
#include "allocator/errors.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {

CUresult Core::Open(const DeviceConfig* configs, int count) noexcept {
  if (!environment.Open()) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "Create: no host memory");
  const CUresult result = devices.Open(configs, count);
  if (result != CUDA_SUCCESS) environment.closed.store(true, std::memory_order_relaxed);
  return result;
}

CUresult Core::Close(std::size_t* live_blocks) noexcept {
  if (live_blocks != nullptr) *live_blocks = 0;
  if (environment.Forked()) return Refuse(CUDA_ERROR_NOT_INITIALIZED, "Close: in a forked child: the driver is not called");
  if (!environment.closed.exchange(true)) environment.AddDetour();
  std::size_t live = 0;
  CUresult first = environment.exiting.load(std::memory_order_relaxed) ? CUDA_ERROR_DEINITIALIZED : CUDA_SUCCESS;
  const auto keep = [&](CUresult result) {
    (void)environment.Note(result);  // also behind another error
    if (first == CUDA_SUCCESS) first = result;
  };
  const LastChance chance;
  bool synced = true;
  for (Arena* arena = arenas.First(); arena != nullptr; arena = arena->next_all) {
    caches.Empty(arena);
    if (!environment.exiting.load(std::memory_order_relaxed)) {
      const CUresult result = synchronizer.SyncArena(arena);
      synced = synced && (result == CUDA_SUCCESS || driver::IsSticky(result));
      keep(result);
    }
    const Held held(arena->lock);
    arena->Collect();
    for (const Segment* segment = arena->segments; segment != nullptr; segment = segment->next) {
      for (const Block* block = segment->first; block != nullptr; block = block->next)
        live += (block->state.load(std::memory_order_relaxed) & kStatusMask) == kLive;
    }
  }
  if (live_blocks != nullptr) *live_blocks = live;
  if (environment.exiting.load(std::memory_order_relaxed))
    return Refuse(CUDA_ERROR_DEINITIALIZED, "Close: the driver is shut down: its objects are left alone");
  if (!synced) return first;  // the uses are not over, as far as is known; their events are still needed
  bool all_gone = true;
  for (Arena* arena = arenas.First(); arena != nullptr; arena = arena->next_all) {
    keep(source.CloseAll(arena));
    all_gone = all_gone && arena->segments == nullptr;
  }
  // The words are written to until the streams are through, also when no block waits for that.
  bool written = true;
  for (StreamRecord* stream = streams.First(); stream != nullptr; stream = stream->next_all) {
    const CUresult result = stream->SynchronizeWord(environment.driver);
    keep(result);
    if (result != CUDA_SUCCESS && !driver::IsSticky(result)) {
      written = false;
      continue;
    }
    stream->ReleaseEvents();
  }
  std::uint64_t refused = 0;
  for (EventPool* pool = streams.events.First(); pool != nullptr; pool = pool->next) keep(pool->DestroyAll(environment.driver, &refused));
  keep(keepers.DestroyAll(&refused));
  (*devices.begin())->refused.fetch_add(refused, std::memory_order_relaxed);
  if (written) keep(streams.words.Free());
  // It dies with the context: that is kept until there is nothing to try again.
  if (all_gone && streams.words.empty()) keep(devices.ReleaseContexts());
  keep(chance.error());
  return first;
}

CUresult Allocator::Create(driver::DriverRef driver, const DeviceConfig* devices, int count, const Options& options,
                           std::unique_ptr<Allocator>* out) noexcept {
  out->reset();
  if (driver.table == nullptr) return Refuse(CUDA_ERROR_INVALID_VALUE, "Create: an empty DriverRef");
  if (devices == nullptr || count < 1 || count > static_cast<int>(kMaxDevices))
    return Refuse(CUDA_ERROR_INVALID_VALUE, "Create: %d devices: 1 to %zu are possible", count, kMaxDevices);
  if (const char* const wrong = Check(options); wrong != nullptr) return Refuse(CUDA_ERROR_INVALID_VALUE, "Create: %s", wrong);
  std::unique_ptr<Core> core(new (std::nothrow) Core(driver, options));
  std::unique_ptr<Allocator> allocator(core == nullptr ? nullptr : new (std::nothrow) Allocator(core.get()));
  if (allocator == nullptr) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "Create: no host memory");
  const CUresult result = core->Open(devices, count);
  if (result != CUDA_SUCCESS) {
    allocator->core_ = nullptr;
    return result;
  }
  (void)core.release();
  *out = std::move(allocator);
  return CUDA_SUCCESS;
}

Allocator::~Allocator() {
  if (core_ == nullptr) return;
  (void)core_->Close(nullptr);
  delete core_;
}

CUresult Allocator::Close(std::size_t* live_blocks) noexcept { return core_->Close(live_blocks); }
const Options& Allocator::options() const noexcept { return core_->environment.options; }
int Allocator::device_count() const noexcept { return static_cast<int>(core_->devices.size()); }
CUresult Allocator::Identify(int device, CUstream stream, StreamRef* out) noexcept {
  return core_->identities.Identify(device, stream, out);
}

CUresult Allocator::Allocate(std::size_t bytes, StreamRef stream, CUdeviceptr* out) noexcept {
  return core_->Allocate(bytes, stream.record(), out);
}

CUresult Allocator::Allocate(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept {
  return core_->Allocate(device, bytes, stream, out);
}

CUresult Allocator::Free(CUdeviceptr address) noexcept { return core_->Free(address); }

// The default streams are those of the block's device.
int Allocator::DeviceOf(CUdeviceptr address) const noexcept {
  const Block* const block = core_->environment.map.Find(address);
  const Arena* const arena = block == nullptr ? nullptr : block->arena.load(std::memory_order_relaxed);
  return arena == nullptr ? 0 : arena->device->index;
}

CUresult Allocator::RecordStream(CUdeviceptr address, CUstream stream) noexcept {
  if (address == 0) return CUDA_SUCCESS;
  StreamRef ref;
  const CUresult result = core_->identities.Identify(DeviceOf(address), stream, &ref);
  return result != CUDA_SUCCESS ? result : core_->uses.RecordStream(address, ref.record());
}

CUresult Allocator::RecordStream(CUdeviceptr address, StreamRef stream) noexcept {
  return core_->uses.RecordStream(address, stream.record());
}

CUresult Allocator::RecordUse(CUdeviceptr address, CUstream stream) noexcept {
  return address == 0 ? CUDA_SUCCESS : core_->RecordUse(address, DeviceOf(address), stream);
}

CUresult Allocator::RecordUse(CUdeviceptr address, StreamRef stream) noexcept { return core_->uses.RecordUse(address, stream.record()); }

CUresult Allocator::KeepAliveUntil(CUdeviceptr address, CUevent event) noexcept { return core_->uses.KeepAliveUntil(address, event); }
bool Allocator::FindBlock(CUdeviceptr address, CUdeviceptr* base, std::size_t* size) const noexcept {
  return core_->report.FindBlock(address, base, size);
}
CUresult Allocator::RetireStream(int device, CUstream stream) noexcept { return core_->identities.RetireStream(device, stream); }
CUresult Allocator::EmptyCache() noexcept { return core_->cached.EmptyCache(nullptr); }
CUresult Allocator::EmptyCache(PoolId pool) noexcept { return core_->cached.EmptyCache(&pool); }
CUresult Allocator::Trim(int device, std::size_t reserved_bytes) noexcept { return core_->cached.Trim(device, reserved_bytes); }
CUresult Allocator::SetMemoryFraction(int device, double fraction) noexcept { return core_->devices.SetMemoryFraction(device, fraction); }
CUresult Allocator::CreatePool(const PoolOptions& options, PoolId* out) noexcept { return core_->pools.CreatePool(options, out); }
CUresult Allocator::BeginAllocateToPool(int device, PoolId pool, const Route& route) noexcept {
  return core_->pools.BeginAllocateToPool(device, pool, route);
}
CUresult Allocator::EndAllocateToPool(int device, PoolId pool) noexcept { return core_->pools.EndAllocateToPool(device, pool); }
CUresult Allocator::ReleasePool(PoolId pool) noexcept { return core_->pools.ReleasePool(pool); }
CUresult Allocator::TakeCheckpoint(int device, PoolId pool, Checkpoint* out) noexcept { return core_->checkpoints.Take(device, pool, out); }
CUresult Allocator::RestoreCheckpoint(const Checkpoint& checkpoint, RestoreResult* out) noexcept {
  return core_->checkpoints.Restore(checkpoint, out);
}
void Allocator::GetStatistics(int device, Statistics* out) const noexcept { core_->report.GetStatistics(device, out); }
void Allocator::ResetPeaks(int device) noexcept { core_->report.ResetPeaks(device); }
void Allocator::ResetAccumulated(int device) noexcept { core_->report.ResetAccumulated(device); }
CUresult Allocator::TakeSnapshot(Snapshot* out) const noexcept { return core_->report.TakeSnapshot(out); }

void Allocator::SetTracer(const Tracer& tracer) noexcept {
  if (core_->environment.Traced()) core_->environment.RemoveDetour();
  core_->environment.tracer = tracer;
  if (core_->environment.Traced()) core_->environment.AddDetour();
}

void Allocator::SetWarning(const Warning& warning) noexcept { core_->uses.warning = warning; }

CUresult Allocator::AddOomObserver(const OomObserver& observer) noexcept { return core_->ladder.AddOomObserver(observer); }
CUresult Allocator::AddFreeMemoryCallback(const FreeMemoryCallback& callback) noexcept {
  return core_->ladder.AddFreeMemoryCallback(callback);
}
const char* Allocator::LastErrorText() const noexcept { return LastRefusal(); }
OutOfMemory Allocator::LastOutOfMemory() const noexcept { return LastAccount(); }

}  // namespace cuaudit::alloc
