// SPDX-License-Identifier: MIT
// What must be true after each step, whatever the allocator chose.
#include <algorithm>

#include "suites/unit/allocator/model/execution.h"

namespace cuaudit::alloc {
// Multiples of 512; with divisions the next border of the equal parts between two powers of two.
std::size_t Execution::Rounded(std::size_t bytes) const {
  const std::size_t simple = (bytes + kMinBlock - 1) / kMinBlock * kMinBlock;
  std::size_t interval = 0;
  while (interval + 1 < kDivisionSteps && bytes >= (2 * kMiB << interval)) ++interval;
  const std::size_t divisions = program_.options.roundup_power2_divisions[interval];
  if (divisions < 2 || bytes <= divisions * kMinBlock) return simple;
  std::size_t low = 1;
  while (2 * low <= bytes) low *= 2;
  std::size_t border = low;
  while (border < bytes) border += low / divisions;
  return border;
}

void Execution::OnMisuse(void* self, const driver::Misuse& misuse) {
  auto* const me = static_cast<Execution*>(self);
  // What a lost context was given is over; here it runs on.
  if (me->faulty_ != nullptr && me->faulty_->lost()) return;
  if (me->oracle_rule_ < 0) me->oracle_rule_ = static_cast<int>(misuse.rule);
}

// With expandable segments only where the driver was said to have no addresses for a range.
bool Execution::LiesInPlain(const Block& block) {
  if (!program_.options.expandable_segments) return true;
  if (faulty_ == nullptr) return false;
  const auto calls = faulty_->Calls();
  const bool had_no_range = std::any_of(calls.begin(), calls.end(), [](const faults::Record& call) {
    return IsInjected(call) && BaseOf(call) == driver::BaseId::MemAddressReserve && call.result == CUDA_ERROR_OUT_OF_MEMORY;
  });
  Snapshot snapshot;
  if (!had_no_range || !Took(allocator_->TakeSnapshot(&snapshot), "TakeSnapshot")) return false;
  return std::any_of(snapshot.segments.begin(), snapshot.segments.end(), [&block](const SnapshotSegment& segment) {
    return segment.device == block.device && block.address - segment.address < segment.total_size && !segment.expandable;
  });
}

// No two live blocks overlap; the size is what the rules say.
void Execution::CheckGiven(const Block& block, std::size_t bytes, bool whole_blocks) {
  const auto after = blocks_.lower_bound(block.address);
  if (after != blocks_.end() && after->first < block.address + block.size) return Fail("it overlaps live x%d", after->second->slot);
  if (after != blocks_.begin()) {
    const Block& before = *std::prev(after)->second;
    if (before.address + before.size > block.address) return Fail("it overlaps live x%d", before.slot);
  }
  if (block.address % kMinBlock != 0 || block.size % kMinBlock != 0) return Fail("%zu bytes: not a multiple of 512", block.size);
  const std::size_t rounded = Rounded(bytes);
  if (block.size < rounded) return Fail("a block of %zu for %zu bytes", block.size, bytes);
  if (whole_blocks) return;
  const Options& options = program_.options;
  std::size_t most = rounded <= kSmallLimit ? 0 : kMiB;
  const bool is_oversize = options.max_split_size != 0 && rounded >= options.max_split_size;
  if (is_oversize && block.size - rounded > most && LiesInPlain(block)) most = options.max_non_split_rounding;
  if (block.size - rounded > most) Fail("a block of %zu for %zu bytes: the rest should have been cut off", block.size, bytes);
}

// Reuse::Poll: nobody waits, so every use that was told of must be over by now. The program's own event at the same place knows.
void Execution::CheckPending(const Block& block) {
  for (auto at = pending_.begin(); at != pending_.end();) {
    if (at->address + at->size <= block.address || at->address >= block.address + block.size) {
      ++at;
      continue;
    }
    for (const Told& told : at->told) {
      if (told.event == nullptr || told.stream == block.owner) continue;
      if (program_.options.reuse == Reuse::Poll && !conditions_.forgetful) {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        (void)Ok(d_.ThreadExchangeStreamCaptureMode(&mode), "ThreadExchangeStreamCaptureMode");
        const CUresult result = d_.EventQuery(told.event);
        (void)Ok(d_.ThreadExchangeStreamCaptureMode(&mode), "ThreadExchangeStreamCaptureMode");
        ++outcome_.checked_pending;
        outcome_.is_misuse = outcome_.is_misuse || result == CUDA_ERROR_NOT_READY;
        if (result == CUDA_ERROR_NOT_READY) Fail("misuse seen: it holds memory that s%d, as was told, still uses", told.stream);
      }
    }
    // A part that was not given out yet stays pending.
    const CUdeviceptr end = at->address + at->size;
    if (at->address >= block.address && end <= block.address + block.size) {
      for (const Told& told : at->told) {
        if (told.event != nullptr) (void)Ok(d_.EventDestroy(told.event), "EventDestroy");
      }
      at = pending_.erase(at);
    } else {
      ++at;
    }
  }
}

// Refused only when the driver does not grant what must be asked of it.
void Execution::CheckRefused(int device, std::size_t bytes) {
  const std::size_t rounded = Rounded(bytes);
  std::size_t segment = rounded <= kSmallLimit     ? kSmallSegment
                        : rounded < kMinLargeAlloc ? program_.options.large_segment_size
                                                   : (rounded + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
  if (program_.options.expandable_segments) segment = std::max(segment, rounded + (std::size_t{40} << 20));  // whole pages, both ends
  Statistics now;
  allocator_->GetStatistics(device, &now);
  if (segment > limit_[device] || static_cast<std::size_t>(now.reserved_bytes[0].current) > limit_[device] - segment) return;
  CUdeviceptr probe = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  (void)Ok(d_.ThreadExchangeStreamCaptureMode(&mode), "ThreadExchangeStreamCaptureMode");
  On(device, [&] {
    if (AnyCapture() || d_.MemAlloc(&probe, segment) != CUDA_SUCCESS) return;
    (void)Ok(d_.MemFree(probe), "MemFree");
    Fail("refused, though the driver grants %zu bytes", segment);
  });
  (void)Ok(d_.ThreadExchangeStreamCaptureMode(&mode), "ThreadExchangeStreamCaptureMode");
}

void Execution::CheckBooks() {
  if (oracle_rule_ >= 0) {
    outcome_.is_misuse = true;
    const std::string_view rule = driver::Name(static_cast<driver::MisuseRule>(oracle_rule_));
    return Fail("misuse proved: %.*s", static_cast<int>(rule.size()), rule.data());
  }
  for (int device = 0; device < program_.devices && !failed(); ++device) CheckBooks(device);
}

void Execution::CheckBooks(int device) {
  Statistics now;
  allocator_->GetStatistics(device, &now);
  std::int64_t count[kPoolKinds] = {};
  std::int64_t size[kPoolKinds] = {};
  std::int64_t asked[kPoolKinds] = {};
  for (const auto& [address, block] : blocks_) {
    if (block->device != device) continue;
    const std::size_t kind = Rounded(block->bytes) <= kSmallLimit ? 1 : 2;
    for (const std::size_t i : {std::size_t{0}, kind}) {
      ++count[i];
      size[i] += static_cast<std::int64_t>(block->size);
      asked[i] += static_cast<std::int64_t>(block->bytes);
    }
  }
  for (std::size_t i = 0; i < kPoolKinds; ++i) {
    const auto expect = [&](const char* what, std::int64_t have, std::int64_t want) {
      if (have != want)
        Fail("statistics: %s[%zu]: %lld, where the calls add up to %lld", what, i, static_cast<long long>(have),
             static_cast<long long>(want));
    };
    expect("allocation", now.allocation[i].current, count[i]);
    expect("allocated_bytes", now.allocated_bytes[i].current, size[i]);
    expect("requested_bytes", now.requested_bytes[i].current, asked[i]);
    if (now.active_bytes[i].current < size[i] || now.active_bytes[i].current > now.reserved_bytes[i].current)
      Fail("statistics: active_bytes[%zu]: %lld of %lld reserved", i, static_cast<long long>(now.active_bytes[i].current),
           static_cast<long long>(now.reserved_bytes[i].current));
    for (const StatArray* stat :
         {&now.allocation, &now.segment, &now.allocated_bytes, &now.reserved_bytes, &now.active_bytes, &now.requested_bytes}) {
      const Stat& one = (*stat)[i];
      if (one.allocated - one.freed != one.current || one.peak < one.current || one.current < 0)
        Fail("statistics: [%zu]: %lld now, peak %lld, +%lld -%lld", i, static_cast<long long>(one.current),
             static_cast<long long>(one.peak), static_cast<long long>(one.allocated), static_cast<long long>(one.freed));
    }
  }
  if (now.reserved_bytes[0].current != now.reserved_bytes[1].current + now.reserved_bytes[2].current)
    Fail("statistics: small and large do not add up");
  std::size_t free = 0;
  std::size_t total = 0;
  On(device, [&] { (void)Ok(d_.MemGetInfo(&free, &total), "MemGetInfo"); });
  // What the driver did not take back, or gave or took without saying so, need not be what is reserved.
  const auto unsaid = static_cast<std::int64_t>(free_at_start_[device] - free) - now.reserved_bytes[0].current;
  const std::int64_t least = faulty_ == nullptr ? 0 : -static_cast<std::int64_t>(faulty_->GoneBytes());
  // A page whose handle was released, and the allocator told that it was not, stays mapped for the next try.
  const std::int64_t most = faulty_ == nullptr ? 0 : static_cast<std::int64_t>(faulty_->KeptBytes()) - least;
  const bool is_lost = faulty_ != nullptr && faulty_->lost();  // its memory went along
  if ((unsaid > most && !is_lost) || unsaid < least)
    Fail("statistics: %lld reserved, and the driver has given %zu", static_cast<long long>(now.reserved_bytes[0].current),
         free_at_start_[device] - free);
  const std::uint64_t refused = now.double_frees + now.foreign_pointers;
  if (refused < wrong_frees_ || refused > wrong_asked_)
    Fail("statistics: %llu pointers were refused, %llu were wrong", static_cast<unsigned long long>(refused),
         static_cast<unsigned long long>(wrong_asked_));
  if (now.releases_refused != 0 && (faulty_ == nullptr || faulty_->fired() == 0)) Fail("statistics: the driver refused a release");
}

// Blocks tile their segments, and the live ones are those that are held.
void Execution::CheckSnapshot() {
  Snapshot snapshot;
  if (!Took(allocator_->TakeSnapshot(&snapshot), "TakeSnapshot")) return;
  std::size_t live = 0;
  std::size_t reserved = 0;
  CUdeviceptr end = 0;
  int device = 0;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != device) end = 0;
    device = segment.device;
    if (segment.address < end) return Fail("snapshot: segments overlap");
    CUdeviceptr at = segment.address;
    std::size_t allocated = 0;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.address != at || block.size == 0) return Fail("snapshot: the blocks of a segment do not tile it");
      at += block.size;
      if (block.state != BlockState::ActiveAllocated) continue;
      ++live;
      allocated += block.size;
      const auto known = blocks_.find(block.address);
      if (known == blocks_.end() || known->second->size != block.size || known->second->bytes != block.requested)
        return Fail("snapshot: a block of %zu bytes is live that nobody holds", block.size);
    }
    const std::size_t never_split = program_.options.max_split_size;
    if (never_split != 0 && segment.large && !segment.expandable && segment.total_size > never_split && segment.blocks.size() != 1)
      return Fail("snapshot: an oversize segment of %zu bytes was split", segment.total_size);
    end = segment.address + segment.total_size;
    reserved += segment.total_size;
    if (at != end || allocated != segment.allocated_size) return Fail("snapshot: the blocks of a segment do not add up");
  }
  std::int64_t in_all = 0;
  for (int i = 0; i < program_.devices; ++i) {
    Statistics now;
    allocator_->GetStatistics(i, &now);
    in_all += now.reserved_bytes[0].current;
    reserved += now.bytes_unusable;  // of them a snapshot does not tell
    if (now.bytes_unusable != 0 && faulty_ == nullptr) return Fail("statistics: memory is unusable though no call failed");
  }
  if (live != blocks_.size()) return Fail("snapshot: %zu live blocks, %zu are held", live, blocks_.size());
  // Of what was perhaps given back, and cannot be asked about, the address is perhaps somebody else's: it counts, and is not shown.
  const std::size_t in_doubt = faulty_ == nullptr ? 0 : faulty_->KeptBytes() + faulty_->GoneBytes();
  if (reserved > static_cast<std::size_t>(in_all) || reserved + in_doubt < static_cast<std::size_t>(in_all))
    Fail("snapshot: segments of %zu bytes in all", reserved);
}

