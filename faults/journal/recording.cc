// SPDX-License-Identifier: MIT
#include "faults/journal/recording.h"

#include <string.h>
#include <time.h>

#include <string_view>

#include "faults/driver/effects.h"
#include "faults/driver/shape.h"

namespace cuaudit::faults {
namespace {

// Four sums side by side, because each step waits for a multiplication.
class Mixer {
 public:
  void Add(const unsigned char* bytes, std::size_t count) noexcept {
    for (std::size_t i = 0; i + 8 <= count; i += 8) {
      std::uint64_t word = 0;
      memcpy(&word, bytes + i, sizeof(word));
      std::uint64_t& lane = lane_[i / 8 % kLanes];
      lane = (lane ^ word) * 0x9fb21c651e98df25U;
      lane ^= lane >> 29;
    }
  }
  std::uint64_t Sum() const noexcept {
    std::uint64_t sum = 0x9e3779b97f4a7c15U;
    for (const std::uint64_t lane : lane_) {
      sum = (sum ^ lane) * 0xff51afd7ed558ccdU;
      sum ^= sum >> 32;
    }
    return sum == 0 ? 1 : sum;
  }

 private:
  static constexpr std::size_t kLanes = 4;
  std::uint64_t lane_[kLanes] = {1, 2, 3, 4};
};

std::uint32_t Short(std::uint64_t sum) noexcept {
  const auto check = static_cast<std::uint32_t>(sum);
  return check == 0 ? 1 : check;
}

std::uint32_t CheckWith(const RecordSlot& slot, std::uint32_t begun) noexcept {
  Mixer mixer;
  mixer.Add(reinterpret_cast<const unsigned char*>(&slot.record), sizeof(slot.record));
  const std::uint64_t more = std::uint64_t{slot.time} << 32U | begun;
  mixer.Add(reinterpret_cast<const unsigned char*>(&more), sizeof(more));
  return Short(mixer.Sum());
}

bool Begins(std::string_view name, std::string_view with) noexcept {
  return name.size() >= with.size() && memcmp(name.data(), with.data(), with.size()) == 0;
}

bool Ends(std::string_view name, std::string_view with) noexcept {
  return name.size() >= with.size() && memcmp(name.data() + (name.size() - with.size()), with.data(), with.size()) == 0;
}

}  // namespace

std::uint32_t CheckOf(const Record& record) noexcept {
  Mixer mixer;
  mixer.Add(reinterpret_cast<const unsigned char*>(&record), sizeof(record));
  return Short(mixer.Sum());
}

std::uint32_t BegunCheckOf(const RecordSlot& slot) noexcept { return CheckWith(slot, 0); }

std::uint32_t DoneCheckOf(const RecordSlot& slot) noexcept { return CheckWith(slot, slot.begun.load(std::memory_order_relaxed)); }

std::uint64_t FixedDigestOf(const JournalHeader& header) noexcept {
  constexpr std::size_t kEnd = offsetof(JournalHeader, tables_check);
  static_assert(kEnd % 8 == 0 && offsetof(JournalHeader, started) + sizeof(header.started) == kEnd);
  Mixer mixer;
  mixer.Add(reinterpret_cast<const unsigned char*>(&header), kEnd);
  std::uint64_t more[2 * kRings + 1] = {header.flags.load(std::memory_order_relaxed) & (kRecording | kPacked | kCountsUnknown)};
  for (std::size_t i = 0; i < kRings; ++i) {
    more[2 * i + 1] = header.ring[i].first;
    more[2 * i + 2] = header.ring[i].slots;
  }
  mixer.Add(reinterpret_cast<const unsigned char*>(more), sizeof(more));
  return mixer.Sum();
}

std::uint64_t DigestOf(const JournalHeader& header, const char* base) noexcept {
  static_assert(sizeof(JournalHeader) % 8 == 0);
  constexpr std::size_t kCheckAt = offsetof(JournalHeader, tables_check);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(base);
  Mixer mixer;
  mixer.Add(bytes, kCheckAt);
  mixer.Add(bytes + kCheckAt + sizeof(header.tables_check), header.records_offset - kCheckAt - sizeof(header.tables_check));
  return mixer.Sum();
}

std::uint64_t HundredthsNow() noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 100 + static_cast<std::uint64_t>(now.tv_nsec) / 10000000;
}

bool IsPassing(RecordKind kind, std::uint16_t call) noexcept {
  if ((kind != RecordKind::Call && kind != RecordKind::Argument) || call >= driver::kCallCount) return false;
  const driver::EffectRow& row = driver::EffectOf(driver::BaseOf(static_cast<driver::CallId>(call)));
  if (row.effect == driver::Effect::Queries || row.effect == driver::Effect::Describes) return true;
  if (row.effect != driver::Effect::Uses) return false;
  // Events and what joins a capture decide later what an allocation belongs to, so they last.
  const std::string_view name = driver::Name(row.base);
  return Begins(name, "cuLaunch") || Begins(name, "cuMemcpy") || Begins(name, "cuMemset") || Ends(name, "Synchronize");
}

bool IsPlainQuery(driver::CallId call) noexcept {
  if (driver::EffectOf(driver::BaseOf(call)).effect != driver::Effect::Queries) return false;
  const driver::Shape& shape = driver::ShapeOf(call);
  for (std::size_t i = 0; i < shape.count; ++i) {
    if (shape.parameter[i].family != driver::Family::None) return false;
  }
  return true;
}

bool IsData(driver::BaseId base, std::size_t argument) noexcept {
  using driver::BaseId;
  switch (base) {
    case BaseId::MemsetD8:
    case BaseId::MemsetD16:
    case BaseId::MemsetD32:
    case BaseId::MemsetD8Async:
    case BaseId::MemsetD16Async:
    case BaseId::MemsetD32Async:
      return argument == 1;
    case BaseId::MemsetD2D8:
    case BaseId::MemsetD2D16:
    case BaseId::MemsetD2D32:
    case BaseId::MemsetD2D8Async:
    case BaseId::MemsetD2D16Async:
    case BaseId::MemsetD2D32Async:
    case BaseId::StreamWriteValue32:
    case BaseId::StreamWriteValue64:
    case BaseId::StreamWaitValue32:
    case BaseId::StreamWaitValue64:
    case BaseId::ParamSetf:
    case BaseId::ParamSeti:
      return argument == 2;
    default:
      return false;
  }
}

}  // namespace cuaudit::faults
