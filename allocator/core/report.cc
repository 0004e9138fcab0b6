// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "allocator/core/core.h"
#include "allocator/errors.h"
#include "allocator/tables/pool_table.h"

namespace cuaudit::alloc {
namespace {

void ReportBlock(const Block* block, SnapshotSegment* segment) {
  SnapshotBlock out;
  const std::uint64_t state = block->state.load(std::memory_order_acquire);
  const std::uint64_t status = state & kStatusMask;
  const bool active = status == kLive || block->place == Place::Waiting || status == kReturned;
  out.address = block->address.load(std::memory_order_relaxed);
  out.size = block->size;
  out.requested = active ? block->requested.load(std::memory_order_relaxed) : 0;
  out.state = status == kLive ? BlockState::ActiveAllocated : active ? BlockState::ActivePendingFree : BlockState::Inactive;
  out.in_thread_cache = status == kCached;
  out.stream = block->stream == nullptr ? segment->stream : block->stream->id;
  out.generation = state >> kLifeShift;
  out.stack = active ? block->stack.load(std::memory_order_relaxed) : nullptr;
  // Uses of live blocks are being edited by their users' calls: whoever holds the editing bit has them.
  if (status == kFree) {
    for (const Use& use : block->uses.entries()) out.uses.push_back({use.stream->id, use.stream->handle, use.sequence, false});
    for (const CapturedUse* use = block->captured; use != nullptr; use = use->next)
      out.uses.push_back({use->stream->id, use->stream->handle, use->capture->id, true});
  }
  segment->total_size += block->size;
  if (status == kLive) segment->allocated_size += block->size;
  if (active) segment->active_size += block->size;
  if (active) segment->requested_size += out.requested;
  segment->blocks.push_back(std::move(out));
}

}  // namespace

void Report::GetStatistics(int index, Statistics* out) noexcept {
  *out = Statistics();
  if (env_.Forked()) return;  // a lock may have been held by a thread that is not here
  Device* const device = devices_.At(index);
  if (device == nullptr) return;
  std::int64_t split[2][kPoolKinds] = {};
  for (Arena* arena = arenas_.First(); arena != nullptr; arena = arena->next_all) {
    if (arena->device != device) continue;
    const Held held(arena->lock);
    if (!env_.closed.load(std::memory_order_relaxed)) arena->Collect();
    for (const FreeBins* sets : {arena->ready, arena->pending}) {
      for (std::size_t i = 0; i < 2; ++i) {
        for (const Block* block = sets[i].First(); block != nullptr; block = sets[i].Next(block)) {
          if (block->prev == nullptr && block->next == nullptr) continue;
          for (const std::size_t k : {std::size_t{0}, i + 1}) {
            ++split[0][k];
            split[1][k] += static_cast<std::int64_t>(block->size);
          }
        }
      }
    }
    for (const Segment* segment = arena->segments; segment != nullptr; segment = segment->next) {
      if (segment->unusable && !segment->expandable) out->bytes_unusable += segment->size;
    }
    out->served_own_ready += arena->served_ready.load(std::memory_order_relaxed);
    out->served_other_ready += arena->served_other.load(std::memory_order_relaxed);
    out->served_pending += arena->served_pending.load(std::memory_order_relaxed);
    out->served_capture_order += arena->served_capture.load(std::memory_order_relaxed);
    out->served_grown += arena->served_grown.load(std::memory_order_relaxed);
  }
  caches_.FoldAll(device);
  for (ThreadCache* cache = caches_.First(); cache != nullptr; cache = cache->next) {
    ++out->thread_caches;
  }
  {
    const Held held(device->totals.lock);
    Totals& totals = device->totals;
    StatArray* const measured[kMeasures] = {&out->allocation, &out->allocated_bytes, &out->requested_bytes};
    for (std::size_t m = 0; m < kMeasures; ++m) {
      for (std::size_t k = 0; k < kPoolKinds; ++k) {
        std::int64_t added = 0;
        std::int64_t taken = 0;
        const auto add = [&](const Counters* counters) {
          for (std::size_t i = 0; i < 2; ++i) {
            if (counters == nullptr || (k != 0 && k != i + 1)) continue;
            added += counters->line[m].added[i].load(std::memory_order_relaxed);
            taken += counters->line[m].taken[i].load(std::memory_order_relaxed);
          }
        };
        add(&device->shared);
        for (ThreadCache* cache = caches_.First(); cache != nullptr; cache = cache->next) add(cache->counters(index));
        if (m == kCount && k == 0) out->served_thread_cache = static_cast<std::uint64_t>(added);
        (*measured[m])[k] = Stat{totals.current[m][k], totals.peak[m][k], added - totals.base_added[m][k], taken - totals.base_taken[m][k]};
      }
    }
    for (std::size_t k = 0; k < kPoolKinds; ++k) {
      out->segment[k] = totals.segment[k];
      out->reserved_bytes[k] = totals.reserved[k];
      StatArray* const active[2] = {&out->active, &out->active_bytes};
      StatArray* const halves[2] = {&out->inactive_split, &out->inactive_split_bytes};
      for (std::size_t m = 0; m < 2; ++m) {
        Stat& stat = (*active[m])[k];
        stat = (*measured[m])[k];
        stat.current += totals.pending[m][k].current;
        stat.freed = stat.allocated - stat.current;
        stat.peak = std::max({totals.active_peak[m][k], stat.peak, stat.current});
        totals.active_peak[m][k] = stat.peak;
        totals.split[m][k].current = split[m][k];
        totals.split[m][k].peak = std::max(totals.split[m][k].peak, split[m][k]);
        (*halves[m])[k] = totals.split[m][k];
      }
      // No moment had more than was reserved, whatever a sum over threads that were counted one after the other says.
      for (StatArray* const bytes : {&out->requested_bytes, &out->allocated_bytes, &out->active_bytes})
        (*bytes)[k].peak = std::min((*bytes)[k].peak, totals.reserved[k].peak);
    }
    out->blocks_pending = static_cast<std::uint64_t>(totals.pending[0][0].current);
    out->bytes_pending = static_cast<std::uint64_t>(totals.pending[1][0].current);
    out->oversize_allocations = totals.oversize_allocations;
    out->oversize_segments = totals.oversize_segments;
  }
  out->num_alloc_retries = static_cast<std::int64_t>(device->retries.load(std::memory_order_relaxed));
  out->num_ooms = static_cast<std::int64_t>(device->ooms.load(std::memory_order_relaxed));
  out->num_sync_all_streams = static_cast<std::int64_t>(device->syncs.load(std::memory_order_relaxed));
  out->num_device_alloc = static_cast<std::int64_t>(device->allocs.load(std::memory_order_relaxed));
  out->num_device_free = static_cast<std::int64_t>(device->frees.load(std::memory_order_relaxed));
  out->pages_moved = device->moved.load(std::memory_order_relaxed);
  out->bytes_moved = device->moved_bytes.load(std::memory_order_relaxed);
  out->fallbacks = device->fallbacks.load(std::memory_order_relaxed);
  out->releases_refused = device->refused.load(std::memory_order_relaxed);
  out->left_for_captures = device->left.load(std::memory_order_relaxed);
  out->max_split_size = env_.options.max_split_size;
  // Every allocation is counted once; those that an arena served, once more.
  const std::uint64_t slow =
      out->served_own_ready + out->served_other_ready + out->served_pending + out->served_capture_order + out->served_grown;
  out->served_thread_cache -= std::min(out->served_thread_cache, slow);
  // Of the whole allocator, since a use may join two devices.
  out->served_shared_pool = env_.served_shared_pool.load(std::memory_order_relaxed);
  out->uses_recorded = env_.uses_recorded.load(std::memory_order_relaxed);
  out->uses_own_stream = env_.uses_own.load(std::memory_order_relaxed);
  out->uses_merged = env_.uses_merged.load(std::memory_order_relaxed);
  for (const ThreadCache* cache = caches_.First(); cache != nullptr; cache = cache->next) {
    out->uses_recorded += cache->uses_recorded.load(std::memory_order_relaxed);
    out->uses_own_stream += cache->uses_own.load(std::memory_order_relaxed);
    out->uses_merged += cache->uses_merged.load(std::memory_order_relaxed);
  }
  for (const StreamRecord* stream = streams_.First(); stream != nullptr; stream = stream->next_all) {
    out->stamps_shared += stream->shared.load(std::memory_order_relaxed);
    out->streams_in_capture += InCapture(stream, device);
  }
  out->uses_captured = env_.uses_captured.load(std::memory_order_relaxed);
  out->waits_issued = env_.stamp_counts.waits.load(std::memory_order_relaxed);
  out->waits_elided = env_.stamp_counts.elided.load(std::memory_order_relaxed);
  out->polls = env_.stamp_counts.polls.load(std::memory_order_relaxed);
  for (const EventPool* pool = streams_.events.First(); pool != nullptr; pool = pool->next) {
    out->events_created += pool->created();
    out->events_live += pool->live();
  }
  out->double_frees = env_.double_frees.load(std::memory_order_relaxed);
  out->foreign_pointers = env_.foreign_pointers.load(std::memory_order_relaxed);
}

void Report::ResetPeaks(int index) noexcept {
  if (env_.Forked()) return;
  Device* const device = devices_.At(index);
  if (device == nullptr) return;
  caches_.FoldAll(device);
  const Held held(device->totals.lock);
  Totals& totals = device->totals;
  const auto reset = [](Stat& stat) { stat.peak = stat.current; };
  for (std::size_t k = 0; k < kPoolKinds; ++k) {
    for (std::size_t m = 0; m < kMeasures; ++m) totals.peak[m][k] = totals.current[m][k];
    for (std::size_t m = 0; m < 2; ++m) {
      totals.active_peak[m][k] = totals.current[m][k] + totals.pending[m][k].current;
      reset(totals.pending[m][k]);
      reset(totals.split[m][k]);
    }
    reset(totals.segment[k]);
    reset(totals.reserved[k]);
  }
  reset(totals.oversize_allocations);
  reset(totals.oversize_segments);
}

void Report::ResetAccumulated(int index) noexcept {
  Statistics now;
  GetStatistics(index, &now);
  if (env_.Forked()) return;
  Device* const device = devices_.At(index);
  if (device == nullptr) return;
  const Held held(device->totals.lock);
  Totals& totals = device->totals;
  const StatArray* const measured[kMeasures] = {&now.allocation, &now.allocated_bytes, &now.requested_bytes};
  for (std::size_t k = 0; k < kPoolKinds; ++k) {
    for (std::size_t m = 0; m < kMeasures; ++m) {
      totals.base_added[m][k] += (*measured[m])[k].allocated;
      totals.base_taken[m][k] += (*measured[m])[k].freed;
    }
    for (Stat* const stat : {&totals.segment[k], &totals.reserved[k]}) stat->allocated = stat->freed = 0;
  }
  for (Stat* const stat : {&totals.oversize_allocations, &totals.oversize_segments}) stat->allocated = stat->freed = 0;
  for (std::atomic<std::uint64_t>* const count : {&device->retries, &device->ooms, &device->syncs, &device->allocs, &device->frees})
    count->store(0, std::memory_order_relaxed);
}

CUresult Report::TakeSnapshot(Snapshot* out) noexcept {
  if (env_.Forked()) return Refuse(CUDA_ERROR_NOT_INITIALIZED, "TakeSnapshot: in a forked child");
  if (env_.closed.load(std::memory_order_relaxed)) return Refuse(CUDA_ERROR_ILLEGAL_STATE, "TakeSnapshot: the allocator is closed");
  try {
    Snapshot taken;
    for (Arena* arena = arenas_.First(); arena != nullptr; arena = arena->next_all) {
      const Held held(arena->lock);
      arena->Collect();
      for (const Segment* segment = arena->segments; segment != nullptr; segment = segment->next) {
        if (segment->unusable) continue;
        bool in_run = false;
        for (const Block* block = segment->first; block != nullptr; block = block->next) {
          if (block->mapped && !in_run) {
            SnapshotSegment run;
            run.device = arena->device->index;
            run.address = block->address.load(std::memory_order_relaxed);
            run.stream = arena->stream->id;
            run.stream_handle = arena->stream->handle;
            run.large = segment->large;
            run.expandable = segment->expandable;
            run.pool = arena->pool->id();
            run.stack = segment->stack;
            taken.segments.push_back(std::move(run));
          }
          in_run = block->mapped;
          if (in_run) ReportBlock(block, &taken.segments.back());
        }
      }
    }
    std::sort(taken.segments.begin(), taken.segments.end(), [](const SnapshotSegment& a, const SnapshotSegment& b) {
      return a.device != b.device ? a.device < b.device : a.address < b.address;
    });
    *out = std::move(taken);
    return CUDA_SUCCESS;
  } catch (...) {
    return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "TakeSnapshot: no host memory");
  }
}

bool Report::FindBlock(CUdeviceptr address, CUdeviceptr* base, std::size_t* size) noexcept {
  if (env_.fast_serial() != env_.serial && env_.Forked()) return false;
  // Where it begins is told without a lock, which would tell no more: that a block was live there a moment ago.
  const Block* block = size == nullptr ? env_.map.Find(address) : nullptr;
  if (block != nullptr && (block->state.load(std::memory_order_acquire) & kStatusMask) == kLive &&
      block->address.load(std::memory_order_relaxed) == address) {
    *base = address;
    return true;
  }
  block = env_.map.LiveAtOrBelow(address);
  Arena* const arena = block == nullptr ? nullptr : block->arena.load(std::memory_order_relaxed);
  if (arena == nullptr) return false;
  const Held held(arena->lock);  // a block of somebody else's may be freed meanwhile
  const CUdeviceptr begin = block->address.load(std::memory_order_relaxed);
  if (block->arena.load(std::memory_order_relaxed) != arena || (block->state.load(std::memory_order_acquire) & kStatusMask) != kLive)
    return false;
  if (begin > address || address - begin >= block->size) return false;
  *base = begin;
  if (size != nullptr) *size = block->size;
  return true;
}

}  // namespace cuaudit::alloc
