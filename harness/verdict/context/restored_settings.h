// SPDX-License-Identifier: MIT
// restored_settings.h: settings that a program changes for a while and puts back (faults/driver/settings.def).
//
//   Owns      what the fault-free run does at each place. Borrows the runs that it is given.
//   Threads   one thread.
//
// The fault-free run shows which changes are undone: a later call gives the same object its former value. A trial that makes such a change
// and does not undo it leaves it to whoever goes on. README.md, section "Settings", says what is judged and what is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "harness/verdict/context/setting_changes.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::harness {

class Returns;

class RestoredSettings {
 public:
  explicit RestoredSettings(const Evidence& fault_free);
  // One finding for each place whose change the fault-free run undoes, and the trial does not.
  std::vector<TrialFinding> Missing(const Evidence& trial) const;
  // Where the fault-free run undoes the changes of a place (SiteKey); Empty: it does not.
  Site BackAt(std::uint64_t place) const;
  // Of the last change at a place (SiteKey) before a ticket: the ticket of the first call that its thread makes once the function has
  // returned that undoes it, or of the end of the marked cycle. Nothing: the function runs to the end.
  std::optional<std::uint64_t> ReturnFrom(const Evidence& run, std::uint64_t place, std::uint64_t before) const;

 private:
  struct Undone {
    bool always = true;          // whenever the fault-free run made the change
    bool in_its_cycle = true;    // in the same marked cycle
    bool outlives_cycle = true;  // what has the setting is there when the marked cycle of the change ends
    bool once = true;            // one call of the function makes the change once
    Site back = {};              // where the first one is undone
    std::size_t level = 0;       // frame of the change from which the function that undoes it was called; beyond the frames: unknown
  };
  struct Left;
  Left LeftBy(const Evidence& trial, const SettingChanges& made, const SettingChange& change, const Undone& undone, std::size_t until,
              Returns* returns) const;

  std::map<std::uint64_t, Undone> undone_;  // by SiteKey of the change
};

// True for a call that works with what has the setting: something becomes of it that another value might change.
[[nodiscard]] bool WorksWith(const Setting& setting, const faults::Record& record, std::uint64_t current);

// True when the run may leave a setting otherwise than it found it.
[[nodiscard]] bool MayLeaveSettings(const Evidence& run);

}  // namespace cuaudit::harness
