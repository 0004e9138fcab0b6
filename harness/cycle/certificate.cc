// SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "harness/cycle/cycles.h"
#include "harness/cycle/meters.h"
#include "harness/ledger/rules.h"
#include "harness/sweep/findings/aggregate.h"
#include "harness/sweep/run/rehearsal.h"

namespace cuaudit::harness {
namespace {

constexpr int kRounds = 4;  // a longer run may be noisier than the one that chose its length
constexpr std::uint64_t kMostCycles = 100000;
constexpr std::uint64_t kControlCycles = 200;  // at least, so that 20 windows are searched for false alarms

Result<Subject> ControlOf(const Subject& subject, const std::string& path) {
  Result<Program> program = ResolveProgram(path);
  if (!program.ok()) return Status(Exit::Environment, program.status().message());
  Subject control = subject;
  control.program = std::move(*program);
  control.command = {path, "{n}"};
  control.expected_exit = 0;
  return control;
}

// Drops the first cycles, which fill caches.
void DropWarmUp(std::uint64_t warm_up, std::vector<MeterSeries>* all) {
  for (MeterSeries& series : *all) {
    const std::size_t count = std::min<std::size_t>(warm_up, series.readings.size());
    series.readings.erase(series.readings.begin(), series.readings.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

struct Arms {
  std::vector<MeterSeries> subject;
  std::vector<MeterSeries> control;
  std::uint64_t step = 0;  // 0: readings at the ends of cycles
};

class Certifier {
 public:
  Certifier(const Subject& subject, const WorkDir& dir, const CertificateOptions& options, int* interrupted)
      : subject_(subject), dir_(dir), options_(options), interrupted_(interrupted) {}

  // Readings at the ends of a marked program's cycles. The program may run again with more cycles.
  Status FromCycles(RunMeters seen, Arms* arms) {
    std::uint64_t cycles = seen.cycles;
    for (int round = 0;; ++round) {
      arms->subject = std::move(seen.at_cycles);
      DropWarmUp(options_.warm_up, &arms->subject);
      Status controlled = Control(cycles, arms);
      if (!controlled.ok()) return controlled;
      const std::uint64_t wanted = options_.warm_up + std::max<std::uint64_t>(kBlocks, Wanted(*arms));
      if (options_.detect == 0 || !TakesCount(subject_.command) || wanted <= cycles || round == kRounds || cycles == kMostCycles) return {};
      cycles = std::min(wanted, kMostCycles);
      Result<RunMeters> longer = Run(subject_, Name("detect", round), cycles);
      if (!longer.ok()) return longer.status();
      seen = std::move(*longer);
    }
  }

  // Readings at the ends of ten processes with more and more cycles.
  Status FromRuns(Arms* arms) {
    arms->step = 1;
    for (int round = 0;; ++round) {
      Result<std::vector<MeterSeries>> subject = Ends(subject_, Name("detect", round), arms->step);
      if (!subject.ok()) return subject.status();
      arms->subject = std::move(*subject);
      if (!options_.control.empty()) {
        const Result<Subject> nothing = ControlOf(subject_, options_.control);
        if (!nothing.ok()) return nothing.status();
        Result<std::vector<MeterSeries>> control = Ends(*nothing, Name("control", round), arms->step);
        if (!control.ok()) return control.status();
        arms->control = std::move(*control);
      }
      const std::uint64_t wanted = Wanted(*arms) / kBlocks;
      if (wanted <= arms->step || round == kRounds || arms->step == kMostCycles / kBlocks) return {};
      arms->step = std::min(wanted, kMostCycles / kBlocks);
    }
  }

 private:
  std::string Name(const char* arm, int round) const { return dir_.Journal(std::string(arm) + "-" + std::to_string(round)); }

  std::uint64_t Wanted(const Arms& arms) const {
    return options_.detect == 0 ? 0 : CyclesForAll(arms.subject, arms.control, arms.step, options_.detect);
  }

  Status Control(std::uint64_t cycles, Arms* arms) {
    if (options_.control.empty() || arms->subject.empty()) return {};
    if (!arms->control.empty() && arms->control.front().readings.size() >= cycles) return {};
    const Result<Subject> nothing = ControlOf(subject_, options_.control);
    if (!nothing.ok()) return nothing.status();
    Result<RunMeters> control = Run(*nothing, dir_.Journal("control"), options_.warm_up + std::max(cycles, kControlCycles));
    if (!control.ok()) return control.status();
    arms->control = std::move(control->at_cycles);
    DropWarmUp(options_.warm_up, &arms->control);
    return {};
  }

  Result<RunMeters> Run(const Subject& subject, const std::string& name, std::uint64_t cycles, std::size_t done = 0,
                        std::size_t planned = 1) {
    if (options_.told) options_.told(done, planned);
    Subject once = subject;
    once.deadline_ms *= std::max<std::uint64_t>(1, cycles / kBlocks);  // a program that hangs still ends
    once.command = WithCount(subject.command, cycles);
    const Result<Observation> seen = RunOnce(once, name, interrupted_);
    if (!seen.ok()) return seen.status();
    return ReadMeters(*seen);
  }

  Result<std::vector<MeterSeries>> Ends(const Subject& subject, const std::string& name, std::uint64_t step) {
    std::vector<RunMeters> runs;
    for (std::uint64_t block = 0; block < kBlocks; ++block) {
      Result<RunMeters> one = Run(subject, name + "-" + std::to_string(block), 1 + options_.warm_up + block * step, block, kBlocks);
      if (!one.ok()) return one.status();
      runs.push_back(std::move(*one));
    }
    return JoinEnds(runs);
  }

  const Subject& subject_;
  const WorkDir& dir_;
  const CertificateOptions& options_;
  int* interrupted_;
};

report::Finding GrowthOf(const report::Meter& row, const std::string& reproduce) {
  report::Finding finding;
  finding.rule = Rule::Growth;
  finding.title = Words({Detail::HigherAfterEach});
  finding.kind = row.name;
  finding.count = 1;
  finding.bytes = static_cast<std::uint64_t>(row.per_cycle + 0.5);
  TrialFindingText text;
  text.rule = Rule::Growth;
  text.apart = finding.kind;
  finding.fingerprint = Fingerprint(text, std::nullopt);
  finding.reproduce = reproduce;
  return finding;
}

}  // namespace

std::optional<std::uint64_t> ParseBytes(std::string_view text) {
  constexpr std::pair<std::string_view, unsigned> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}};
  constexpr std::uint64_t kMost = std::uint64_t{1} << 60U;
  unsigned shift = 0;
  for (const auto& [unit, bits] : kUnits) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    shift = bits;
    break;
  }
  std::uint64_t value = 0;
  const std::from_chars_result parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value > kMost >> shift) return std::nullopt;
  return value << shift;
}

