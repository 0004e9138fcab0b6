// SPDX-License-Identifier: MIT
#include "harness/lifecycle/host_change.h"

#include <algorithm>
#include <atomic>

#include "harness/cycle/growth.h"
#include "reports/message.h"

extern "C" [[gnu::weak]] void __asan_init();

namespace cuaudit::harness {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHeapStep = 16;
constexpr std::int64_t kFewBytes = 1024;  // of heap
// The C library keeps freed blocks of up to 1,032 bytes. A lost one that it gives out from there does not show for several cycles.
constexpr std::size_t kLargestKept = 1032;
// The C library's caches settle within eight repeats, and then vary by up to 200 bytes with a period of a few repeats.
constexpr std::size_t kUntilItAddsUp = 32;
constexpr std::size_t kOneUnseenIn = 8;                   // repeats
constexpr std::uint64_t kZero = std::uint64_t{1} << 40U;  // keeps a series of sums positive

std::atomic<std::uint64_t> audits_under_way{0};
std::atomic<std::uint64_t> audits_begun{0};
std::atomic<std::uint64_t> last_crowded{0};  // newest audit that began while another one existed

bool IsBytes(HostMeter meter) { return faults::Row(meter).unit == faults::MeterUnit::Bytes; }

MeterFinding MeterFound(Rule rule, HostMeter meter, std::uint64_t amount, words::DetailPart detail) {
  MeterFinding finding{rule, {std::move(detail)}, meter};
  (IsBytes(meter) ? finding.bytes : finding.count) = amount;
  if (IsBytes(meter)) finding.count = 1;
  return finding;
}

std::vector<std::uint64_t> Sums(const std::vector<HostChange>& changes, HostMeter meter) {
  std::vector<std::uint64_t> sums;
  sums.reserve(changes.size());
  std::uint64_t sum = kZero;
  for (const HostChange& change : changes) sums.push_back(sum += static_cast<std::uint64_t>(change[meter]));
  return sums;
}

// For each small size the C library keeps up to seven freed blocks in each thread, and counts them as in use. They are taken from it here:
// then a block that the lifecycle loses comes from elsewhere, and the statistics see it.
void TakeCachedBlocks(std::vector<std::unique_ptr<char[]>>* taken) {
  constexpr std::size_t kEach = 7;
  taken->reserve(kEach * kLargestKept / kHeapStep);
  for (std::size_t size = 24; size <= kLargestKept; size += kHeapStep) {
    for (std::size_t i = 0; i < kEach; ++i) taken->emplace_back(new char[size]);
  }
}

}  // namespace

driver::Kind KindOf(HostMeter meter) {
  switch (meter) {
    case HostMeter::Descriptors:
      return driver::Kind::FileDescriptor;
    case HostMeter::Threads:
      return driver::Kind::Thread;
    case HostMeter::LoadedObjects:
      return driver::Kind::DlopenReference;
    case HostMeter::HeapBytes:
      return driver::Kind::HostHeap;
    case HostMeter::MappedBytes:
    case HostMeter::Mappings:
      return driver::Kind::HostMapping;
    case HostMeter::ResidentBytes:
      break;
  }
  return driver::Kind::None;
}

std::string_view WordOf(HostMeter meter) {
  if (meter == HostMeter::LoadedObjects) return "loaded_object";
  return meter == HostMeter::ResidentBytes ? faults::Name(meter) : driver::Name(KindOf(meter));
}

TrialFindingText TextOf(const MeterFinding& finding) {
  TrialFindingText text;
  text.rule = finding.rule;
  text.meter = WordOf(finding.meter);
  text.count = finding.count;
  text.bytes = finding.bytes;
  text.detail = Words(finding.detail);
  return text;
}

HostAudit::HostAudit(bool wanted, bool genuine) : wanted_(wanted), genuine_(genuine) {
  if (!wanted_) return;
  entered_ = ++audits_begun;
  if (++audits_under_way > 1) {
    last_crowded = entered_;
  } else if (!genuine) {
    records_ = HostRecords::Begin(&why_no_records_);
  }
  if (!sees_blocks()) TakeCachedBlocks(&taken_);
}

HostAudit::~HostAudit() {
  if (records_ != nullptr) records_->End();
  if (wanted_) --audits_under_way;
}

std::vector<Because> HostAudit::unmetered() const {
  std::vector<Because> reasons;
  if (records_ == nullptr) {
    const std::optional<Detail> why = genuine_ ? Detail::GenuineAmongThem : why_no_records_;
    if (why) reasons.push_back({Reason::NotByPlace, Words({*why})});
  } else {
    const HostBlind& blind = records_->blind();
    const auto stands_in_for = [](const char* name) { return Words({Detail::StandsInFor, {name}}); };
    if (blind.heap == HostUnseen::NoHooks) reasons.push_back({Reason::NoBlocks, Words({Detail::NoSanitizerHooks})});
    if (blind.heap == HostUnseen::Other) reasons.push_back({Reason::NoBlocks, Words({Detail::OwnAllocatorFirst})});
    if (blind.mutexes != HostUnseen::No) reasons.push_back({Reason::NoMutexes, stands_in_for("pthread_mutex_init")});
    if ((records_->View().header().flags.load() & faults::kMutexesDropped) != 0) reasons.push_back({Reason::MutexesBeyondApi});
    if (blind.libraries != HostUnseen::No) reasons.push_back({Reason::NoLibraries, stands_in_for("dlopen")});
  }
  if (genuine_) reasons.push_back({Reason::GenuineHeap, std::string(faults::Name(HostMeter::HeapBytes))});
  return reasons;
}

bool HostAudit::alone() const noexcept { return last_crowded < entered_; }

