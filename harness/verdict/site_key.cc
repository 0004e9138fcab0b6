// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/driver/call_id.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {
namespace {

using faults::Record;
using faults::RecordKind;

constexpr std::uint64_t kSeed = 0xcbf29ce484222325U;

// FNV-1a over the bytes of a value, least significant first.
std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) hash = (hash ^ ((value >> (8 * byte)) & 0xff)) * 0x100000001b3U;
  return hash;
}

std::uint64_t Mix(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return Mix(hash, text.size());
}

std::string_view BaseName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::uint64_t StackKey(const faults::JournalView& journal, std::uint64_t hash, std::span<const std::uint64_t> frames) {
  for (const std::uint64_t frame : frames) {
    const std::uint64_t module = faults::FrameModule(frame);
    if (module == faults::kNoModule) {  // generated code: its address means nothing in another run
      hash = Mix(hash, faults::kNoModule);
      continue;
    }
    const std::span<const std::uint8_t> build_id = journal.ModuleBuildId(module);
    if (build_id.empty()) {
      hash = Mix(hash, BaseName(journal.ModulePath(module)));
    } else {
      for (const std::uint8_t byte : build_id) hash = (hash ^ byte) * 0x100000001b3U;
    }
    hash = Mix(hash, faults::FrameOffset(frame));
  }
  return hash;
}

std::uint64_t Key(const faults::JournalView& journal, const Site& site, std::span<const std::uint64_t> frames) {
  std::uint64_t hash = Mix(kSeed, static_cast<std::uint64_t>(site.record_kind));
  if (site.record_kind == RecordKind::Call && site.call < driver::kCallCount) {
    // All versions of an entry point are one place: which one a program binds may depend on the driver.
    hash = Mix(hash, driver::Name(driver::BaseOf(static_cast<driver::CallId>(site.call))));
  } else {
    hash = Mix(hash, std::uint64_t{site.call});
  }
  return StackKey(journal, hash, frames);
}

}  // namespace

std::uint64_t SiteKey(const faults::JournalView& journal, const Site& site) { return Key(journal, site, journal.Stack(site.stack)); }

std::uint64_t CallerKey(const faults::JournalView& journal, const Site& site) {
  const std::span<const std::uint64_t> frames = journal.Stack(site.stack);
  return Key(journal, site, frames.first(frames.empty() ? 0 : 1));
}

// Threads are told apart by what they did, not by when they started: the hashes of all threads are sorted before they are joined.
std::uint64_t TraceHash(const faults::JournalView& journal) {
  std::vector<const Record*> calls;
  for (const Record& record : journal.records()) {
    if (record.kind == RecordKind::Call && record.begin != 0 && (record.flags & faults::kNested) == 0) calls.push_back(&record);
  }
  std::stable_sort(calls.begin(), calls.end(), [](const Record* a, const Record* b) { return a->begin < b->begin; });
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> threads;
  for (const Record* record : calls) {
    std::uint64_t& hash = threads.try_emplace({record->pid, record->tid}, kSeed).first->second;
    hash = Mix(hash, SiteKey(journal, {record->kind, record->call, record->stack, record->begin}));
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
