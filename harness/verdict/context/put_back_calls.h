// SPDX-License-Identifier: MIT
// put_back_calls.h: what one call changes or needs of the current context of its thread and of the capture of a stream (put_back.h), and
// which contexts a process no longer has.
#pragma once

#include <cstdint>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/journal/record.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::harness {

[[nodiscard]] driver::Effect EffectOfCall(const faults::Record& record);
[[nodiscard]] std::uint64_t StreamOf(const faults::Record& record);
[[nodiscard]] bool NamesStream(const faults::Record& record, std::uint64_t stream);
[[nodiscard]] bool SwitchesContext(const faults::Record& record, driver::Effect effect);
[[nodiscard]] bool OnlyLooks(const faults::Record& record, driver::Effect effect);
[[nodiscard]] bool NeedsCurrent(const faults::Record& record, driver::Effect effect);
void Follow(const faults::Record& record, driver::Effect effect, int* above);

// The contexts that no longer exist, are no longer the program's, or would not exist if the plan had not refused their end.
[[nodiscard]] bool IsGone(const Evidence& run, std::uint32_t pid, std::uint64_t context, std::uint64_t when);

// Adds a change that was not undone, and the call that then met with it; null: none did. Changes with the same places are one finding,
// which is answered.
TrialFinding* AddChange(const Evidence& trial, Rule rule, driver::Kind kind, const faults::Record& change, const faults::Record* met,
                        std::vector<TrialFinding>* findings);

}  // namespace cuaudit::harness