HostChange WhatIsKept(const HostChange& good) {
  HostChange kept = good;
  for (std::int64_t& value : kept.value) value = std::max<std::int64_t>(value, 0);
  return kept;
}

HostExcess::HostExcess(const HostChange& trial, const HostChange& good, HostMeterSet asked) : good_(good) {
  for (std::size_t i = 0; i < faults::kHostMeterCount; ++i) {
    const auto meter = static_cast<HostMeter>(i);
    if (!asked.Has(meter) || !trial.read.Has(meter) || !good.read.Has(meter)) continue;
    if (trial[meter] > good[meter]) kept_.push_back({meter, trial[meter] - good[meter]});
  }
}

bool HostExcess::IsFewBytes(const Kept& one) { return one.meter == HostMeter::HeapBytes && (one.least < kFewBytes || one.unseen != 0); }

// When something else stays as well, it may hold the memory, so kRepeats suffice.
std::size_t HostExcess::repeats_wanted() const { return std::all_of(kept_.begin(), kept_.end(), IsFewBytes) ? kUntilItAddsUp : kRepeats; }

void HostExcess::Repeat(const HostChange& trial, std::uint64_t heap_bytes) {
  const std::size_t quarter = repeats_++ / (kUntilItAddsUp / 4);
  if (quarter == 1) highest_early_ = std::max(highest_early_, heap_bytes);
  if (quarter == 3) lowest_late_ = std::min(lowest_late_, heap_bytes);
  const std::size_t may_be_unseen = 1 + repeats_ / kOneUnseenIn;
  std::erase_if(kept_, [&](Kept& one) {
    const std::int64_t more = trial[one.meter] - good_[one.meter];
    if (more > 0) {
      one.least = std::min(one.least, more);
      return false;
    }
    return one.meter != HostMeter::HeapBytes || ++one.unseen > may_be_unseen;
  });
}

void HostExcess::DropWhatDoesNotAddUp() {
  if (lowest_late_ <= highest_early_) std::erase_if(kept_, IsFewBytes);
  // Nine repeats do not tell whether what was unseen in some of them adds up.
  if (repeats_ < kUntilItAddsUp) std::erase_if(kept_, [](const Kept& one) { return one.unseen != 0; });
}

std::vector<MeterFinding> HostExcess::Findings() const {
  std::vector<MeterFinding> findings;
  for (const Kept& one : kept_) {
    words::DetailPart again = {Detail::KeptByEachRepeat, {std::to_string(repeats_)}};
    if (one.unseen != 0) again = {Detail::KeptBySomeRepeats, {std::to_string(repeats_ - one.unseen), std::to_string(repeats_)}};
    findings.push_back(MeterFound(Rule::Leak, one.meter, static_cast<std::uint64_t>(one.least), std::move(again)));
  }
  return findings;
}

HostGrowth GrowthOf(const std::vector<HostChange>& changes, std::uint32_t warm_up, bool noisy, bool genuine) {
  HostGrowth growth;
  const std::size_t first = std::min<std::size_t>(std::max(warm_up, 1U) - 1, changes.size());
  for (std::size_t i = 0; i < faults::kHostMeterCount; ++i) {
    const auto meter = static_cast<HostMeter>(i);
    if (!kCycleMeters.Has(meter)) continue;
    const std::string name(faults::Name(meter));
    if (!std::all_of(changes.begin(), changes.end(), [&](const HostChange& one) { return one.read.Has(meter); })) {
      growth.unmetered.push_back(Words(Reason::NotTold, name));
      continue;
    }
    std::vector<std::uint64_t> sums = Sums(changes, meter);
    sums.erase(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(first));
    if (faults::Row(meter).nature == faults::MeterNature::Exact) {
      const std::uint64_t least = *std::min_element(sums.begin(), sums.end());
      for (std::uint64_t& sum : sums) sum -= least;
      const report::Course course = JudgeEachCycle(sums);
      if (IsOpen(course)) {
        growth.findings.push_back(MeterFound(Rule::Growth, meter, sums.back() - sums.front(), {Detail::MoreAfterEach}));
      } else if (course.trend == report::Trend::Bounded) {
        growth.findings.push_back(
            MeterFound(Rule::Bounded, meter, sums.back() - sums.front(), {Detail::Course, {report::Describe(course)}}));
      }
      continue;
    }
    if (meter == HostMeter::HeapBytes && genuine) continue;  // see HostAudit::unmetered
    if (KindOf(meter) == driver::Kind::HostMapping && __asan_init != nullptr) {
      growth.unmetered.push_back(Words(Reason::AsanKeeps, name));
      continue;
    }
    if (meter == HostMeter::ResidentBytes && !genuine) {
      growth.unmetered.push_back(Words(Reason::DriversBooks, name));
      continue;
    }
    if (!noisy) {
      growth.unmetered.push_back(Words(Reason::ObjectsGrow, name));
      continue;
    }
    sums.erase(sums.begin());  // drops the end of the warm-up; only cycles remain
    const Growth judged = JudgeGrowth(sums, meter == HostMeter::HeapBytes ? kHeapStep : kPage);
    if (!judged.enough) {
      static_assert(kBlocks == 10);  // the text of the reason says ten
      growth.unmetered.push_back(Words(Reason::NeedsCycles, name));
    } else if (judged.grows) {
      growth.findings.push_back(MeterFound(Rule::Growth, meter, static_cast<std::uint64_t>(judged.per_cycle), {Detail::GrowsInEvery}));
    } else {
      const std::uint64_t seen =
          meter == HostMeter::HeapBytes ? std::max<std::uint64_t>(judged.detectable, kLargestKept + 1) : judged.detectable;
      growth.certificate.push_back({Detail::WouldBeSeen, {std::to_string(seen), name}});
    }
  }
  return growth;
}

}  // namespace cuaudit::harness
