// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/fork_control.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <tuple>

#include "faults/driver/call_id.h"
#include "faults/journal/layout.h"
#include "faults/plan/fork_file.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/run/site_text.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/host/driver_owned.h"
#include "harness/verdict/parts.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {
namespace {

using faults::Fault;
using faults::ForkNode;
using faults::Record;
using faults::RecordKind;

constexpr std::size_t kPoints = 5;

// What the run declared, mark by mark. Meter readings are left out.
std::vector<std::array<std::uint64_t, 3>> Declared(const Evidence& run) {
  std::vector<std::array<std::uint64_t, 3>> marks;
  for (const std::uint32_t index : run.facts().marks) {
    const Record& mark = run.record(index);
    const bool says = IsMark(mark, faults::MarkKind::Report) || IsMark(mark, faults::MarkKind::Output);
    marks.push_back({mark.call, mark.cycle, says ? mark.argument[0] : 0});
  }
  return marks;
}

std::string InWords(const TrialFinding& finding) {
  const std::string call = CallName(finding.acquired.record_kind == RecordKind::Empty ? finding.where : finding.acquired);
  std::string words(finding.kind == driver::Kind::None ? Name(finding.rule) : driver::Name(finding.kind));
  return call.empty() ? words : words + " of " + call;
}

bool Same(const Ending& a, const Ending& b) { return a.timed_out == b.timed_out && a.signal == b.signal && a.exit_status == b.exit_status; }

std::string Numbered(const std::string& name, std::uint32_t number) {
  char digits[16];
  std::snprintf(digits, sizeof(digits), "-%0*x", static_cast<int>(faults::kImageDigits), number);
  return name + digits + faults::kImageEnding;
}

// Files that stay open. Each fork that runs needs a descriptor, too, and a process may not have many.
constexpr std::uint32_t kKeptOpen = 64;

FileDescriptor OpenToRead(const std::string& path) { return FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

template <typename T>
bool ReadAt(const FileDescriptor& file, std::size_t at, T* to) {
  return pread(file.get(), to, sizeof(*to), static_cast<off_t>(at)) == static_cast<ssize_t>(sizeof(*to));
}

struct Branch {
  Fault fault;
  std::uint32_t trial = faults::kNoTrial;
  std::vector<std::size_t> children;  // in the order in which the lists name them
};

using Key = std::tuple<std::size_t, driver::BaseId, faults::Phase, std::uint32_t, CUresult, faults::How, std::uint32_t>;

}  // namespace

std::vector<ForkNode> PlantForks(const std::vector<std::vector<Fault>>& lists) {
  std::vector<Branch> branches(1);
  std::map<Key, std::size_t> known;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    std::size_t at = 0;
    for (const Fault& fault : lists[i]) {
      const Key key{at, fault.base, fault.phase, fault.occurrence, fault.code, fault.how, fault.burst};
      const auto [found, added] = known.try_emplace(key, branches.size());
      if (added) {
        branches[at].children.push_back(found->second);
        branches.push_back({fault, faults::kNoTrial, {}});
      }
      at = found->second;
    }
    if (at != 0 && branches[at].trial == faults::kNoTrial) branches[at].trial = static_cast<std::uint32_t>(i);
  }
  std::vector<ForkNode> nodes(branches.size());
  std::vector<std::size_t> branch_of = {0};
  for (std::uint32_t at = 0; at < nodes.size(); ++at) {
    std::vector<std::size_t> children = branches[branch_of[at]].children;
    std::stable_sort(children.begin(), children.end(),
                     [&](std::size_t a, std::size_t b) { return faults::CompareWhere(branches[a].fault, branches[b].fault) < 0; });
    nodes[at].first_child = static_cast<std::uint32_t>(branch_of.size());
    nodes[at].children = static_cast<std::uint32_t>(children.size());
    for (const std::size_t child : children) {
      ForkNode& node = nodes[branch_of.size()];
      node.fault = branches[child].fault;
      node.parent = at;
      node.depth = nodes[at].depth + 1;
      node.trial = branches[child].trial;
      branch_of.push_back(child);
    }
  }
  return nodes;
}

std::vector<ForkNode> PlantControls(const std::vector<Fault>& points) {
  std::vector<std::vector<Fault>> lists;
  lists.reserve(points.size());
  for (const Fault& point : points) lists.push_back({point});
  std::vector<ForkNode> nodes = PlantForks(lists);
  for (std::size_t i = 1; i < nodes.size(); ++i) nodes[i].control = true;
  return nodes;
}

std::vector<faults::Fault> ControlPoints(const Evidence& rehearsal) {
  const std::vector<std::uint32_t>& calls = rehearsal.facts().calls;
  std::vector<faults::Fault> points;
  std::size_t next = 0;
  for (std::size_t i = 0; i < kPoints && next < calls.size(); ++i) {
    const std::size_t at = std::max(next, i * (calls.size() - 1) / (kPoints - 1));
    faults::Fault point = {.base = BaseOf(rehearsal.record(calls[at])), .occurrence = rehearsal.record(calls[at]).occurrence};
    points.push_back(point);
    next = at + 1;
  }
  return points;
}