// All is given back by it; by a second one when a release failed. What was done though it failed is then somebody else's, and stays so.
void Execution::CheckClose() {
  using driver::CallId;
  static constexpr CallId kReleases[] = {
      CallId::MemFree_v2,     CallId::MemFreeHost,     CallId::MemUnmap,         CallId::MemRelease,
      CallId::MemAddressFree, CallId::EventDestroy_v2, CallId::StreamDestroy_v2, CallId::DevicePrimaryCtxRelease_v2};
  static constexpr CallId kTriedAgain[] = {CallId::MemFree_v2, CallId::MemFreeHost, CallId::MemUnmap, CallId::MemRelease};
  const CallId call = kReleases[program_.seed / 2 % std::size(kReleases)];
  const bool is_vmm = call == CallId::MemUnmap || call == CallId::MemRelease || call == CallId::MemAddressFree;
  if (failing_ != nullptr) {
    failing_->code = is_vmm ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    failing_->taken_bytes = std::size_t{2} << 20;
    failing_->Fail(call, program_.seed % 3 == 0 ? Failing::Refused : Failing::Done);
  }
  std::size_t left = 0;
  Say("Close();");
  const CUresult result = allocator_->Close(&left);
  if (left != blocks_.size()) return Fail("Close counted %zu live blocks of %zu", left, blocks_.size());
  if (failing_ == nullptr || !failing_->failed()) return static_cast<void>(Took(result, "Close"));
  ++outcome_.failed_releases;
  if (result != failing_->code) return Fail("Close: what failed was not told");
  Say("Close();");
  if (!Took(allocator_->Close(), "Close")) return;
  // What is released once, the driver has kept.
  if (std::find(std::begin(kTriedAgain), std::end(kTriedAgain), call) == std::end(kTriedAgain)) {
    for (const auto& release : failing_->refused) (void)Ok(release(), "what was refused");
  }
  for (const CUdeviceptr address : failing_->taken) {
    if (d_.MemFree(address) == CUDA_SUCCESS) continue;
    outcome_.is_misuse = true;
    return Fail("misuse seen: memory that somebody else had got was released");
  }
}

