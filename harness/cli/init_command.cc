// SPDX-License-Identifier: MIT
#include <array>
#include <chrono>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "faults/driver/kinds.h"
#include "harness/cli/case_runs.h"
#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/cycle/counts.h"
#include "harness/options/report_files.h"
#include "harness/process/files.h"
#include "harness/process/shell_quote.h"
#include "harness/project/init_file.h"
#include "harness/sweep/run/rehearsal.h"
#include "reports/escape.h"

namespace cuaudit::harness {
namespace {

constexpr driver::Kind kHostKinds[] = {driver::Kind::HostHeap,    driver::Kind::FileDescriptor,  driver::Kind::Thread,
                                       driver::Kind::HostMapping, driver::Kind::DlopenReference, driver::Kind::Mutex};

std::vector<HostSeen> HostOf(const Ledger& ledger) {
  std::array<HostSeen, driver::kKindCount> rows;
  for (const Object& object : ledger.objects) {
    if (object.driver_owned || object.part_of_other || object.library_kept) continue;
    HostSeen& row = rows[static_cast<std::size_t>(object.kind)];
    ++row.acquired;
    row.left += object.state != State::Released && object.state != State::Orphaned ? 1 : 0;
  }
  std::vector<HostSeen> host;
  for (const driver::Kind kind : kHostKinds) {
    HostSeen& row = rows[static_cast<std::size_t>(kind)];
    row.kind = std::string(driver::Name(kind));
    if (row.acquired != 0) host.push_back(row);
  }
  return host;
}

ProgramSeen WhatWasSeen(const Rehearsal& rehearsal, const Session& session, std::uint64_t run_ms) {
  ProgramSeen seen;
  seen.driver = std::string(Name(session.subject().launch.driver));
  if (session.options().driver == "auto") seen.why = session.why_driver();
  const Evidence run = rehearsal.run.evidence();
  std::set<std::uint32_t> threads;
  std::set<std::uint32_t> processes;
  for (const std::uint32_t call : run.facts().calls) {
    threads.insert(run.record(call).tid);
    processes.insert(run.record(call).pid);
  }
  seen.calls = run.facts().calls.size();
  seen.threads = threads.size();
  seen.processes = processes.size();
  seen.cycles = run.facts().cycles.size();
  if (rehearsal.drifting) seen.drift = rehearsal.drift;
  seen.run_ms = run_ms;
  seen.host = HostOf(rehearsal.run.ledger);
  return seen;
}

}  // namespace

Exit InitCommand(const Options& options) {
  const std::string& file = options.config_file;
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(file, error))) {
    return Refuse({Exit::Usage, file + ": is there already, expected another file (--config)"});
  }
  const Status writable = CheckOutput(file, "--config");
  if (!writable.ok()) return Refuse(writable);
  ProjectCase one;
  one.place = file;
  ApplyGiven(options, "command line", &one);
  one.options.program = options.program;
  one.name = CaseNameOf(options.program.front());
  const Status usable = CheckCase(one);
  if (!usable.ok()) return Refuse(usable);

  Options sweep = options;
  sweep.command = kSweep;
  sweep.program = WithCount(options.program, kCyclesOfSweep);
  const Result<Session> session = Session::Open(sweep);
  if (!session.ok()) return Refuse(session.status());
  int interrupted = 0;
  const auto begun = std::chrono::steady_clock::now();
  const Result<Rehearsal> rehearsal = Rehearse(session->subject(), session->dir(), 2, &interrupted);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  if (interrupted != 0) return static_cast<Exit>(kSignalled + interrupted);
  if (!rehearsal.ok()) {
    SayFailure(rehearsal.status());
    return rehearsal.status().exit();
  }
  const std::string here = std::filesystem::current_path(error).string();
  const ProgramSeen seen = WhatWasSeen(*rehearsal, *session, static_cast<std::uint64_t>(took.count()) / 2);
  const Status written = WriteFile(file, InitFile(one, seen, FolderOf(file), here), Exit::Failure);
  if (!written.ok()) return Refuse(written);
  return Print(report::ForTerminal(file) + ": case " + one.name + "; now: cuaudit audit" +
               (file == Options().config_file ? "" : " --config " + ShellQuote(file)) + "\n");
}

}  // namespace cuaudit::harness
