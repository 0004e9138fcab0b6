// SPDX-License-Identifier: MIT
// run.h: the document model of a report: what one command of cuaudit found, as plain values.
//
// The harness fills in a Run; the writers of this room turn it into text, JSON (reports/schema/report.schema.json) or JUnit XML. The
// model knows nothing of CUDA, of the harness or of how findings are made. What has a row in reports/words is an enumerator here; strings
// hold names and texts that nobody compares. Sizes are in bytes where the name says so.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "faults/driver/driver_kind.h"
#include "reports/words/words.h"

namespace cuaudit::report {

using driver::DriverKind;
using words::Because;
using words::Change;
using words::Counted;
using words::Fallback;
using words::Isolation;
using words::Missed;
using words::Outcome;
using words::Reason;
using words::Rule;
using words::Taken;
using words::Verdict;

enum class Mode : std::uint8_t { Unknown, Run, Cycles, Sweep, Replay };

// Number of kernel launches on the simulated driver, by what ran.
struct Kernels {
  std::uint64_t hosted = 0;      // a registered host function ran in place of the kernel
  std::uint64_t idle = 0;        // nothing ran: the launch read and wrote nothing
  std::uint64_t mismatched = 0;  // idle launches whose registered host function expects other parameters
};

struct Driver {
  DriverKind kind = DriverKind::None;
  std::string version;                  // "13.0"
  std::string path;                     // file of the genuine libcuda; empty for sim
  std::string device;                   // device name as the driver gave it
  std::string runtime = {};             // "cuaudit's own, 13.0" when the program used cuaudit's CUDA runtime; otherwise empty
  std::string world = {};               // options of the simulated driver: "schedule=lazy;devices=1;..."; empty for genuine
  std::optional<Kernels> kernels = {};  // launches of the fault-free run; absent when none ran or the driver was genuine
};

// Kinds of host resource that were audited, and the reasons why others were left out.
struct Host {
  std::vector<std::string> probes;
  std::map<std::string, Because> left_out;
};

struct Frame {
  std::string module = {};    // file name of the object, without directory
  std::string function = {};  // demangled; empty when unknown
  std::string file = {};      // source file, empty when unknown
  int line = 0;
  std::uint64_t offset = 0;  // in the module
  std::uint64_t start = 0;   // of a function without a name: where it begins in the module; 0: unknown
  bool once = false;         // nothing behind this call leads back: a function that makes it again was called again
};

struct Fault {
  std::string call;
  std::uint32_t occurrence = 0;
  std::string how;
  std::string code;
  std::string text;  // text form that `cuaudit replay` accepts
  std::vector<Frame> stack;
};

struct Acquired {
  std::string call;
  std::vector<Frame> stack;
};

struct Finding {
  Rule rule{};
  std::string title = {};
  std::string kind = {};
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::optional<Fault> fault = {};
  std::vector<Fault> then = {};               // further faults of the trial, in the order in which they fire
  std::vector<std::string> shrunk_from = {};  // faults of the trial that first showed the finding, when fewer or shorter ones suffice
  std::string detail = {};                    // what the title does not say; may be empty
  Acquired acquired = {};                     // for violations: where the object was acquired; empty when unknown
  std::string where = {};                     // for violations, crashes and hangs: the call at which the finding showed
  std::vector<Frame> where_stack = {};
  Acquired other = {};  // for proved misuse: the call that collides with the one at `where`; for other rules see words::OtherCall
  std::string fingerprint = {};
  std::string reproduce = {};  // command line that shows the finding again
  std::uint64_t trials = 1;    // number of trials with the same fingerprint; for host_left the number of lists of faults that left it
};

// Why a function is blamed for a loss.
enum class BlamedBecause : std::uint8_t {
  HeldIt,        // it ran when the object was acquired and when the call failed
  BeganRelease,  // it was entered on the way to the release, and returned before
  NeverReached,  // it makes the release in the fault-free run
  MadeTheCall,   // it made the call that is wrong
};

struct Blame {
  Frame function;
  BlamedBecause because = BlamedBecause::MadeTheCall;
};

// One thing that is wrong in a defect, whichever fault showed it.
struct Member {
  std::vector<std::size_t> findings;  // indices in Run::findings
  std::uint64_t count = 0;            // the most that one trial shows
  std::uint64_t bytes = 0;
};

// An entry of the suppressions file that accepts a defect.
struct Suppressed {
  std::string reason;
  std::string owner;
  std::string until;     // "2027-03-31", the last day on which it holds
  bool expired = false;  // the day has passed: the defect counts again
  std::string entry;     // file and line
};

// A call that the program made after a fault.
struct StepBack {
  std::uint32_t place = 0;  // in Sequence::places
  std::string result;       // "OUT_OF_MEMORY"; empty: it succeeded
};

// How one trial that shows a defect went on after its last fault, and what the fault-free run releases from there on.
struct Unwinding {
  std::vector<std::string> faults;
  std::vector<StepBack> steps;         // the failing call first
  std::uint64_t more = 0;              // calls after those
  std::vector<std::uint32_t> held;     // in Sequence::calls: those that release what is held when the call fails
  std::vector<std::uint32_t> missing;  // of these, the ones whose release this trial does not make
};

// A defect of the base that a comparison takes for this one although its fingerprint is another one.
struct TakenFor {
  Taken why{};
  std::string function;     // as the base has it; empty: unknown
  std::string fingerprint;  // in the base
};

// Findings with one cause: what a person reads and counts.
struct Defect {
  std::vector<Member> members = {};  // the owner of the others first
  std::optional<Blame> blame = {};   // absent when no function of the program is known
  Acquired released = {};  // where the fault-free run releases what the first member lost or puts the setting back; empty when it does not
  std::uint64_t trials = 0;  // trials that show it; 0: it shows without a fault
  std::string fingerprint = {};
  Change change = Change::None;  // compared with a base; never Fixed or NotRun, for this report has the defect
  std::string was = {};          // what the base says when it has `changed`, in words
  std::vector<TakenFor> taken_for = {};
  std::optional<Suppressed> suppressed = {};
  std::vector<std::uint64_t> shown_by = {};  // numbers in the plan of the trials that show it
  std::optional<Unwinding> unwinding = {};   // of the first of them
};

// What a trial ran in, and why not in the chosen isolation when it could not.
struct Ran {
  Isolation in = Isolation::Unknown;
  Fallback instead = {};