Details DifferenceFrom(const Evidence& expected, const Observation& copy, std::uint64_t deadline_ms) {
  const Evidence seen = copy.evidence();
  if ((copy.flags() & faults::kRecordsDropped) != 0) return WhyDropped(copy);
  Details difference;
  if (TraceHash(expected) != TraceHash(seen)) {
    difference.push_back(FirstDifference(expected, seen));
  }
  if (!Same(expected.ending, copy.ending)) difference.push_back({Detail::ItEnded, {Describe(copy.ending, deadline_ms)}});
  if (!difference.empty()) return difference;
  if (Declared(expected) != Declared(seen)) return {{Detail::ItDeclaredElse}};
  const Rehearsed of_expected(expected);
  const Rehearsed of_copy(seen);
  const Leftovers more = CompareObjects(&of_expected, seen);
  if (!more.leaks.empty()) return {{Detail::ItLeft, {InWords(more.leaks.front())}}};
  const Leftovers less = CompareObjects(&of_copy, expected);
  if (!less.leaks.empty()) return {{Detail::ItDidNotLeave, {InWords(less.leaks.front())}}};
  const auto violations = [](const Rehearsed& beside, const Evidence& run) {
    std::vector<TrialFinding> found = CompareViolations(&beside, run);
    (void)TakeShown(*run.journal, &found);
    return found;
  };
  const std::vector<TrialFinding> wrong = violations(of_expected, seen);
  if (!wrong.empty()) return {{Detail::ItBroke, {InWords(wrong.front())}}};
  const std::vector<TrialFinding> right = violations(of_copy, expected);
  if (!right.empty()) return {{Detail::ItDidNotBreak, {InWords(right.front())}}};
  return {};
}

ForkControl::ForkControl(const Observation& rehearsal)
    : journal_(rehearsal.journal),
      ledger_(rehearsal.ledger),
      ending_(rehearsal.ending),
      points_(ControlPoints(rehearsal.evidence())),
      seen_(points_.size()) {}

void ForkControl::TakeCopy(std::size_t point, const Observation& copy, std::uint64_t deadline_ms) {
  seen_[point] = {true, DifferenceFrom({&ledger_, &journal_, ending_}, copy, deadline_ms)};
}

void ForkControl::TakeTrunk(const Observation& trunk, std::uint64_t deadline_ms) {
  of_trunk_ = DifferenceFrom({&ledger_, &journal_, ending_}, trunk, deadline_ms);
}

Because ForkControl::WhyNot(const std::vector<faults::ForkRefusal>& refusals) const {
  const auto differs = [](Details words, const Details& difference) {
    words.insert(words.end(), difference.begin(), difference.end());
    return Because{Reason::CopyDiffers, Words(words)};
  };
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].difference.empty()) continue;
    const faults::Fault& point = points_[i];
    return differs({{Detail::CopyAt, {std::string(driver::Name(point.base)), std::to_string(point.occurrence)}}}, seen_[i].difference);
  }
  if (!of_trunk_.empty()) return differs({{Detail::RunThatForks}}, of_trunk_);
  if (std::any_of(seen_.begin(), seen_.end(), [](const Seen& one) { return one.forked; })) return {};
  return {Reason::CopyDiffers, Words(ReasonOf(refusals.empty() ? faults::ForkRefusal::None : refusals.front()))};
}

std::string ForkImages::Trunk(const std::string& name) { return Numbered(name, 0); }

Status ForkImages::Create(std::uint32_t slot) {
  Image& image = images_[slot];
  unlink(image.path.c_str());
  if (const char* const wrong = faults::CreateJournal(image.path.c_str(), options_)) {
    return {Exit::Failure, image.path + ": " + wrong + ": " + SystemWords(errno)};
  }
  if (slot < kKeptOpen) image.file = OpenToRead(image.path);
  return {};
}

Status ForkImages::Make(const std::string& name, std::uint32_t slots, const faults::JournalOptions& options) {
  Remove();
  options_ = options;
  if (slots > faults::kMaxSlots) return {Exit::Usage, OptionFlag{"--jobs"}, "too many forks at a time"};
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    images_.push_back({Numbered(name, slot + 1), FileDescriptor()});
    Status created = Create(slot);
    if (!created.ok()) return created;
  }
  return {};
}

template <typename T>
bool ForkImages::Read(std::uint32_t slot, std::size_t at, T* to) const {
  const Image& image = images_[slot];
  return image.file.valid() ? ReadAt(image.file, at, to) : ReadAt(OpenToRead(image.path), at, to);
}

bool ForkImages::Called(std::uint32_t slot) const {
  std::array<std::uint32_t, driver::kBaseCount> calls{};
  return Read(slot, offsetof(faults::JournalHeader, occurrences), &calls) &&
         std::any_of(calls.begin(), calls.end(), [](std::uint32_t count) { return count != 0; });
}

Status ForkImages::Renew(std::uint32_t slot) {
  std::uint64_t records = 1;
  struct stat facts = {};
  const FileDescriptor& file = images_[slot].file;
  const bool removed = file.valid() && (fstat(file.get(), &facts) != 0 || facts.st_nlink == 0);
  if (!removed && Read(slot, offsetof(faults::JournalHeader, next_record), &records) && records == 0) return {};
  return Create(slot);
}

void ForkImages::Remove() {
  for (const Image& image : images_) unlink(image.path.c_str());
  images_.clear();
}

}  // namespace cuaudit::harness
