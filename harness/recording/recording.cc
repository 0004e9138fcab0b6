// SPDX-License-Identifier: MIT
#include "harness/recording/recording.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/journal/recording.h"
#include "harness/ledger/rules.h"

namespace cuaudit::harness {
namespace {

using faults::Record;
using faults::RecordSlot;

faults::RingName RingOf(const Record& record) { return faults::IsPassing(record.kind, record.call) ? faults::kPassing : faults::kLasting; }

class Reader {
 public:
  Reader(const faults::JournalView& journal, Recording* recording)
      : recording_(recording),
        packed_((journal.header().flags.load() & faults::kPacked) != 0),
        earlier_(journal.header().fixed_check == 0) {}

  // `taken`: the counters of the ring say that the slot was.
  void Read(const RecordSlot& slot, bool taken) {
    const std::uint32_t state = slot.state.load(std::memory_order_acquire);
    if (state == faults::kSlotFree && !taken) return;
    const bool known = slot.record.kind != faults::RecordKind::Empty && slot.record.kind <= faults::RecordKind::Stop;
    if (known && slot.record.begin != 0 && IsChecked(slot, state)) {
      recording_->records.push_back(slot.record);
      recording_->times.push_back(slot.time);
    } else if (state == faults::kSlotHeld && !packed_) {
      ++recording_->torn;
    } else {
      ++recording_->damaged;
    }
  }

  // Leaves out what is older than the last `window` hundredths of a second.
  void LimitTo(std::uint32_t window) {
    if (window == 0 || recording_->times.empty()) return;
    const std::uint32_t last = *std::max_element(recording_->times.begin(), recording_->times.end());
    if (last <= window) return;
    for (std::size_t i = 0; i < recording_->records.size(); ++i) {
      const Record& record = recording_->records[i];
      if (recording_->times[i] >= last - window || record.end == 0) continue;
      std::uint64_t& until = recording_->gone_until[RingOf(record)];
      until = std::max(until, record.end);
    }
  }

  // Leaves out what has a gap behind it, and sorts the rest. A call that has not returned stays: it may be why the program stands still.
  void Settle() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < recording_->records.size(); ++i) {
      const Record& record = recording_->records[i];
      const faults::RingName ring = RingOf(record);
      if (record.end != 0 && record.begin <= recording_->gone_until[ring]) {
        ++recording_->gone[ring];
      } else {
        order.push_back(i);
      }
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return recording_->records[a].begin < recording_->records[b].begin; });
    std::vector<Record> records;
    std::vector<std::uint32_t> times;
    records.reserve(order.size());
    times.reserve(order.size());
    for (const std::size_t at : order) {
      records.push_back(recording_->records[at]);
      times.push_back(recording_->times[at]);
    }
    recording_->records = std::move(records);
    recording_->times = std::move(times);
  }

 private:
  // A process may have been killed after it finished a record and before it said so in the state. Only whole records are packed, with
  // the one check that each needs.
  bool IsChecked(const RecordSlot& slot, std::uint32_t state) const {
    const bool finished = slot.record.end != 0;
    const bool as_state = state == faults::kSlotDone ? finished : state == faults::kSlotHeld && !(packed_ && finished);
    const std::uint32_t begun = slot.begun.load(std::memory_order_relaxed);
    const std::uint32_t done = slot.done.load(std::memory_order_relaxed);
    if (!as_state || (finished ? packed_ && begun != 0 : done != 0)) return false;
    const std::uint32_t check = earlier_ ? faults::CheckOf(slot.record) : finished ? faults::DoneCheckOf(slot) : faults::BegunCheckOf(slot);
    return (finished ? done : begun) == check;
  }

  Recording* recording_;
  bool packed_;
  bool earlier_;  // made by a tool whose checks do not cover the time
};

// The slots of a ring that have been taken since the file was made: none of them is free again.
std::uint64_t TakenOf(const faults::JournalHeader& header, const faults::Ring& ring) {
  const bool full = (header.flags.load() & faults::kNoSpace) != 0;
  return std::min(ring.next.load(), full ? std::min(ring.reserved.load(), ring.slots) : ring.slots);
}

}  // namespace