  auto operator<=>(const Ran&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 means the 0 that it compares with
};

struct Totals {
  std::uint64_t calls = 0;  // driver calls of the fault-free run
  std::uint64_t sites = 0;  // distinct (call, stack) pairs among those calls
  std::uint64_t trials = 0;
  std::uint64_t fired = 0;  // trials whose fault fired
  std::map<Verdict, std::uint64_t> verdicts;
  Counted skipped;              // calls or checks left out
  Counted pruned = {};          // faults not tried because an equal one was
  std::uint64_t recovered = 0;  // trials whose next, clean cycle was checked
  std::uint64_t shrinking = 0;  // extra runs that look for the fewest faults that show a finding
  std::uint64_t forced = 0;     // times that queued work ran although no driver call waited for it
  std::map<Ran, std::uint64_t> isolation = {};
};

// A way to fail (place, phase, error, way) that no trial reached.
struct NotReached {
  std::string call = {};
  std::string code = {};
  std::string how = {};
  std::string phase = {};           // empty: any
  bool unwinding = false;           // the call is made while unwinding from another fault
  Reason why = Reason::None;        // why no trial was made for it
  Missed missed = Missed::Nothing;  // why its trials did not reach it; said when there is no such reason
  std::vector<Frame> stack = {};
};

// A way to fail that fired in a trial, by the function of the program that made the call.
struct Tried {
  std::string call;
  std::string code;
  std::string how;
  bool unwinding = false;    // on the way back from another fault
  std::string function;      // without parameters; empty: unknown, and for calls made on the way back
  std::uint64_t places = 0;  // number of call stacks
};

// Number of ways to fail (place, phase, error, way) that the program can reach, and how many of them the sweep reached.
struct Coverage {
  std::uint64_t reachable = 0;
  std::uint64_t reached = 0;
  std::uint64_t codes_tried = 0;       // pairs of call and error that were tried
  std::uint64_t codes_documented = 0;  // pairs documented for the same calls
  std::vector<NotReached> not_reached;
  std::uint64_t pruned = 0;       // faults (not ways to fail) that were not tried because a fault in an equal state was planned
  std::vector<Tried> tried = {};  // sorted; by this a comparison tells a defect that is fixed from one that nobody looked for
};

// Coverage in tenths of a percent, rounded down, so that 1000 means that everything was reached.
inline std::uint64_t PerMille(const Coverage& coverage) {
  return coverage.reachable == 0 ? 0 : coverage.reached * 1000 / coverage.reachable;
}

// A place from which the program calls the driver.
struct CallPlace {
  std::string call;
  std::optional<Frame> at;  // the innermost function of the program; absent when unknown
};

struct MadeCall {
  std::uint32_t place = 0;  // in Sequence::places
  std::string phase;        // empty: any
  std::uint32_t cycle = 0;  // marked cycle; 0: none
};

// One trial, by the call that it made fail first.
struct TriedCall {
  std::vector<std::string> faults;                 // in the order in which they fire
  std::optional<std::uint32_t> call;               // in Sequence::calls; absent when the fault-free run does not make it
  std::vector<std::optional<std::uint32_t>> then;  // in Sequence::places: where the further faults hit; absent when they did not
  Verdict verdict{};
  std::vector<std::uint32_t> defects;    // in Run::defects
  std::optional<std::uint32_t> at = {};  // where the first fault hit, in Sequence::places, if that is no call of the fault-free run
};

// The driver calls of the fault-free run in their order, and what came of it when each was made to fail.
struct Sequence {
  std::vector<CallPlace> places;
  std::vector<MadeCall> calls;
  std::uint64_t more = 0;  // calls of the run after those
  std::vector<TriedCall> trials;
  std::uint64_t more_trials = 0;  // trials of the sweep after those
};

enum class Trend : std::uint8_t { Steady, Growth, Bounded, Undecided };

// How the count of live objects of one kind and place went on over the cycles.
struct Course {
  Trend trend = Trend::Steady;
  std::uint64_t cycles = 0;   // of the longest run; 0, like all below, for a steady count
  std::uint64_t plateau = 0;  // most objects alive
  std::uint64_t reached = 0;  // cycles after which so many were alive for the first time
  std::uint64_t needed = 0;   // number of cycles that shows whether the count stays at the plateau
  double least = 0;           // of growth: objects per cycle in the slowest and in the fastest doubling of the cycles
  double most = 0;
};

// One row of the table of `cuaudit cycles`: live objects at exit, by kind and place of acquisition.
struct CycleRow {
  std::string kind;
  Acquired acquired;
  std::vector<std::uint64_t> live;  // one per entry of Run::cycle_counts
  double per_cycle = 0;             // growth per cycle between the first and the last count
  std::uint64_t bytes_per_cycle = 0;
  Course course = {};
};

// Growth of one noisy meter over the cycles, compared with a control arm: the same number of cycles of a lifecycle that does nothing.
struct Meter {
  std::string name;
  std::uint64_t cycles = 0;  // cycles that were judged
  bool grows = false;
  double per_cycle = 0;          // growth in bytes
  std::uint64_t detectable = 0;  // smallest leak per cycle, in bytes, that would have been seen
  std::uint64_t noise = 0;       // bytes
  std::uint64_t drift = 0;       // bytes that a block of the control arm gains
  // Number of times that the rule fired on the control arm alone, in windows that do not overlap.
  std::uint64_t control_cycles = 0;
  std::uint64_t false_alarms = 0;
  std::uint64_t windows = 0;
};

inline constexpr const char* kAllMeters = "all";

struct Meters {
  std::uint64_t warm_up = 0;  // first cycles, which are not judged
  std::uint64_t asked = 0;    // leak per cycle, in bytes, that the caller wanted to detect; 0: none was given
  bool of_runs = false;       // true: judged at the ends of processes instead of at the ends of cycles
  std::vector<Meter> rows;
  std::map<std::string, Because> absent;  // meter, or kAllMeters -> reason why there is no judgement
};

// One row of the table of live objects of `cuaudit run`.
struct LiveRow {
  std::string kind;
  std::uint64_t acquired = 0;
  std::uint64_t released = 0;
  std::uint64_t live = 0;
  std::uint64_t bytes = 0;
  std::uint64_t orphaned = 0;  // objects that were never released and died with their context
};

// A fault that was given to `cuaudit replay`.
struct Replayed {
  std::string text;          // text form that `cuaudit replay` accepts
  bool code_chosen = false;  // the fault was given without an error, and the likeliest documented one was chosen
};

// Present when a signal ended the command early. The report holds what was known by then.
struct Interrupted {
  std::string signal;         // "SIGINT"
  std::uint64_t done = 0;     // finished trials; for `cycles` and `run`, finished runs of the program
  std::uint64_t planned = 0;  // planned trials or runs as far as known; 0: the fault-free runs had not ended
  bool more = false;          // the plan grows: second faults are planned when the first ones are done
};

// Trials of a sweep or a replay whose fault did not fire.
struct NeverFired {
  std::map<Missed, std::uint64_t> trials;  // why -> number; empty: every fault fired
  std::uint64_t planned = 0;               // trials
  std::string journals;                    // folder of the journals
  std::vector<std::string> faults;         // of one trial with several faults: those that did not fire
  std::uint64_t of = 0;                    // number of faults of that trial
};

enum class NothingPlanned : std::uint8_t { No, NothingCanFail, NothingChosen };

// How `run` saw the program end when it did not end as expected.
struct BadEnd {
  std::string how;  // "exited with status 3"
  int expected = 0;
};

// Places whose counts grew and do not tell a leak from a cache that fills.
struct Undecided {
  std::uint64_t places = 0;
  std::uint64_t cycles = 0;  // number that would tell
};

struct Part {
  std::uint64_t some = 0;
  std::uint64_t all = 0;
};

// What the outcome does not say. message.h turns it into one line.
struct Message {
  std::string told;  // why the audit, or a part of it, did not take place, in one line
  NothingPlanned nothing = NothingPlanned::No;
  NeverFired never_fired;
  std::optional<Part> untried;    // trials that were done before the budget was spent, and a place was never tried
  std::optional<Part> chosen;     // trials of the possible faults; said when the outcome is clean. Nothing else here goes with clean
  std::optional<Part> abandoned;  // trials abandoned at exit whose heap nobody looked at
  std::optional<Part> coverage;   // reached and wanted, in tenths of a percent
  std::optional<BadEnd> bad_end;
  std::optional<Undecided> undecided;
};

struct Run {
  Mode mode = Mode::Unknown;
  std::optional<Outcome> outcome = {};  // absent while the audit goes on
  Message message = {};
  std::optional<Interrupted> interrupted = {};
  std::vector<Replayed> faults = {};
  std::vector<std::string> command = {};
  std::string lifecycle = {};  // name of the lifecycle in C++ that the command's test audits; empty: the command itself is audited
  Driver driver = {};
  std::string scope = {};                  // "pinned" or "process"
  std::vector<std::string> settings = {};  // of the command, beyond its defaults, that decide what it finds: "--orphans=finding"
  Host host = {};
  Totals totals = {};
  std::vector<std::uint64_t> cycle_counts = {};
  std::map<std::string, double> per_cycle = {};  // kind -> growth per cycle
  std::vector<CycleRow> cycle_rows = {};
  std::optional<Meters> meters = {};  // only for `cycles`
  std::vector<LiveRow> live = {};
  std::optional<Coverage> coverage = {};  // only for a sweep
  std::optional<Sequence> sequence = {};  // for a sweep and a replay
  std::vector<Defect> defects = {};       // of the findings
  std::vector<Finding> findings = {};
  std::vector<Finding> notes = {};  // rules of level Note, and not_exercised trials
  std::string generated = {};       // date, written into the header only: the one field that may differ between equal runs
  std::string tool_version = {};
};

}  // namespace cuaudit::report
