// SPDX-License-Identifier: MIT
#include "reports/json_reader.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reports/defect_words.h"
#include "reports/json_node.h"
#include "reports/message.h"
#include "reports/reasons_json.h"
#include "reports/writers.h"

namespace cuaudit::report {
namespace {

// The enumerator of `choices` whose name the node has.
template <typename E, std::size_t size>
E OneOf(const JsonNode& node, const std::array<E, size>& choices, std::string_view what) {
  const std::string text = node.Text();
  for (const E choice : choices) {
    if (Name(choice) == text) return choice;
  }
  node.Expected(what);
  return choices.front();
}

Frame ReadFrame(const JsonNode& node) {
  Frame frame = {.module = node["module"].Text(), .function = node["function"].Text(), .file = node["file"].Text()};
  const std::uint64_t line = node["line"].Count();
  if (line > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) node["line"].Expected("the number of a line");
  else frame.line = static_cast<int>(line);
  frame.offset = node["offset"].Count();
  frame.start = node.Maybe("start").Count();
  return frame;
}

std::vector<Frame> ReadStack(const JsonNode& node) {
  std::vector<Frame> stack;
  node.ForEach([&stack](const JsonNode& frame) { stack.push_back(ReadFrame(frame)); });
  return stack;
}

Acquired ReadPlace(const JsonNode& node) { return {node["call"].Text(), ReadStack(node["stack"])}; }

Acquired ReadPlaceOrNull(const JsonNode& node) { return node.present() ? ReadPlace(node) : Acquired(); }

Fault ReadFault(const JsonNode& node) {
  Fault fault;
  fault.call = node["call"].Text();
  const std::uint64_t occurrence = node["occurrence"].Count();
  if (occurrence > std::numeric_limits<std::uint32_t>::max()) node["occurrence"].Expected("a number below 4294967296");
  fault.occurrence = static_cast<std::uint32_t>(occurrence);
  fault.how = node["how"].Text();
  fault.code = node["code"].Text();
  fault.text = node["text"].Text();
  fault.stack = ReadStack(node["stack"]);
  return fault;
}

// Finds findings by fingerprint. Where several have one, each is taken once, those with the rule and kind of the member first; a finding
// may belong to several defects, so one that is taken is answered again when there is no other.
class FindingsByName {
 public:
  explicit FindingsByName(const std::vector<Finding>& findings) : findings_(findings), taken_(findings.size()) {
    for (std::size_t i = 0; i < findings.size(); ++i) places_[findings[i].fingerprint].indices.push_back(i);
  }

  std::optional<std::size_t> Take(const std::string& fingerprint, std::string_view rule, std::string_view kind) {
    const auto found = places_.find(fingerprint);
    if (found == places_.end()) return std::nullopt;
    const std::vector<std::size_t>& all = found->second.indices;
    std::size_t& first = found->second.first;
    while (first + 1 < all.size() && taken_[all[first]]) ++first;
    std::size_t best = all[first];
    for (std::size_t i = first, end = std::min(all.size(), first + kLookAhead); i < end; ++i) {
      const Finding& one = findings_[all[i]];
      if (taken_[all[i]] || words::Name(one.rule) != rule || one.kind != kind) continue;
      best = all[i];
      break;
    }
    taken_[best] = true;
    return best;
  }

