// SPDX-License-Identifier: MIT
#include "suites/support/sample_runs.h"

#include <utility>

#include "harness/defect/defects.h"

namespace cuaudit::suites {
namespace {

using report::DriverKind;
using report::Finding;
using report::Frame;
using report::Mode;
using report::Outcome;
using report::Reason;
using report::Rule;
using report::Run;
using report::Verdict;

Frame Known(std::string function, std::string file, int line, std::uint64_t offset) {
  return Frame{"player", std::move(function), std::move(file), line, offset};
}

Run WithDefects(Run run) {
  harness::FindDefects(&run);
  return run;
}

Run Base(Mode mode, Outcome outcome) {
  Run run;
  run.mode = mode;
  run.outcome = outcome;
  run.command = {"./player", "--frames", "30"};
  run.driver = {DriverKind::Simulated, "13.0", "", "cuaudit simulated device"};
  run.driver.world = "schedule=lazy;devices=1;device_memory=8192MiB;profile=h200;seed=1";
  run.scope = "pinned";
  run.host.probes = {"file_descriptor", "thread"};
  run.host.left_out = {{"host_heap", {Reason::CostsMore}}};
  run.generated = "2026-01-02T03:04:05Z";
  run.tool_version = "0.1.0";
  return run;
}

Finding LostStream() {
  Finding finding = {.rule = Rule::Leak, .title = "acquired and never released", .kind = "stream", .count = 1};
  finding.fault = report::Fault{"cuEventCreate",
                                2,
                                "refuse",
                                "OUT_OF_MEMORY",
                                "cuEventCreate#2=OUT_OF_MEMORY,refuse",
                                {Known("make_events", "src/picture.c", 88, 0x1f30), Known("picture_alloc", "src/picture.c", 131, 0x2010)}};
  finding.acquired = {"cuStreamCreate",
                      {Frame{"libplug.so", "", "", 0, 0x77}, Known("make_stream", "src/picture.c", 61, 0x1e02),
                       Known("picture_alloc", "src/picture.c", 127, 0x1ff0), Frame{"player", "main", "", 0, 0x1100}}};
  finding.fingerprint = "leak-5f0c11d2";
  finding.reproduce = "cuaudit replay --driver=sim --fault 'cuEventCreate#2=OUT_OF_MEMORY,refuse' -- ./player --frames 30";
  finding.trials = 3;
  return finding;
}

}  // namespace

Run SweepWithFindings() {
  Run run = Base(Mode::Sweep, Outcome::Findings);
  run.totals = {41,
                29,
                58,
                57,
                {{Verdict::Pass, 40}, {Verdict::Absorbed, 2}, {Verdict::Leak, 14}, {Verdict::Misuse, 1}, {Verdict::NotExercised, 1}},
                {{{Reason::NoError}, 4}}};
  run.findings.push_back(LostStream());
  Finding misuse;
  misuse.rule = Rule::DoubleRelease;
  misuse.title = "released again after it was released";
  misuse.kind = "device_memory";
  misuse.count = 1;
  misuse.bytes = 4096;
  misuse.acquired = {"cuMemAlloc_v2", {Frame{"player", "", "", 0, 0x2468}}};
  misuse.where = "cuMemFree_v2";
  misuse.where_stack = {Frame{"libplug.so", "plug_close", "", 0, 0x99}};
  misuse.fingerprint = "double_release-00ab34ef";
  misuse.reproduce = "cuaudit run --driver=sim -- ./player --frames 30";
  run.findings.push_back(misuse);
  Finding note;
  note.rule = Rule::ReleaseRefused;
  note.title = "alive because its release was the refused call";
  note.kind = "event";
  note.count = 1;
  note.fingerprint = "release_refused-12345678";
  run.notes.push_back(note);
  note.rule = Rule::NotExercised;
  note.title = "the fault did not fire";
  note.kind = "";
  note.count = 0;
  note.fingerprint = "not_exercised-87654321";
  run.notes.push_back(note);
  return WithDefects(std::move(run));
}

Run CyclesWithGrowth() {
  Run run = Base(Mode::Cycles, Outcome::Findings);
  run.driver = {DriverKind::Genuine, "13.0", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "NVIDIA H200"};
  run.totals.calls = 57;
  run.totals.sites = 21;
  run.cycle_counts = {1, 10};
  run.per_cycle = {{"host_heap", 2.0}, {"stream", 0.5}};
  run.cycle_rows.push_back({"host_heap", {"malloc", {Known("state_init", "src/state.c", 40, 0x1000)}}, {2, 20}, 2.0, 792});
  run.cycle_rows.push_back({"stream", {"cuStreamCreate", {}}, {1, 6}, 0.5, 0});
  run.cycle_rows[0].course = {report::Trend::Growth, 10, 20, 10, 20, 2.0, 2.0};
  run.cycle_rows[1].course = {report::Trend::Undecided, 10, 6, 10, 20, 0, 0};
  run.message.undecided = {1, 20};
  run.cycle_rows.push_back({"dlopen_reference", {"dlopen", {Frame{"player", "", "", 0, 0x40}}}, {1, 1}, 0.0, 0});
  report::Meters meters;
  meters.warm_up = 2;
  meters.asked = 4096;
  meters.rows.push_back({"heap_bytes", 100, true, 792.5, 0, 160, 0, 200, 0, 20});
  meters.rows.push_back({"resident_bytes", 100, false, 0, 3892, 8192, 40, 200, 1, 20});
  meters.absent = {{"device_bytes", {Reason::MeterNoContext}}};
  run.meters = meters;
  Finding growth;
  growth.rule = Rule::Growth;
  growth.title = "more live objects after more cycles";
  growth.kind = "host_heap";
  growth.count = 18;
  growth.bytes = 7128;
  growth.acquired = run.cycle_rows.front().acquired;
  growth.fingerprint = "growth-0badcafe";
  growth.reproduce = "cuaudit cycles --n 1,10 --host -- ./player '{n}'";
  run.findings.push_back(growth);
  return WithDefects(std::move(run));
}

// One stream that no failing call unwinds, as it looks in a sweep: one finding for each of them.
Run OnePlaceManyCalls() {
  Run run = Base(Mode::Sweep, Outcome::Findings);
  run.totals = {41, 29, 58, 58, {{Verdict::Crash, 1}, {Verdict::Leak, 8}, {Verdict::Pass, 49}}, {}};
  const auto lose = [&run](const std::string& kind, int acquired_line, int failing_line) {
    Finding finding = LostStream();
    finding.kind = kind;
    finding.trials = 1;
    finding.acquired.stack[1].line = acquired_line;
    finding.fault->text = "cuEventCreate#" + std::to_string(failing_line) + "=OUT_OF_MEMORY,refuse";
    finding.fault->stack[0].line = failing_line;
    finding.fingerprint = "leak-" + kind + std::to_string(failing_line);
    finding.reproduce = "cuaudit replay --driver=sim --fault '" + finding.fault->text + "' -- ./player --frames 30";
    run.findings.push_back(finding);
  };
  for (const int line : {88, 90, 92, 94, 96}) {
    lose("stream", 61, line);
    if (line < 92) lose("event", 70, line);
  }
  run.findings[2].trials = 4;
  Finding crash = LostStream();
  crash.rule = Rule::Crash;
  crash.title = "the program died of a signal";
  crash.kind = "";
  crash.count = 1;
  crash.acquired = {};
  crash.where = "cuEventCreate";
  crash.where_stack = crash.fault->stack;
  crash.fingerprint = "crash-1";
  crash.trials = 1;
  run.findings.push_back(crash);
  return WithDefects(std::move(run));
}

Run AbandonedTrials() {
  Run run = Base(Mode::Sweep, Outcome::Clean);
  run.totals = {12, 12, 12, 12, {{Verdict::AbandonedAtExit, 7}, {Verdict::Pass, 5}}, {}};
  for (int i = 1; i <= 7; ++i) {
    Finding note = LostStream();
    note.rule = Rule::AbandonedAtExit;
    note.title = "the program left by exit right after the fault, nothing was unwound";
    note.fault->text = "cuEventCreate#" + std::to_string(i) + "=OUT_OF_MEMORY,refuse";
    note.fingerprint = "abandoned_at_exit-" + std::to_string(i);
    note.trials = 1;
    run.notes.push_back(note);
  }
  return WithDefects(std::move(run));
}

Run LiveTable() {
  Run run = Base(Mode::Run, Outcome::Clean);
  run.driver.kernels = {3, 12, 2};
  run.totals.calls = 9;
  run.totals.sites = 9;
  run.live = {
      {"primary_context", 1, 1, 0, 0}, {"device_memory", 12, 10, 2, 8388608}, {"stream", 5, 0, 5, 0}, {"file_descriptor", 3, 2, 1, 0}};
  Finding left;
  left.rule = Rule::ProcessLifetime;
  left.title = "the fault-free run leaves it too";
  left.kind = "device_memory";
  left.count = 2;
  left.bytes = 8388608;
  left.acquired = {"cuMemAlloc", {Frame{"libplug.so", "plug_alloc", "", 0, 0x77}, Known("load", "src/load.c", 12, 0x1e02)}};
  left.fingerprint = "process_lifetime-1";
  left.reproduce = "cuaudit run --driver=sim -- ./player --frames 30";
  run.notes.push_back(left);
  left.kind = "stream";
  left.count = 5;
  left.bytes = 0;
  left.acquired = {"cuStreamCreate", {Known("load", "src/load.c", 14, 0x1e22)}};
  left.fingerprint = "process_lifetime-2";
  run.notes.push_back(left);
  return WithDefects(std::move(run));
}

// The same run as `cuaudit run` judges it, and one thread that still ran.
Run LeftObjects() {
  Run run = LiveTable();
  run.outcome = Outcome::Left;
  run.findings = std::move(run.notes);
  run.notes.clear();
  for (Finding& finding : run.findings) {
    finding.rule = Rule::LeftAtExit;
    finding.title = "never released";
    finding.fingerprint.replace(0, finding.fingerprint.find('-'), "left_at_exit");
  }
  run.findings.back().detail = "gone with its context; acquired by a thread that still ran when the program exited";
  return WithDefects(std::move(run));
}

// The simulated driver proved that nothing orders two operations; once without a fault, and once more where an event could not be made.
Run ProvedMisuse() {
  Run run = Base(Mode::Sweep, Outcome::Findings);
  run.totals = {41, 29, 58, 58, {{Verdict::Misuse, 1}, {Verdict::Pass, 57}}, {}};
  Finding race;
  race.rule = Rule::UnorderedAccess;
  race.title = "two operations use the same bytes, one of them writes, nothing orders them";
  race.kind = "device_memory";
  race.count = 1;
  race.bytes = 4096;
  race.acquired = {"cuMemAlloc", {Known("picture_alloc", "src/picture.c", 120, 0x1fe0)}};
  race.where = "cuMemcpyDtoHAsync";
  race.where_stack = {Known("download", "src/picture.c", 201, 0x2100), Known("main", "src/main.c", 12, 0x1100)};
  race.other = {"cuMemsetD8Async", {Known("clear", "src/picture.c", 170, 0x2040), Known("main", "src/main.c", 11, 0x10f0)}};
  race.fingerprint = "v1-0123456789abcdef";
  race.reproduce = "cuaudit run --driver=sim --schedule=adversarial -- ./player --frames 30";
  run.findings.push_back(race);
  race.fault = LostStream().fault;
  race.where_stack = race.other.stack;
  race.acquired = {};
  race.fingerprint = "v1-0123456789abcdee";
  run.findings.push_back(race);
  return WithDefects(std::move(run));
}

Run CleanSweep() {
  Run run = Base(Mode::Sweep, Outcome::Clean);
  run.totals = {12, 12, 12, 12, {{Verdict::Pass, 12}}, {}};
  return WithDefects(std::move(run));
}

Run SecondFaults() {
  Run run = Base(Mode::Sweep, Outcome::Findings);
  run.totals = {41, 29, 90, 90, {{Verdict::Leak, 1}, {Verdict::NotRecovered, 1}, {Verdict::Pass, 84}, {Verdict::RetainedForRetry, 4}}, {}};
  run.totals.pruned = {{{Reason::FirstSameState}, 8199}};
  run.totals.recovered = 71;
  run.totals.shrinking = 3;
  run.driver.kernels = report::Kernels{3, 1, 0};
  run.coverage = report::Coverage{128, 126, 29, 140, {}, 8199};
  run.coverage->not_reached.push_back({"cuMemFree",
                                       "INVALID_VALUE",
                                       "after",
                                       "teardown",
                                       true,
                                       Reason::SecondKilled,
                                       {},
                                       {Known("picture_free", "src/picture.c", 140, 0x2100)}});
  run.coverage->not_reached.push_back({"cuInit", "NOT_INITIALIZED", "refuse", "", false, Reason::BeyondLimit, {}, {}});
  Finding lost = LostStream();
  lost.then = {report::Fault{"cuCtxPopCurrent",
                             3,
                             "refuse,burst=2",
                             "INVALID_CONTEXT",
                             "cuCtxPopCurrent#3=INVALID_CONTEXT,refuse,burst=2",
                             {Known("leave", "src/context.c", 12, 0x900)}}};
  lost.shrunk_from = {lost.fault->text, "cuCtxPopCurrent#3=INVALID_CONTEXT,persist"};
  run.findings.push_back(lost);
  Finding stuck;
  stuck.rule = Rule::NotRecovered;
  stuck.title = "the clean cycle after the faulted one failed or lost something";
  stuck.detail = "the clean cycle reported OUT_OF_MEMORY";
  stuck.count = 1;
  stuck.fault = lost.fault;
  stuck.fingerprint = "v1-0123456789abcdef";
  run.findings.push_back(stuck);
  return WithDefects(std::move(run));
}

Run NotExercised() {
  Run run = {.mode = Mode::Sweep, .outcome = Outcome::NotExercised};
  run.message.told = "the program made no driver call";
  run.command = {"true"};
  return WithDefects(std::move(run));
}

Run InterruptedSweep() {
  Run run = Base(Mode::Sweep, Outcome::Interrupted);
  run.interrupted = report::Interrupted{"SIGINT", 12, 58};
  run.totals = {41, 29, 12, 12, {{Verdict::Pass, 11}, {Verdict::Leak, 1}}, {}};
  run.findings.push_back(LostStream());
  return WithDefects(std::move(run));
}

Run ReplayedFault() {
  Run run = Base(Mode::Replay, Outcome::Clean);
  run.faults = {{"cuMemAlloc#2=OUT_OF_MEMORY,refuse", true}, {"cuEventCreate#1=INVALID_VALUE,after", false}};
  run.totals = {41, 29, 1, 1, {{Verdict::Pass, 1}}, {}};
  return WithDefects(std::move(run));
}

Run HostileStrings() {
  Run run = Base(Mode::Run, Outcome::Findings);
  run.command = {"./a b", "it's", "", "<&\">", "\x1b[31mred", "bad\xff\xc0\xaf", "sur\xed\xa0\x80", "caf\xc3\xa9"};
  Finding finding = LostStream();
  finding.fault.reset();
  finding.title = "a ]]> b & <c> \"d\"";
  finding.acquired.stack = {Frame{"lib\x01<x>.so", "operator<< <T&&>(\xc2\x9b)", "dir\n/fi\xfele.c", 3, 0}};
  finding.reproduce = "cuaudit run -- './a b'\t\x7f";
  run.findings.push_back(finding);
  run.totals.skipped = {{{Reason::CopyDiffers, "r\xffson & <tag>"}, 1}};
  return WithDefects(std::move(run));
}

std::vector<Sample> Samples() {
  return {{"sweep_with_findings", SweepWithFindings()},
          {"cycles_with_growth", CyclesWithGrowth()},
          {"one_place_many_calls", OnePlaceManyCalls()},
          {"abandoned_trials", AbandonedTrials()},
          {"live_table", LiveTable()},
          {"left_objects", LeftObjects()},
          {"proved_misuse", ProvedMisuse()},
          {"clean_sweep", CleanSweep()},
          {"second_faults", SecondFaults()},
          {"not_exercised", NotExercised()},
          {"interrupted_sweep", InterruptedSweep()},
          {"replayed_fault", ReplayedFault()},
          {"hostile_strings", HostileStrings()},
          {"empty", Run{}}};
}

}  // namespace cuaudit::suites
