// SPDX-License-Identifier: MIT
#include <utility>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/cycle/counts.h"
#include "harness/cycle/cycles.h"
#include "harness/process/shell_quote.h"

namespace cuaudit::harness {

Exit CyclesCommand(const Options& options) {
  const Result<std::vector<std::uint64_t>> counts = ParseCounts(options.n);
  if (!counts.ok()) return Refuse(counts.status());
  const Result<std::uint64_t> detect = ParseDetect(options.detect);
  if (!detect.ok()) return Refuse(detect.status());
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) return Refuse(session.status());
  report::Run run = session->NewReport();
  CyclesProgress progress;
  const std::string reproduce = session->CommandLine(kCycles) + " -- " + ShellJoin(session->subject().command);
  CertificateOptions certificate;
  certificate.warm_up = options.warm_up;
  certificate.detect = *detect;
  certificate.control = session->subject().launch.drop_in_dir + "/empty_lifecycle";
  const Status status = RunCycles(session->subject(), session->dir(), *counts, certificate, reproduce, &run, &progress);
  if (progress.interrupted != 0) {
    return EndInterrupted({progress.interrupted, progress.done, progress.planned}, std::move(run), *session);
  }
  if (!status.ok()) return Fail(status, *session);
  FindDefects(&run);
  SayLeftOut(run);
  return Deliver(run, options);
}

}  // namespace cuaudit::harness
