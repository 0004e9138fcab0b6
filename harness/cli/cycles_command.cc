// SPDX-License-Identifier: MIT
#include <utility>

#include "harness/cli/carry_out.h"
#include "harness/cli/commands.h"
#include "harness/cli/recording_report.h"
#include "harness/cli/session.h"

namespace cuaudit::harness {

Exit CyclesCommand(const Options& options) {
  if (!options.from_journal.empty()) return CyclesOfRecording(options);
  const Result<CyclesAsked> asked = CyclesOf(options);
  if (!asked.ok()) return Refuse(asked.status());
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) return Refuse(session.status());
  Progress progress(options.progress);
  progress.Begin("runs");
  CarriedOut carried = CarryOutCycles(*session, *asked, &progress);
  if (carried.progressed.signal != 0) return EndInterrupted(carried.progressed, std::move(carried.run), *session);
  if (!carried.status.ok()) return Fail(carried.status, *session);
  SayLeftOut(carried.run);
  return Deliver(std::move(carried.run), *session);
}

}  // namespace cuaudit::harness
