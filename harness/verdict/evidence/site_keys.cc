// SPDX-License-Identifier: MIT
#include "harness/verdict/evidence/site_keys.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/driver/foreign_runtime.h"
#include "faults/journal/journal_file.h"
#include "faults/journal/stack_key.h"

namespace cuaudit::harness {
namespace {

using faults::Record;
using faults::RecordKind;

constexpr std::uint64_t kSeed = faults::kKeySeed;

std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) { return faults::MixKey(hash, value); }

std::uint64_t Key(const faults::JournalView& journal, const Site& site, std::span<const std::uint64_t> frames) {
  if (site.record_kind == RecordKind::Call && site.call < driver::kCallCount) {
    // All versions of an entry point are one place, because the driver decides which version a program binds.
    const std::string_view base = driver::Name(BaseOf(site));
    return faults::CallKey(base, frames, journal.tables());
  }
  const std::uint64_t hash = Mix(Mix(kSeed, static_cast<std::uint64_t>(site.record_kind)), std::uint64_t{site.call});
  return faults::MixStack(hash, frames, journal.tables());
}

// A number for each combination of call, stack and record kind in a journal.
std::uint64_t PlaceOf(const Site& site) {
  return (std::uint64_t{site.stack} << 24) ^ (std::uint64_t{site.call} << 4) ^ static_cast<std::uint64_t>(site.record_kind);
}

}  // namespace

std::uint64_t SiteKey(const faults::JournalView& journal, const Site& site) {
  if (site.record_kind == RecordKind::Empty) return 0;
  const std::span<const std::uint64_t> frames = journal.Stack(site.stack);
  faults::KeyMemo* const memo = journal.memo();
  if (memo == nullptr || (frames.empty() && site.stack != 0)) return Key(journal, site, frames);
  const auto [found, fresh] = memo->site_keys.try_emplace(PlaceOf(site), 0);
  if (fresh) found->second = Key(journal, site, frames);
  return found->second;
}

std::uint64_t CallerKey(const faults::JournalView& journal, const Site& site) {
  const std::span<const std::uint64_t> frames = journal.Stack(site.stack);
  return Key(journal, site, frames.first(frames.empty() ? 0 : 1));
}

std::uint64_t RuntimeCallKey(const faults::JournalView& journal, const Site& site) {
  const std::span<const std::uint64_t> frames = journal.Stack(site.stack);
  const auto of_program = std::find_if_not(frames.begin(), frames.end(), [&journal](std::uint64_t frame) {
    const std::uint64_t module = faults::FrameModule(frame);
    return module < journal.modules().size() && driver::RuntimeFileOf(journal.ModulePath(module)).shared;
  });
  if (of_program == frames.begin() || of_program == frames.end()) return 0;
  return faults::MixStack(kSeed, {of_program, frames.end()}, journal.tables());
}

std::size_t CallerDistance(const faults::JournalView& journal, std::uint32_t from, std::uint32_t to) {
  const std::span<const std::uint64_t> frames = journal.Stack(from);
  const std::span<const std::uint64_t> others = journal.Stack(to);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    if (!others.empty() && std::find(others.begin() + 1, others.end(), frames[i]) != others.end()) return i;
  }
  return frames.size();
}

// The hashes of all threads are sorted before they are combined, so the order in which threads start does not matter.
std::uint64_t TraceHash(const Evidence& run) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> threads;
  for (const std::uint32_t call : run.facts().calls) {
    const Record* const record = &run.record(call);
    std::uint64_t& hash = threads.try_emplace({record->pid, record->tid}, kSeed).first->second;
    hash = Mix(hash, SiteKey(*run.journal, SiteOf(*record)));
    hash = Mix(hash, static_cast<std::uint64_t>(static_cast<std::uint32_t>(record->result)));
    hash = Mix(hash, std::uint64_t{record->end != 0});
  }
  std::vector<std::uint64_t> hashes;
  hashes.reserve(threads.size());
  for (const auto& [thread, hash] : threads) hashes.push_back(hash);
  std::sort(hashes.begin(), hashes.end());
  std::uint64_t all = kSeed;
  for (const std::uint64_t hash : hashes) all = Mix(all, hash);
  return all;
}

}  // namespace cuaudit::harness
