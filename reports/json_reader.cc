// SPDX-License-Identifier: MIT
#include "reports/json_reader.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "reports/course_words.h"
#include "reports/json_findings.h"
#include "reports/json_node.h"
#include "reports/json_writer.h"
#include "reports/message.h"
#include "reports/reasons_json.h"
#include "reports/sequence_json.h"

namespace cuaudit::report {
namespace {

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
    NotReached row;
    row.call = one["call"].Text();
    row.code = one["code"].Text();
    row.how = one["how"].Text();
    row.phase = one["phase"].Text();
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
  run->sequence = SequenceFromJson(sequence.Whole(), run->defects.size());
  if (!run->sequence) sequence.Expected("calls and trials as reports/schema/report.schema.json says");
  std::size_t at = 0;
  root["defects"].ForEach([&](const JsonNode& defect) {
    const JsonNode unwinding = defect.Maybe("unwinding");
    if (!unwinding.present() || unwinding.failed() || at >= run->defects.size()) {
      ++at;
      return;
    }
    Defect& into = run->defects[at++];
    into.unwinding = UnwindingFromJson(unwinding.Whole(), *run->sequence);
    if (!into.unwinding) unwinding.Expected("steps at places of the sequence");
  });
}

void ReadRun(const JsonNode& root, Run* run) {
  constexpr std::array kModesRead = {Mode::Run, Mode::Cycles, Mode::Sweep, Mode::Replay, Mode::Unknown};
  run->mode = OneOf(root["mode"], kModesRead, "sweep, cycles, run or replay");
  run->driver = ReadDriver(root["driver"]);
  if (const std::string outcome = root["outcome"].Text(); !outcome.empty()) {
    run->outcome = Worded<Outcome>(root["outcome"], outcome, "an outcome that this version knows (cuaudit list outcomes)");
  }
  if (const JsonNode one = root.Maybe("interrupted"); one.present()) {
    run->interrupted = Interrupted{one["signal"].Text(), one["done"].Count(), one["planned"].Count(), one.Maybe("more").Flag()};
  }
  run->message = MessageFromJson(root["why"]);
  run->command = root["command"].Texts();
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
  root["findings"].ForEach([run](const JsonNode& finding) { run->findings.push_back(ReadFinding(finding)); });
  root["notes"].ForEach([run](const JsonNode& note) { run->notes.push_back(ReadFinding(note)); });
  ReadDefects(root["defects"], run);
  ReadSequence(root, run);
  run->generated = root["header"]["generated"].Text();
  run->tool_version = root["header"]["tool_version"].Text();
}

}  // namespace

std::string ReadJson(std::string_view text, Run* run) {
  Failure failure;
  const nlohmann::json document = ParseJson(text, &failure);
  if (!failure.line.empty()) return failure.line;
  const JsonNode root(&document, &failure);
  const std::string schema = root["schema"].Text();
  if (schema != kJsonSchema) root["schema"].Expected("\"" + std::string(kJsonSchema) + "\": a report of cuaudit");
  // Reports had reasons as sentences only before they had this key. What a sentence means is not guessed.
  else if (!root.Maybe("why").present())
    root.Maybe("why").Expected("this key: an older cuaudit wrote the report; make it anew with this one");
  *run = Run();
  if (failure.line.empty()) ReadRun(root, run);
  return failure.line;
}

}  // namespace cuaudit::report
