// SPDX-License-Identifier: MIT
// death.h: the finding of a run that crashed, aborted or missed its deadline: at which place, and of what.
#pragma once

#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/finding.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

// Hang, crash or abort. Pass when the process exited by itself.
[[nodiscard]] Verdict DeathOf(const Ending& ending);

// `where` is the place of the death itself where the journal has it (faults::RecordKind::Stop): the interrupted code, or the driver call
// that a hanging thread is inside of. Otherwise it is the last driver call, and `detail` says so.
[[nodiscard]] TrialFinding DeathFinding(Verdict verdict, const Evidence& trial);

}  // namespace cuaudit::harness