void Execution::CheckEnd() {
  for (int slot = 0; slot < kGraphSlots && !failed(); ++slot) {
    if (graphs_[slot].capturing) EndCapture(slot);
  }
  for (int slot = 0; slot < kGraphSlots && !failed(); ++slot) {
    if (graph_there_[slot]) DropGraph(slot);
  }
  for (int slot = 0; slot < kPoolSlots && !failed(); ++slot) {
    DoPool({Act::EndPool, 0, static_cast<std::uint8_t>(slot)});
    DoPool({Act::ReleasePool, 0, static_cast<std::uint8_t>(slot)});
  }
  // Every second program leaves blocks to Close.
  if (program_.seed % 2 == 0) {
    while (!blocks_.empty() && !failed() && !exiting_) DoFree(blocks_.begin()->second.get());
  } else if (!failed()) {
    SynchronizeAll();
  }
  if (failed()) return;
  if (exiting_) return CheckExiting(false);
  if (faulty_ != nullptr) (void)d_.CtxSetCurrent(context_[0]);
  CheckBooks();
  if (failed()) return;
  allocator_->GetStatistics(0, &outcome_.statistics);
  outcome_.trace.push_back(static_cast<std::uint64_t>(outcome_.statistics.reserved_bytes[0].peak));
  outcome_.trace.push_back(static_cast<std::uint64_t>(outcome_.statistics.allocated_bytes[0].peak));
  outcome_.trace.push_back(static_cast<std::uint64_t>(outcome_.statistics.num_device_alloc));
  if (program_.seed % 2 == 0) {
    Say("EmptyCache();");
    bool emptied = Took(allocator_->EmptyCache(), "EmptyCache");
    if (faulty_ != nullptr) {
      if (failed()) return;
      if (exiting_) return CheckExiting(false);
      faulty_->Mend();
      emptied = Took(allocator_->EmptyCache(), "EmptyCache again") || faulty_->lost();
    }
    if (!emptied || failed()) return;
    for (int device = program_.devices - 1; device >= 0; --device) {
      allocator_->GetStatistics(device, &outcome_.statistics);
      if (faulty_ != nullptr && faulty_->lost()) continue;
      if (outcome_.statistics.reserved_bytes[0].current != 0 || outcome_.statistics.active_bytes[0].current != 0)
        return Fail("%lld bytes stay reserved when all is free", static_cast<long long>(outcome_.statistics.reserved_bytes[0].current));
    }
  }
  for (const auto& stream : streams_) {
    if (stream->tail != nullptr) (void)Ok(d_.EventDestroy(stream->tail), "EventDestroy");
    if (stream->handle != nullptr) (void)Ok(d_.StreamDestroy(stream->handle), "StreamDestroy");
  }
  std::vector<Told> all;
  for (const Pending& pending : pending_) all.insert(all.end(), pending.told.begin(), pending.told.end());
  for (const auto& [address, block] : blocks_) all.insert(all.end(), block->told.begin(), block->told.end());
  for (const Told& told : all) {
    if (told.event != nullptr) (void)Ok(d_.EventDestroy(told.event), "EventDestroy");
  }
  faulty_ == nullptr ? CheckClose() : CheckFaultyClose();
  if (failed() || exiting_) return;
  (void)Ok(d_.MemFree(first_address_), "MemFree");
  for (const driver::Kind kind :
       {driver::Kind::DeviceMemory, driver::Kind::Event, driver::Kind::Stream, driver::Kind::PinnedMemory, driver::Kind::Mapping,
        driver::Kind::PhysicalMemory, driver::Kind::AddressReservation, driver::Kind::PrimaryContext}) {
    const std::string_view name = driver::Name(kind);
    // What was refused in a lost context counts as gone with it, and what hangs on it stays too.
    const bool goes_along = faulty_ != nullptr && faulty_->lost() && kind != driver::Kind::PrimaryContext;
    if (goes_along ? Left(kind) < 0 : Left(kind) != 0)
      Fail("%lld x %.*s outlive the allocator", static_cast<long long>(Left(kind)), static_cast<int>(name.size()), name.data());
  }
  if (oracle_rule_ >= 0 && !failed()) {
    outcome_.is_misuse = true;
    Fail("misuse proved at the end");
  }
}

}  // namespace cuaudit::alloc
