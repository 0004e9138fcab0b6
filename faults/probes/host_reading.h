// SPDX-License-Identifier: MIT
// host_reading.h: reads how much of the host a process holds now.
//
// A reading is a value for the whole process; no descriptor stays open. It allocates nothing, so that it does not measure itself. A
// meter that this system lacks is absent from HostReading::read and never 0. host_probes.def has the units. Sources: procfs(5),
// mallinfo2(3), dl_iterate_phdr(3); sanitizer/allocator_interface.h where a sanitizer owns the heap. Growth by allocation stack comes
// from the host drop-in's journal (faults/interpose), device memory from cuMemGetInfo. harness/cycle/growth.h decides when growth is a
// finding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace cuaudit::faults {

enum class HostMeter : std::uint8_t {
#define CUAUDIT_HOST_PROBE(...)
#define CUAUDIT_HOST_METER(name, ...) name,
#include "faults/probes/host_probes.def"
#undef CUAUDIT_HOST_METER
#undef CUAUDIT_HOST_PROBE
};

enum class MeterUnit : std::uint8_t { Count, Bytes };
enum class MeterNature : std::uint8_t { Exact, Noisy };
enum class MeterWhen : std::uint8_t { Cheap, OnDemand };

struct HostMeterRow {
  std::string_view name;
  MeterUnit unit;
  MeterNature nature;
  MeterWhen when;
};

inline constexpr HostMeterRow kHostMeters[] = {
#define CUAUDIT_HOST_PROBE(...)
#define CUAUDIT_HOST_METER(name, id, unit, nature, when, ...) {id, MeterUnit::unit, MeterNature::nature, MeterWhen::when},
#include "faults/probes/host_probes.def"
#undef CUAUDIT_HOST_METER
#undef CUAUDIT_HOST_PROBE
};
inline constexpr std::size_t kHostMeterCount = sizeof(kHostMeters) / sizeof(kHostMeters[0]);

struct HostProbeRow {
  std::string_view name;
  std::string_view sees;
  std::string_view on;
  std::string_view cost;
};
inline constexpr HostProbeRow kHostProbes[] = {
#define CUAUDIT_HOST_PROBE(id, sees, on, cost) {id, sees, on, cost},
#define CUAUDIT_HOST_METER(name, id, unit, nature, when, sees, on, cost) {id, sees, on, cost},
#include "faults/probes/host_probes.def"
#undef CUAUDIT_HOST_METER
#undef CUAUDIT_HOST_PROBE
};

constexpr const HostMeterRow& Row(HostMeter meter) { return kHostMeters[static_cast<std::size_t>(meter)]; }
constexpr std::string_view Name(HostMeter meter) { return Row(meter).name; }

// A set of meters, as bits.
class HostMeterSet {
 public:
  constexpr HostMeterSet() = default;
  constexpr HostMeterSet(std::initializer_list<HostMeter> meters) {
    for (const HostMeter meter : meters) Add(meter);
  }
  constexpr void Add(HostMeter meter) { bits_ |= 1U << static_cast<unsigned>(meter); }
  constexpr bool Has(HostMeter meter) const { return (bits_ >> static_cast<unsigned>(meter) & 1U) != 0; }
  constexpr HostMeterSet And(HostMeterSet other) const {
    HostMeterSet both;
    both.bits_ = bits_ & other.bits_;
    return both;
  }
  friend constexpr bool operator==(HostMeterSet, HostMeterSet) = default;

 private:
  std::uint32_t bits_ = 0;
};

constexpr HostMeterSet MetersThatAre(MeterWhen when) {
  HostMeterSet set;
  for (std::size_t i = 0; i < kHostMeterCount; ++i) {
    if (kHostMeters[i].when == when) set.Add(static_cast<HostMeter>(i));
  }
  return set;
}
inline constexpr HostMeterSet kCheapHostMeters = MetersThatAre(MeterWhen::Cheap);

struct HostReading {
  std::array<std::uint64_t, kHostMeterCount> value = {};
  HostMeterSet read;  // the requested meters that this system has
  std::uint64_t operator[](HostMeter meter) const { return value[static_cast<std::size_t>(meter)]; }
};

// False when malloc is the program's own or a sanitizer's. Its blocks are then unknown.
[[nodiscard]] bool HeapIsTheCLibrarys() noexcept;

[[nodiscard]] HostReading ReadHost(HostMeterSet wanted = kCheapHostMeters) noexcept;

}  // namespace cuaudit::faults