 private:
  static constexpr std::size_t kLookAhead = 64;  // a report with more equal fingerprints was not written by cuaudit
  struct Same {
    std::vector<std::size_t> indices;
    std::size_t first = 0;  // those before it are taken
  };
  const std::vector<Finding>& findings_;
  std::vector<bool> taken_;
  std::unordered_map<std::string, Same> places_;
};

Suppressed ReadSuppressed(const JsonNode& node) {
  return {node["reason"].Text(), node["owner"].Text(), node["until"].Text(), node["expired"].Flag(), node["entry"].Text()};
}

Defect ReadDefect(const JsonNode& node, FindingsByName* findings) {
  constexpr std::array kBecause = {BlamedBecause::HeldIt, BlamedBecause::BeganRelease, BlamedBecause::NeverReached,
                                   BlamedBecause::MadeTheCall};
  Defect defect = {.fingerprint = node["fingerprint"].Text()};
  if (const JsonNode blame = node["blame"]; blame.present()) {
    defect.blame = Blame{ReadFrame(blame["function"]), OneOf(blame["because"], kBecause, "why a function is blamed")};
  }
  defect.released = ReadPlaceOrNull(node["released"]);
  defect.trials = node["trials"].Count();
  if (const JsonNode change = node.Maybe("change"); change.present()) {
    defect.change = Worded<Change>(change, change.Text(), "how a defect has changed (new, changed, unchanged)");
  }
  defect.was = node.Maybe("was").Text();
  node.Maybe("taken_for").ForEach([&defect](const JsonNode& one) {
    const JsonNode why = one["why"];
    defect.taken_for.push_back({Worded<Taken>(why, why.Text(), "why it is taken for one of the base (renamed, moved, ...)"),
                                one["function"].Text(), one["fingerprint"].Text()});
  });
  if (const JsonNode suppressed = node.Maybe("suppressed"); suppressed.present()) defect.suppressed = ReadSuppressed(suppressed);
  const JsonNode members = node["members"];
  members.ForEach([&](const JsonNode& one) {
    Member member;
    const std::string rule = one["rule"].Text();
    const std::string kind = one["kind"].Text();
    member.count = one["count"].Count();
    member.bytes = one["bytes"].Count();
    const JsonNode names = one["findings"];
    names.ForEach([&](const JsonNode& name) {
      const std::optional<std::size_t> index = findings->Take(name.Text(), rule, kind);
      if (index) member.findings.push_back(*index);
      else name.Expected("the fingerprint of a finding of this report");
    });
    if (member.findings.empty()) names.Expected("at least one finding");
    defect.members.push_back(std::move(member));
  });
  if (defect.members.empty()) members.Expected("at least one member");
  return defect;
}

Finding ReadFinding(const JsonNode& node) {
  Finding finding;
  finding.rule = ReadRule(node["rule"]);
  finding.title = node["title"].Text();
  finding.kind = node["kind"].Text();
  finding.count = node["count"].Count();
  finding.bytes = node["bytes"].Count();
  if (const JsonNode fault = node["fault"]; fault.present()) finding.fault = ReadFault(fault);
  node.Maybe("then").ForEach([&finding](const JsonNode& fault) { finding.then.push_back(ReadFault(fault)); });
  finding.shrunk_from = node.Maybe("shrunk_from").Texts();
  finding.detail = node.Maybe("detail").Text();
  finding.acquired = ReadPlace(node["acquired"]);
  finding.where = node["where"].Text();
  finding.where_stack = ReadStack(node["where_stack"]);
  finding.other = ReadPlaceOrNull(node["other"]);
  finding.fingerprint = node["fingerprint"].Text();
  finding.reproduce = node["reproduce"].Text();
  finding.trials = node["trials"].Count();
  return finding;
}

void ReadDefects(const JsonNode& node, Run* run) {
  FindingsByName findings(run->findings);
  node.ForEach([&](const JsonNode& defect) { run->defects.push_back(ReadDefect(defect, &findings)); });
}

// Why no trial reached a way to fail: a reason, or what its trials missed.
void ReadWhy(const JsonNode& node, NotReached* row) {
  if (const JsonNode missed = node.Maybe("missed"); missed.present()) {
    row->missed = Worded<Missed>(missed, missed.Text(), "why a fault is missed (cuaudit list missed)");
  } else {
    row->why = Worded<Reason>(node["reason"], node["reason"].Text(), "a reason that this version knows (cuaudit list reasons)");
  }
}

Coverage ReadCoverage(const JsonNode& node) {
  Coverage coverage;
  coverage.reachable = node["reachable"].Count();
  coverage.reached = node["reached"].Count();
  coverage.pruned = node["pruned"].Count();
  coverage.codes_tried = node["codes_tried"].Count();
  coverage.codes_documented = node["codes_documented"].Count();
  if (coverage.reached > coverage.reachable) node["reached"].Expected("at most what is reachable");
  node["not_reached"].ForEach([&coverage](const JsonNode& one) {
    NotReached row = {.call = one["call"].Text(), .code = one["code"].Text(), .how = one["how"].Text(), .phase = one["phase"].Text()};
    if (row.phase == "any") row.phase.clear();
    row.unwinding = one["unwinding"].Flag();
    ReadWhy(one, &row);
    row.stack = ReadStack(one["stack"]);
    coverage.not_reached.push_back(std::move(row));
  });
  node.Maybe("tried").ForEach([&coverage](const JsonNode& one) {
    coverage.tried.push_back({one["call"].Text(), one["code"].Text(), one["how"].Text(), one["unwinding"].Flag(), one["function"].Text(),
                              one["places"].Count()});
  });
  return coverage;
}

Course ReadCourse(const JsonNode& node) {
  constexpr std::array kCourses = {Trend::Growth, Trend::Bounded, Trend::Undecided};
  Course course;
  course.trend = OneOf(node["trend"], kCourses, "growth, bounded or undecided");
  course.cycles = node["cycles"].Count();
  course.plateau = node["most_alive"].Count();
  course.reached = node["after"].Count();
  if (course.trend == Trend::Growth) {
    course.least = node["least_per_cycle"].Number();
    course.most = node["most_per_cycle"].Number();
  }
  if (course.trend == Trend::Undecided) course.needed = node["needed_cycles"].Count();
  return course;
}

void ReadCycles(const JsonNode& node, Run* run) {
  run->cycle_counts = node["counts"].Counts();
  node["rows"].ForEach([run](const JsonNode& one) {
    CycleRow row;
    row.kind = one["kind"].Text();
    row.acquired = ReadPlace(one["acquired"]);
    row.live = one["live"].Counts();
    row.per_cycle = one["per_cycle"].Number();
    row.bytes_per_cycle = one["bytes_per_cycle"].Count();
    if (const JsonNode course = one.Maybe("course"); course.present()) row.course = ReadCourse(course);
    run->cycle_rows.push_back(std::move(row));
  });
}

Meters ReadMeters(const JsonNode& node) {
  Meters meters;
  meters.warm_up = node["warm_up"].Count();
  meters.asked = node["asked_bytes_per_cycle"].Count();
  meters.of_runs = node["of_runs"].Flag();
  node["rows"].ForEach([&meters](const JsonNode& one) {
    const JsonNode control = one["control"];
    Meter row;
    row.name = one["name"].Text();
    row.cycles = one["cycles"].Count();
    row.grows = one["grows"].Flag();
    row.per_cycle = one["bytes_per_cycle"].Number();
    row.detectable = one["detectable_bytes_per_cycle"].Count();
    row.noise = one["noise_bytes"].Count();
    row.control_cycles = control["cycles"].Count();
    row.drift = control["drift_bytes"].Count();
    row.false_alarms = control["false_alarms"].Count();
    row.windows = control["windows"].Count();
    meters.rows.push_back(std::move(row));
  });
  meters.absent = NamedReasonsFromJson(node["absent_by_id"]);
  return meters;
}

Totals ReadTotals(const JsonNode& node) {
  Totals totals;
  totals.calls = node["calls"].Count();
  totals.sites = node["sites"].Count();
  totals.trials = node["trials"].Count();
  totals.fired = node["fired"].Count();
  node["verdicts"].ForEachKey([&totals](const std::string& name, const JsonNode& count) {
    totals.verdicts[Worded<Verdict>(count, name, "a verdict that this version knows (cuaudit list verdicts)")] = count.Count();
  });
  totals.skipped = ReasonsFromJson(node["skipped_by_id"]);
  totals.pruned = ReasonsFromJson(node.Maybe("pruned_by_id"));
  totals.recovered = node.Maybe("recovery_checked").Count();
  totals.shrinking = node.Maybe("shrinking_runs").Count();
  totals.isolation = IsolationFromJson(node.Maybe("isolation_by_id"));
  totals.forced = node.Maybe("forced_progress").Count();
  return totals;
}

Driver ReadDriver(const JsonNode& node) {
  Driver driver;
  const std::string kind = node["kind"].Text();
  driver.kind = kind == "sim" ? DriverKind::Simulated : kind == "real" ? DriverKind::Genuine : DriverKind::None;
  if (driver.kind == DriverKind::None && !kind.empty() && kind != "none") node["kind"].Expected("sim, real or none");
  driver.version = node["version"].Text();
  driver.path = node["path"].Text();
  driver.device = node["device"].Text();
  driver.runtime = node.Maybe("runtime").Text();
  driver.world = node["world"].Text();
  if (const JsonNode kernels = node.Maybe("kernels"); kernels.present()) {
    driver.kernels = Kernels{kernels["hosted"].Count(), kernels["idle"].Count(), kernels["mismatched"].Count()};
  }
  return driver;
}

// The calls of a sweep, and the ways back of its defects, which name places of theirs.
void ReadSequence(const JsonNode& root, Run* run) {
  const JsonNode sequence = root.Maybe("sequence");
  if (!sequence.present()) return;
  Failure apart;
  run->sequence = SequenceFromJson(sequence.Apart(&apart), run->defects.size());
  if (!run->sequence) sequence.Expected("calls and trials as reports/schema/report.schema.json says");
  std::size_t at = 0;
  root["defects"].ForEach([&](const JsonNode& defect) {
    const JsonNode unwinding = defect.Maybe("unwinding");
    if (!unwinding.present() || unwinding.failed() || at >= run->defects.size()) {
      ++at;
      return;
    }
    Defect& into = run->defects[at++];
    Failure own;
    into.unwinding = UnwindingFromJson(unwinding.Apart(&own), *run->sequence);
    if (!into.unwinding) unwinding.Expected("steps at places of the sequence");
  });
}

void ReadRun(const JsonNode& root, const ReadSoFar& told, Run* run) {
  run->mode = ReadMode(root["mode"]);
  run->driver = ReadDriver(root["driver"]);
  if (const std::string outcome = root["outcome"].Text(); !outcome.empty()) {
    run->outcome = Worded<Outcome>(root["outcome"], outcome, "an outcome that this version knows (cuaudit list outcomes)");
  }
  if (const JsonNode one = root.Maybe("interrupted"); one.present()) {
    run->interrupted = Interrupted{one["signal"].Text(), one["done"].Count(), one["planned"].Count(), one.Maybe("more").Flag()};
  }
  run->message = MessageFromJson(root["why"]);
  run->command = root["command"].Texts();
  run->lifecycle = root.Maybe("lifecycle").Text();
  root.Maybe("faults").ForEach([run](const JsonNode& fault) {
    run->faults.push_back({fault["text"].Text(), fault["code_chosen"].Flag()});
  });
  run->scope = root["scope"].Text();
  run->settings = root.Maybe("settings").Texts();
  run->host.probes = root["host"]["probes"].Texts();
  run->host.left_out = NamedReasonsFromJson(root["host"]["left_out_by_id"]);
  run->totals = ReadTotals(root["totals"]);
  root["per_cycle"].ForEachKey([run](const std::string& kind, const JsonNode& growth) { run->per_cycle[kind] = growth.Number(); });
  ReadCycles(root["cycles"], run);
  if (const JsonNode meters = root.Maybe("meters"); meters.present()) run->meters = ReadMeters(meters);
  root["live"].ForEach([run](const JsonNode& row) {
    run->live.push_back({row["kind"].Text(), row["acquired"].Count(), row["released"].Count(), row["live"].Count(), row["bytes"].Count(),
                         row.Maybe("orphaned").Count()});
  });
  if (const JsonNode coverage = root.Maybe("coverage"); coverage.present()) run->coverage = ReadCoverage(coverage);
  const JsonNode findings = root["findings"];
  const JsonNode notes = root["notes"];
  const std::size_t all = findings.Size() + notes.Size();
  std::size_t done = 0;
  const auto read_into = [&](const JsonNode& list, std::vector<Finding>* into) {
    constexpr std::size_t kTold = 1024;
    list.ForEach([&](const JsonNode& one) {
      into->push_back(ReadFinding(one));
      if (told && ++done % kTold == 0) told("findings", done, all);
    });
  };
  read_into(findings, &run->findings);
  read_into(notes, &run->notes);
  ReadDefects(root["defects"], run);
  ReadSequence(root, run);
  run->generated = root["header"]["generated"].Text();
  run->tool_version = root["header"]["tool_version"].Text();
}

}  // namespace

Mode ReadMode(const JsonNode& node) {
  return OneOf(node, std::array{Mode::Run, Mode::Cycles, Mode::Sweep, Mode::Replay, Mode::Unknown}, "sweep, cycles, run or replay");
}

Rule ReadRule(const JsonNode& node) { return Worded<Rule>(node, node.Text(), "a rule that this version knows (cuaudit list rules)"); }

std::string ReadJson(std::string_view text, Run* run, const ReadSoFar& told) {
  Failure failure;
  const nlohmann::json document = ParseJson(text, &failure, told);
  if (!failure.line.empty()) return failure.line;
  const JsonNode root(&document, &failure);
  const std::string schema = root["schema"].Text();
  if (schema != kJsonSchema) root["schema"].Expected("\"" + std::string(kJsonSchema) + "\": a report of cuaudit");
  // Reports had reasons as sentences only before they had this key. What a sentence means is not guessed.
  else if (!root.Maybe("why").present())
    root.Maybe("why").Expected("this key: an older cuaudit wrote the report; make it anew with this one");
  *run = Run();
  if (failure.line.empty()) ReadRun(root, told, run);
  return failure.line;
}

}  // namespace cuaudit::report