Recording ReadRecording(const faults::JournalView& journal, std::uint32_t window) {
  const faults::JournalHeader& header = journal.header();
  Recording recording;
  recording.dropped = header.dropped.load();
  for (std::size_t i = 0; i < faults::kRings; ++i) {
    recording.gone[i] = header.ring[i].overwritten.load();
    recording.gone_until[i] = header.ring[i].lost_until.load();
  }
  const bool packed = (header.flags.load() & faults::kPacked) != 0;
  if (packed) {
    recording.torn = header.packed_torn;
    recording.damaged = header.packed_damaged;
    recording.counts_unknown = header.fixed_check == 0 || (header.flags.load() & faults::kCountsUnknown) != 0;
  }
  Reader reader(journal, &recording);
  for (std::size_t i = 0; i < journal.slots().size(); ++i) {
    const faults::Ring& ring = header.ring[i < header.ring[faults::kPassing].first ? faults::kLasting : faults::kPassing];
    reader.Read(journal.slots()[i], packed || (i >= ring.first && i - ring.first < TakenOf(header, ring)));
  }
  reader.LimitTo(window != 0 ? window : header.window);
  reader.Settle();
  return recording;
}

std::map<driver::Kind, std::uint64_t> HeldBefore(const faults::JournalView& journal, const Ledger& ledger) {
  std::unordered_set<std::uint64_t> settled;
  for (const Object& object : ledger.objects) settled.insert(object.released.begin);
  std::map<driver::Kind, std::uint64_t> held;
  for (const std::uint32_t index : ledger.facts.calls) {
    const faults::Record& record = journal.records()[index];
    const driver::EffectRow& row = driver::EffectOf(BaseOf(record));
    const bool done = record.end != 0 && record.result == 0 && (record.flags & faults::kForwarded) != 0;
    if (!done || !driver::IsRelease(row.effect) || settled.contains(record.begin)) continue;
    const bool nothing = row.object >= 0 && record.argument[row.object] == 0 && row.kind != driver::Kind::PrimaryContext;
    if (!nothing && row.effect != driver::Effect::PopsContext) ++held[row.kind];
  }
  return held;
}

void DropWhatNeedsTheBeginning(Ledger* ledger) {
  std::erase_if(ledger->violations, [](const Violation& violation) {
    return violation.rule == Rule::ContextStack || violation.rule == Rule::OverReleasedPrimary ||
           violation.rule == Rule::OverReleasedReference;
  });
}

void DropWhatNeedsTheEnd(Ledger* ledger) {
  std::erase_if(ledger->violations, [&](const Violation& violation) {
    const ProcessFacts* const process = ledger->facts.Process(violation.pid);
    return violation.rule == Rule::ContextStack && (process == nullptr || process->exit == 0);
  });
}

namespace {

enum class Maps : std::uint8_t { Has, HasNot, Unknown };

// Overlay file systems name another device than stat does, so there the last part of the path decides.
bool IsMapping(const std::string& line, const struct stat& file, const std::string& name) {
  char permissions[5] = "";
  unsigned major_number = 0;
  unsigned minor_number = 0;
  std::uint64_t inode = 0;
  if (std::sscanf(line.c_str(), "%*x-%*x %4s %*x %x:%x %" SCNu64, permissions, &major_number, &minor_number, &inode) != 4) return false;
  if (permissions[3] != 's' || permissions[1] != 'w' || inode != file.st_ino) return false;
  return makedev(major_number, minor_number) == file.st_dev || line.ends_with("/" + name);
}

Maps LookInto(pid_t process, const struct stat& file, const std::string& name) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  if (!maps) return Maps::Unknown;
  for (std::string line; std::getline(maps, line);) {
    if (IsMapping(line, file, name)) return Maps::Has;
  }
  return maps.bad() ? Maps::Unknown : Maps::HasNot;
}

// Processes of which the recording has a beginning and no end.
std::set<pid_t> Unended(const Recording& recording) {
  std::set<pid_t> processes;
  for (const faults::Record& record : recording.records) {
    const auto process = static_cast<pid_t>(record.pid);
    const bool exit = record.kind == faults::RecordKind::Process && record.call == static_cast<std::uint16_t>(faults::ProcessEvent::Exit);
    if (exit) processes.erase(process);
    else processes.insert(process);
  }
  return processes;
}

}  // namespace

std::optional<pid_t> WriterOf(const std::string& path, const Recording& recording) {
  struct stat file = {};
  if (stat(path.c_str(), &file) != 0) return {};
  std::error_code error;
  const std::string name = std::filesystem::canonical(path, error).filename().string();
  const std::set<pid_t> unended = Unended(recording);
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string entry = at->path().filename().string();
    pid_t process = 0;
    const std::from_chars_result number = std::from_chars(entry.data(), entry.data() + entry.size(), process);
    if (number.ec != std::errc() || number.ptr != entry.data() + entry.size() || process == getpid()) continue;
    const Maps maps = LookInto(process, file, name);
    if (maps == Maps::Has || (maps == Maps::Unknown && access(("/proc/" + entry).c_str(), F_OK) == 0 && unended.contains(process)))
      return process;
  }
  return {};
}

}  // namespace cuaudit::harness
