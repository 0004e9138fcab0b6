// SPDX-License-Identifier: MIT
#include "harness/project/init_file.h"

#include <fmt/core.h>

#include "harness/cycle/cycles.h"
#include "reports/escape.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

constexpr std::uint64_t kSlowMs = 1000;      // of a longer run the deadline is written down
constexpr std::uint64_t kDeadlineRuns = 10;  // so many times the length of a run
constexpr std::uint64_t kMsPerSecond = 1000;

// A comment stands on one line, whatever the program's names hold.
std::string Seen(const char* what, const std::string& text) { return fmt::format("#   {:<8} {}\n", what, report::ForTerminal(text)); }

std::string Of(std::uint64_t count, const char* word, const char* plural) {
  return std::to_string(count) + " " + (count == 1 ? word : plural);
}

std::string WhatWasSeen(const ProgramSeen& seen) {
  std::string text = Seen("driver", std::string(DriverInWords(seen.driver)) + (seen.why.empty() ? "" : ": " + seen.why));
  text += Seen("calls", Of(seen.calls, "driver call", "driver calls") + " by " + Of(seen.threads, "thread", "threads") + " of " +
                            Of(seen.processes, "process", "processes"));
  text += Seen("order",
               seen.drift.empty() ? "the same in both runs" : "two runs differ at " + seen.drift + "; faults are addressed by call stack");
  text += Seen("cycles", seen.cycles == 0 ? "none marked (cuaudit/mark.h)" : std::to_string(seen.cycles) + " marked");
  text += Seen("time", seen.run_ms < kMsPerSecond
                           ? std::to_string(seen.run_ms) + " ms a run"
                           : fmt::format("{:.1f} s a run", static_cast<double>(seen.run_ms) / static_cast<double>(kMsPerSecond)));
  std::string host;
  for (const report::LiveRow& one : seen.host) {
    host += fmt::format("{}{} {}", host.empty() ? "" : ", ", one.acquired, one.kind);
    if (one.live != 0) host += fmt::format(" ({} left at the end)", one.live);
  }
  return text + Seen("host", host.empty() ? "nothing acquired, or not looked at" : host);
}

std::string Line(const std::string& setting, const std::string& comment) {
  return comment.empty() ? setting + "\n" : fmt::format("{:<32} # {}\n", setting, comment);
}

std::string DirectoryOf(const ProjectCase& one, const std::string& folder, const std::string& here) {
  const std::string& given = one.options.directory;
  if (folder.empty() || given.starts_with('/')) return given;
  return given.empty() ? here : here + "/" + given;
}

}  // namespace

std::string CaseNameOf(const std::string& program) { return CaseNameFrom(program.substr(program.rfind('/') + 1)); }

std::string CaseNameFrom(const std::string& text) {
  std::string name;
  bool replaced = false;  // the last character
  for (const char c : text.substr(0, kMostOfText)) {
    const bool allowed = IsCaseName(std::string("a") + c);
    if (allowed || !replaced) name += allowed ? c : '_';
    replaced = !allowed;
  }
  if (replaced && name.size() > 1) name.pop_back();
  return IsCaseName(name) ? name : "case" + name;
}

std::string InitFile(const ProjectCase& one, const ProgramSeen& seen, const std::string& folder, const std::string& here) {
  std::string command;
  for (const std::string& word : one.options.program) command += (command.empty() ? "" : ", ") + TomlString(word);
  std::string text =
      "# Cases of `cuaudit audit`, written by `cuaudit init`.\n"
      "#\n"
      "#   cuaudit audit                  carries out all cases; the results go to cuaudit-results\n"
      "#   cuaudit audit --show-config    shows every setting and where it comes from\n"
      "#\n"
      "# What two runs without faults showed:\n"
      "#\n" +
      WhatWasSeen(seen) + "\n[case." + (one.name.find('.') == std::string::npos ? one.name : TomlString(one.name)) + "]\n" +
      Line("command = [" + command + "]", "");
  const std::string directory = DirectoryOf(one, folder, here);
  if (!directory.empty()) text += Line("directory = " + TomlString(directory), "");
  text += Line("driver = " + TomlString(Name(seen.driver)), "auto: the genuine driver where there is a GPU");
  const bool takes_count = TakesCount(one.options.program);
  const bool cycles_given = one.from.contains("cycles");
  if (!cycles_given && (takes_count || seen.cycles > 1)) {
    text += Line("cycles = true", takes_count ? "the command takes a number of cycles: {n}" : "the program marks its cycles");
  } else if (!cycles_given) {
    text += Line("# cycles = [1, 10]", "look for growth: put {n} in the command, or mark cycles (cuaudit/mark.h)");
  }
  if (!one.from.contains("deadline_ms") && seen.run_ms > kSlowMs) {
    const std::uint64_t seconds = (seen.run_ms + kMsPerSecond - 1) / kMsPerSecond;
    text += Line("deadline_ms = " + std::to_string(seconds * kMsPerSecond * kDeadlineRuns), "ten times a run");
  }
  for (const OptionRow& row : OptionRows()) {
    if (!row.IsKey() || row.Key() == "driver" || row.Key() == "directory" || !one.from.contains(row.Key())) continue;
    text += Line(row.Key() + " = " + ShowValue(row, one.options), "as given");
  }
  if (!one.from.contains("host") && !one.from.contains("no_host"))
    text += Line("# host = true", "also judge heap blocks, descriptors, threads and mappings");
  if (!one.from.contains("depth")) text += Line("# depth = 1", "first faults only: faster");
  return text + Line("# tags = [\"release\"]", "cuaudit audit --tag release");
}

}  // namespace cuaudit::harness