Result<std::uint64_t> ParseDetect(std::string_view text) {
  const Status wrong(Exit::Usage, OptionFlag{"--detect"},
                     "'" + std::string(text) + "': expected bytes per cycle from 1, such as 4096, 4KiB or 1MiB/cycle");
  if (text.empty()) return std::uint64_t{0};
  constexpr std::string_view kPerCycle = "/cycle";
  if (text.ends_with(kPerCycle)) text.remove_suffix(kPerCycle.size());
  const std::optional<std::uint64_t> bytes = ParseBytes(text);
  return bytes && *bytes != 0 ? Result<std::uint64_t>(*bytes) : wrong;
}

Result<Observation> RunOnce(const Subject& subject, const std::string& name, int* interrupted) {
  Result<Observation> seen = RunFaultFree(subject, name, interrupted);
  if (!seen.ok()) return seen;
  for (Object& object : seen->ledger.objects) object.own_context = object.own_context && !subject.own_orphans_count;
  return seen;
}

Status Certify(const Subject& subject, const WorkDir& dir, const CertificateOptions& options, RunMeters seen, const std::string& reproduce,
               report::Run* run, int* interrupted) {
  report::Meters meters;
  meters.warm_up = options.warm_up;
  meters.asked = options.detect;
  meters.absent = seen.absent;
  Arms arms;
  Certifier certifier(subject, dir, options, interrupted);
  const bool takes_count = TakesCount(subject.command);
  const bool hosted = subject.launch.host_probes == HostProbes::Heap;
  if (seen.cycles != 0 && (seen.cycles >= options.warm_up + kBlocks || (options.detect != 0 && takes_count))) {
    Status certified = certifier.FromCycles(std::move(seen), &arms);
    if (!certified.ok()) return certified;
  } else if (seen.cycles != 0) {
    Details needed = {
        {Detail::CyclesNeeded, {std::to_string(seen.cycles), std::to_string(options.warm_up), std::to_string(std::uint64_t{kBlocks})}}};
    if (takes_count) needed.push_back({Detail::CyclesOrDetect, {std::to_string(options.warm_up + kBlocks)}});
    meters.absent = {{report::kAllMeters, {Reason::TooFewCycles, Words(needed)}}};
  } else if (options.detect != 0 && hosted) {
    meters.of_runs = true;
    Status certified = certifier.FromRuns(&arms);
    if (!certified.ok()) return certified;
  } else {
    meters.absent = {{report::kAllMeters, {hosted ? Reason::MeterNoMarks : Reason::MeterNoProbes}}};
  }
  const bool exact_grows =
      std::any_of(run->findings.begin(), run->findings.end(), [](const report::Finding& finding) { return finding.rule == Rule::Growth; });
  bool own_grows = false;
  for (const MeterSeries& series : arms.subject) {
    if (series.readings.size() < kBlocks) continue;
    const auto beside =
        std::find_if(arms.control.begin(), arms.control.end(), [&](const MeterSeries& one) { return one.name == series.name; });
    report::Meter row = JudgeMeter(series, beside == arms.control.end() ? nullptr : &*beside, arms.step);
    // The growth of the whole device is not reported again when the process's own device memory grows.
    const bool said = row.name == kDeviceBytes && own_grows;
    if (row.grows && !exact_grows && !said) run->findings.push_back(GrowthOf(row, reproduce));
    own_grows = own_grows || (row.name == kProcessDeviceBytes && row.grows);
    if (options.detect != 0 && row.detectable > options.detect && !row.grows) {
      Count(Reason::BelowDetect, 1, &run->totals.skipped);
    }
    meters.rows.push_back(std::move(row));
  }
  run->meters = std::move(meters);
  return {};
}

}  // namespace cuaudit::harness
