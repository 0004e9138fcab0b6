// SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <utility>

#include "faults/driver/kinds.h"
#include "harness/defect/blame.h"
#include "harness/defect/defects.h"
#include "harness/process/files.h"
#include "harness/sweep/findings/benign.h"

namespace cuaudit::harness {
namespace {

constexpr std::string_view kHead =
    "# What the program keeps until it ends, on purpose: cuaudit run --lifetime. At most so many, of a kind, acquired there.\n";

constexpr std::uint64_t kMostInARow = 1'000'000'000;  // in one row, so that no sum of rows overflows

bool IsLeftAtExit(const report::Finding& finding) { return finding.rule == report::Rule::LeftAtExit; }

std::string FingerprintOf(const report::Finding& finding) { return DefectFingerprint(finding, BlameForCall(finding.acquired.stack)); }

// "cuStreamCreate < open_pool"
std::string PlaceOf(const report::Finding& finding) {
  const std::vector<report::Frame>& stack = finding.acquired.stack;
  const auto program = std::find_if(stack.begin(), stack.end(), IsProgram);
  std::string place = finding.acquired.call;
  if (program != stack.end()) place += " < " + (program->function.empty() ? program->module : std::string(PlainName(program->function)));
  std::replace(place.begin(), place.end(), '\n', ' ');
  return place;
}

// The next word of the line, which it takes off.
std::string_view Word(std::string_view* line) {
  constexpr std::string_view kBlank = " \t\r";
  line->remove_prefix(std::min(line->find_first_not_of(kBlank), line->size()));
  const std::string_view word = line->substr(0, line->find_first_of(kBlank));
  line->remove_prefix(word.size());
  return word;
}

using KindAtPlace = std::pair<std::string, std::string>;  // kind, fingerprint

// How many objects of each kind and place a run left.
std::map<KindAtPlace, std::uint64_t> CountLeft(const report::Run& run) {
  std::map<KindAtPlace, std::uint64_t> counts;
  for (const report::Finding& finding : run.findings) {
    if (IsLeftAtExit(finding)) counts[{finding.kind, FingerprintOf(finding)}] += finding.count;
  }
  return counts;
}

}  // namespace

Result<Lifetimes> Lifetimes::Read(const std::string& file) {
  constexpr std::uint64_t kMostMib = 16;  // a larger table was written by nobody
  const Result<std::string> text = ReadFile(file, kMostMib);
  if (!text.ok()) return Status(Exit::Usage, OptionFlag{"--lifetime"}, text.status().message());
  return Parse(file, *text);
}

Result<Lifetimes> Lifetimes::Parse(const std::string& file, std::string_view text) {
  Lifetimes table;
  std::size_t number = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    const std::string_view most = Word(&line);
    if (most.empty() || most.front() == '#') continue;
    const auto wrong = [&](const char* expected) {
      return Status(Exit::Usage, OptionFlag{"--lifetime"}, file + ": line " + std::to_string(number) + ": expected " + expected);
    };
    Lifetime row;
    const auto [end, error] = std::from_chars(most.data(), most.data() + most.size(), row.most);
    if (error != std::errc() || end != most.data() + most.size() || row.most == 0 || row.most > kMostInARow)
      return wrong("a number of objects (at most 1000000000), kind, fingerprint, place");
    row.kind = Word(&line);
    if (driver::KindFromName(row.kind) == driver::Kind::None) return wrong("a kind of object (cuaudit list kinds) behind the number");
    row.fingerprint = Word(&line);
    if (!IsPresentFingerprint(row.fingerprint)) return wrong("the fingerprint of a place behind the kind, v2- and 16 hexadecimal digits");
    row.line = number;
    table.rows_.push_back(std::move(row));
  }
  return table;
}

std::vector<std::size_t> Lifetimes::Allow(report::Run* run) const {
  const std::map<KindAtPlace, std::uint64_t> counts = CountLeft(*run);
  std::map<KindAtPlace, std::uint64_t> allowed;
  std::vector<std::size_t> unused;
  for (const Lifetime& row : rows_) {
    allowed[{row.kind, row.fingerprint}] += row.most;
    if (!counts.contains({row.kind, row.fingerprint})) unused.push_back(row.line);
  }
  std::vector<report::Finding> findings;
  for (report::Finding& finding : run->findings) {
    const KindAtPlace key = {finding.kind, IsLeftAtExit(finding) ? FingerprintOf(finding) : std::string()};
    const auto row = allowed.find(key);
    if (row == allowed.end()) {
      findings.push_back(std::move(finding));
      continue;
    }
    const std::uint64_t left = counts.at(key);
    if (left > row->second) {
      words::Add({words::Detail::MoreThanAllowed, {std::to_string(left), std::to_string(row->second)}}, &finding.detail);
      findings.push_back(std::move(finding));
      continue;
    }
    words::Add({words::Detail::KeptOnPurpose}, &finding.detail);
    finding.rule = report::Rule::ProcessLifetime;
    finding.title = words::Row(finding.rule).title;
    run->notes.push_back(std::move(finding));
  }
  run->findings = std::move(findings);
  return unused;
}

std::string LifetimeTable(const report::Run& run) {
  std::map<KindAtPlace, std::uint64_t> counts = CountLeft(run);
  std::string text(kHead);
  for (const report::Finding& finding : run.findings) {
    if (!IsLeftAtExit(finding)) continue;
    const auto row = counts.find({finding.kind, FingerprintOf(finding)});
    if (row == counts.end()) continue;  // two places of one function are one row
    text += std::to_string(row->second) + " " + finding.kind + " " + row->first.second + "  " + PlaceOf(finding) + "\n";
    counts.erase(row);
  }
  return text;
}

}  // namespace cuaudit::harness
