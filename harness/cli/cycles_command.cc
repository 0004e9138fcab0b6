// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/cycle/counts.h"
#include "harness/cycle/cycles.h"
#include "harness/process/shell_quote.h"

namespace cuaudit::harness {

namespace {

constexpr std::uint64_t kGoOn = 8;  // times the last count of --n
constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 60U;

}  // namespace

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
  const CycleCounts asked{*counts, options.most_cycles == 0 ? kGoOn * std::min(counts->back(), kMostCounted) : options.most_cycles};
  const Status status = RunCycles(session->subject(), session->dir(), asked, certificate, reproduce, &run, &progress);
  if (progress.interrupted != 0) {
    return EndInterrupted({progress.interrupted, progress.done, progress.planned}, std::move(run), *session);
  }
  if (!status.ok()) return Fail(status, *session);
  FindDefects(&run);
  SayLeftOut(run);
  return Deliver(run, *session);
}

}  // namespace cuaudit::harness
