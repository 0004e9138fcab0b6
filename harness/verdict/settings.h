// SPDX-License-Identifier: MIT
// settings.h: settings of a thread, a context or a device that a function changes for a while and puts back.
//
//   Owns      what the fault-free run does at each place.
//   Threads   one thread.
//
// Settings are the capture mode of a thread; limits, cache and shared memory configuration, flags and peers of a context; the memory pool
// of a device. The fault-free run shows which changes are undone by the same function. README.md, section "What a function puts back", says
// what is judged and what is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "faults/journal/record.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {

class Settings {
 public:
  explicit Settings(const Evidence& fault_free);
  // One finding for each change that the trial made where the fault-free run undoes it, and did not undo.
  [[nodiscard]] std::vector<TrialFinding> Missing(const Evidence& trial) const;

 private:
  struct Undone {
    bool always = true;        // whenever the fault-free run made the change
    bool in_its_cycle = true;  // in the same marked cycle
    std::size_t level = 0;     // as SharedLevel answers it
  };
  std::map<std::uint64_t, Undone> undone_;  // by SiteKey of the change
};

// True when one of the records changes a setting.
[[nodiscard]] bool ChangesSettings(std::span<const faults::Record> records);

}  // namespace cuaudit::harness
