// SPDX-License-Identifier: MIT
#include "harness/sweep/run/rehearsal.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <utility>

#include "harness/recording/recording.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/parts.h"

namespace cuaudit::harness {
namespace {

// Number of calls that both runs begin with: the same calls from the same places with the same results, in whichever threads.
std::size_t CallsInCommon(const Evidence& first, const Evidence& second) {
  const std::vector<std::uint32_t>& a = first.facts().calls;
  const std::vector<std::uint32_t>& b = second.facts().calls;
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end(), [&](std::uint32_t of_first, std::uint32_t of_second) {
    const faults::Record& x = first.record(of_first);
    const faults::Record& y = second.record(of_second);
    return x.call == y.call && x.result == y.result && SiteKey(*first.journal, SiteOf(x)) == SiteKey(*second.journal, SiteOf(y));
  });
  return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

words::DetailPart FirstDifference(const Evidence& first, const Evidence& second) {
  const std::vector<std::uint32_t>& a = first.facts().calls;
  const std::vector<std::uint32_t>& b = second.facts().calls;
  const std::size_t same = CallsInCommon(first, second);
  if (same == a.size() && same == b.size()) return {Detail::TurnsDiffer};
  const std::string number = std::to_string(same + 1);
  if (same == a.size() || same == b.size()) return {Detail::OneRunMadeIt, {number, std::to_string(a.size()), std::to_string(b.size())}};
  const faults::Record& x = first.record(a[same]);
  const faults::Record& y = second.record(b[same]);
  if (x.call != y.call) return {Detail::OtherCall, {number, CallName(SiteOf(x)), CallName(SiteOf(y))}};
  return {x.result != y.result ? Detail::OtherResult : Detail::OtherStack, {number, CallName(SiteOf(x))}};
}

namespace {

constexpr int kMostRuns = 4;

constexpr const char* kOutputs = "outputs.txt";  // argument numbers, one per line

// The content hash of each argument as a file, and of the file named behind '='.
std::vector<std::pair<std::uint64_t, std::uint64_t>> ContentOfArguments(const Subject& subject) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> content;
  for (const std::string& word : subject.command) {
    const std::size_t equals = word.find('=');
    const auto content_of = [&](const std::string& path) { return FileContent(PathFrom(subject.directory, path)); };
    content.emplace_back(content_of(word), equals == std::string::npos ? 0 : content_of(word.substr(equals + 1)));
  }
  return content;
}

std::set<std::size_t> KeptOutputs(const std::string& file) {
  const Result<std::string> kept = ReadFile(file);
  std::istringstream text(kept.ok() ? *kept : std::string());
  return {std::istream_iterator<std::size_t>(text), std::istream_iterator<std::size_t>()};
}

Status KeepOutputs(const WorkDir& dir, const std::set<std::size_t>& outputs) {
  std::string text;
  for (const std::size_t number : outputs) text += std::to_string(number) + "\n";
  return outputs.empty() ? Status() : WriteFile(dir.File(kOutputs), text, Exit::Failure);
}

std::string RunName(const WorkDir& dir, int number) { return dir.Journal("rehearsal-" + std::to_string(number)); }

// The host resources that a run leaves may differ although the calls are the same: an allocator maps another pool, or a cache is filled.
bool LeavesMore(const Observation& run, const Observation& than) {
  const Rehearsed beside(than.evidence());
  return !CompareObjects(&beside, run.evidence()).leaks.empty();
}

bool LeaveTheSame(const Rehearsal& rehearsal) {
  return std::none_of(rehearsal.others.begin(), rehearsal.others.end(),
                      [&](const Observation& other) { return LeavesMore(other, rehearsal.run) || LeavesMore(rehearsal.run, other); });
}

// When several processes or threads mark cycles, the first end of a cycle is compared with the last one.
std::string GrownInCycles(const Observation& run) {
  std::vector<std::uint64_t> ends;
  for (const std::uint32_t mark : run.ledger.facts.marks) {
    const faults::Record& record = run.journal.records()[mark];
    if (IsMark(record, faults::MarkKind::CycleEnd)) ends.push_back(record.begin);
  }
  return ends.size() < 2 ? std::string() : MoreHeld(run.ledger, ends.front(), ends.back());
}

}  // namespace

std::string MoreHeld(const Ledger& ledger, std::uint64_t first, std::uint64_t last) {
  std::array<std::int64_t, driver::kKindCount> more{};
  for (const Object& object : ledger.objects) {
    if (!IsLoneDriverObject(object)) continue;
    more[static_cast<std::size_t>(object.kind)] += (IsHeldAt(object, last) ? 1 : 0) - (IsHeldAt(object, first) ? 1 : 0);
  }
  std::string text;
  for (std::size_t kind = 0; kind < more.size(); ++kind) {
    if (more[kind] <= 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(more[kind]) + " " + std::string(driver::Name(static_cast<driver::Kind>(kind)));
  }
  return text;
}

void AddRun(Observation run, SiteTexts* sites, Rehearsal* rehearsal) {
  SettleReferences(run.journal, sites, &run.ledger);
  rehearsal->threaded = rehearsal->threaded || run.ledger.facts.threaded;
  if (rehearsal->run.journal.records().empty()) {
    rehearsal->grown = GrownInCycles(run);
    rehearsal->run = std::move(run);
    return;
  }
  const Evidence first = rehearsal->run.evidence();
  const Evidence second = run.evidence();
  const bool same_work = TraceHash(first) == TraceHash(second);
  const std::size_t apart = std::max(first.facts().calls.size(), second.facts().calls.size()) - CallsInCommon(first, second);
  if (!rehearsal->drifting && (!same_work || apart != 0)) {
    rehearsal->drifting = true;
    rehearsal->drift = {FirstDifference(first, second)};
  }
  rehearsal->not_compared = std::max(rehearsal->not_compared, apart);
  rehearsal->same_work = rehearsal->same_work && same_work;
  rehearsal->others.push_back(std::move(run));
}

void ForgetEqualRuns(Rehearsal* rehearsal) {
  if (!rehearsal->threaded && !rehearsal->drifting && LeaveTheSame(*rehearsal)) rehearsal->others.clear();
}

Result<Observation> RunFaultFree(const Subject& subject, const std::string& name, int* interrupted) {
  const Result<Launch> launch = PrepareRun(subject, name + ".journal", subject.record_capacity, {}, name + ".log");
  if (!launch.ok()) return launch.status();
  const Result<Ending> ending = RunToEnd(*launch, interrupted);
  if (!ending.ok()) return ending.status();
  Result<Observation> seen = ReadRun(subject, name + ".journal", *ending);
  if (!seen.ok()) return seen;
  const Status fit = CheckFaultFree(subject, *seen);
  if (!fit.ok()) return fit.With(LastLines(name + ".log", kQuotedLines));
  return seen;
}

Result<Rehearsal> Rehearse(const Subject& subject, const WorkDir& dir, int runs, int* interrupted, const RunsSoFar& told) {
  Rehearsal rehearsal;
  SiteTexts sites;
  const auto planned = [&] { return rehearsal.same_work ? runs : kMostRuns; };
  if (told) told(0, static_cast<std::size_t>(runs));
  const auto before = ContentOfArguments(subject);
  for (int number = runs + 1; number <= kMostRuns; ++number) unlink((RunName(dir, number) + ".journal").c_str());
  for (int number = 1; number <= planned(); ++number) {
    const std::string name = RunName(dir, number);
    Result<Observation> run = RunFaultFree(subject, name, interrupted);
    if (!run.ok()) return run.status();
    AddRun(std::move(*run), &sites, &rehearsal);
    if (told) told(static_cast<std::size_t>(number), static_cast<std::size_t>(planned()));
  }
  ForgetEqualRuns(&rehearsal);
  const auto after = ContentOfArguments(subject);
  rehearsal.outputs = KeptOutputs(dir.File(kOutputs));
  for (std::size_t i = 1; i < before.size(); ++i) {
    if (before[i] != after[i]) rehearsal.outputs.insert(i);
  }
  Status kept = KeepOutputs(dir, rehearsal.outputs);
  return kept.ok() ? Result<Rehearsal>(std::move(rehearsal)) : kept;
}

std::vector<Rehearsed> Tables(const Rehearsal& rehearsal) {
  std::vector<Rehearsed> tables;
  tables.emplace_back(rehearsal.run.evidence());
  for (const Observation& other : rehearsal.others) tables.emplace_back(other.evidence());
  return tables;
}

Subject SubjectOfTrials(const Subject& subject, const Rehearsal& rehearsal) {
  Subject trials = subject;
  if (trials.launch.host_probes == HostProbes::Basic && !rehearsal.run.saw_host()) trials.launch.host_probes = HostProbes::None;
  return trials;
}

namespace {

// The runs NAME-1.journal and so on.
Result<Rehearsal> ReadRuns(const Subject& subject, const std::string& name) {
  Rehearsal rehearsal;
  SiteTexts sites;
  Ending ending;
  ending.exit_status = subject.expected_exit;  // any other status would have made it no rehearsal
  for (int number = 1; number <= kMostRuns; ++number) {
    const std::string journal = name + std::to_string(number) + ".journal";
    if (number > 1 && access(journal.c_str(), R_OK) != 0) break;
    Result<Observation> run = ReadObservation(journal, ending);
    if (!run.ok()) return run.status();
    Status fit = CheckFaultFree(subject, *run);
    if (!fit.ok()) return fit;
    AddRun(std::move(*run), &sites, &rehearsal);
  }
  return rehearsal;
}

}  // namespace

std::optional<Rehearsal> KeptRehearsal(const Subject& subject, const WorkDir& dir) {
  Result<Rehearsal> rehearsal = ReadRuns(subject, dir.Journal("rehearsal-"));
  if (!rehearsal.ok() || rehearsal->others.empty()) return std::nullopt;
  if (!rehearsal->threaded && !rehearsal->drifting) return std::nullopt;
  rehearsal->outputs = KeptOutputs(dir.File(kOutputs));
  return std::move(*rehearsal);
}

Status PackRuns(const WorkDir& dir) {
  for (int number = 1; number <= kMostRuns; ++number) {
    const std::string path = RunName(dir, number) + ".journal";
    if (number > 1 && access(path.c_str(), R_OK) != 0) break;
    const Result<SparseFile> file = SparseFile::Open(path);
    if (!file.ok()) return file.status();
    faults::JournalView journal;
    if (const char* const wrong = journal.Open(file->data(), file->size())) return {Exit::Usage, path + ": " + wrong};
    Status written = WriteFile(path, PackJournal(journal), Exit::Failure);
    if (!written.ok()) return written;
  }
  return {};
}

Result<Rehearsal> RehearsalIn(const Subject& subject, const std::string& directory) {
  Result<Rehearsal> rehearsal = ReadRuns(subject, directory + "/rehearsal-");
  if (!rehearsal.ok()) return rehearsal;
  ForgetEqualRuns(&*rehearsal);
  rehearsal->outputs = KeptOutputs(directory + "/" + kOutputs);
  return rehearsal;
}

}  // namespace cuaudit::harness
