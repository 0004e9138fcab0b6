// SPDX-License-Identifier: MIT
// setting_changes.h: the changes of settings that a run makes, and which of them it undoes.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "faults/driver/settings.h"
#include "faults/journal/record.h"
#include "harness/ledger/rules.h"
#include "harness/verdict/context/put_back_calls.h"
#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

// One setting of one object.
struct Setting {
  std::uint32_t pid = 0;
  const driver::SettingRow* row = nullptr;
  std::uint64_t object = 0;  // handle or number of what has it; of a thread its id
  std::uint64_t key = 0;
  auto operator<=>(const Setting&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 means the 0 that it compares with
};

struct SettingChange {
  Setting setting;
  const faults::Record* record = nullptr;
  std::size_t step = 0;          // which of the run's calls it is
  std::uint64_t before = 0;      // the value that it had
  std::uint64_t value = 0;       // the value that it was given
  bool found = false;            // the program was told the value that it had, or a new object has it
  std::size_t given = kNoCall;   // the call that gave it the value that it had
  std::size_t undone = kNoCall;  // the call that gave it the former value again, or tried to
  std::size_t ended = kNoCall;   // the call that ended what has the setting, or tried to
  bool undoes = false;           // it undoes another change
  bool denied = false;           // the program was told that the change had failed
};

// A call that gave a setting a value, whatever it was before, or failed to.
struct SettingCall {
  std::size_t step = 0;
  std::uint64_t value = 0;
  bool failed = false;
  std::size_t change = kNoCall;  // which of the changes it is
  bool puts_back = false;        // it undoes a change whose former value was found
};

struct SettingChanges {
  std::vector<SettingChange> changes;  // to another value than a known one
  std::map<Setting, std::vector<SettingCall>> calls;
  std::vector<std::uint64_t> current;  // of each call of the run: the context that was current; 0: unknown
};

[[nodiscard]] SettingChanges SettingChangesOf(const Evidence& run);

// The row of a call that changes a setting, and of one that tells its value; null: it does not.
[[nodiscard]] const driver::SettingRow* SetterOf(const faults::Record& record);
[[nodiscard]] const driver::SettingRow* QuestionOf(const faults::Record& record);
// What stands at an index of a row; 0 for kNo.
[[nodiscard]] std::uint64_t SettingArgument(const faults::Record& record, std::int8_t index);

// How a report names a setting and its values: "CU_LIMIT_STACK_SIZE 1024 -> 8192". A handle is left out, since it differs from run to run.
[[nodiscard]] Details WordsOf(const SettingChange& change, std::uint64_t left);

}  // namespace cuaudit::harness
