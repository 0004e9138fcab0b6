// SPDX-License-Identifier: MIT
// run.h: the document model of a report: what one command of cuaudit found, as plain values.
//
//   Owns      its strings. Knows nothing of CUDA, of the harness or of how findings are made.
//   Threads   a value; no shared state.
//   Units     bytes where the name says so.
//   Errors    none here; writers report failures of the file system.
//   Faults    makes no driver calls.
//   Source    ours; JSON form in reports/schema/report.schema.json.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cuaudit::report {

// What became of the kernels that ran on the simulated driver.
struct Kernels {
  std::uint64_t hosted = 0;      // a host function stood in
  std::uint64_t idle = 0;        // nothing did: they read and wrote nothing
  std::uint64_t mismatched = 0;  // of the idle ones, those whose host function expects other parameters
};

struct Driver {
  std::string kind;                     // "sim" or "real"
  std::string version;                  // "13.0"
  std::string path;                     // of the genuine libcuda; empty for sim
  std::string device;                   // device name as the driver gave it
  std::string runtime = {};             // the CUDA runtime when it was cuaudit's own: "cuaudit's own, 13.0"; otherwise empty
  std::string world = {};               // what the simulated driver was asked for: "schedule=lazy;devices=1;..."; empty for real
  std::optional<Kernels> kernels = {};  // of the run that nothing was made to fail in; none ran, or the driver was real: absent
};

// Which host resources were looked at, by kind, and why others were not.
struct Host {
  std::vector<std::string> probes;
  std::map<std::string, std::string> left_out;
};

struct Frame {
  std::string module;    // file name of the object, without directory
  std::string function;  // demangled; empty when unknown
  std::string file;      // source file, empty when unknown
  int line = 0;
  std::uint64_t offset = 0;  // in the module
};

struct Fault {
  std::string call;
  std::uint32_t occurrence = 0;
  std::string how;
  std::string code;
  std::string text;  // the round-tripping text form
  std::vector<Frame> stack;
};

struct Acquired {
  std::string call;
  std::vector<Frame> stack;
};

struct Finding {
  std::string rule;
  std::string title;
  std::string kind;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::string verdict;  // what the trial amounts to, see Totals::verdicts
  std::optional<Fault> fault;
  std::vector<Fault> then = {};               // the faults after it, in the order in which they fire
  std::vector<std::string> shrunk_from = {};  // the faults of the trial that first showed it, where fewer or shorter ones do
  std::string detail = {};                    // what the title does not say; may be empty
  Acquired acquired;                          // for violations: the object's origin, empty when unknown
  std::string where;                          // for violations, crashes and hangs: the call at which it showed
  std::vector<Frame> where_stack;
  Acquired other;  // for proved misuse: the call whose operation the one at `where` collides with; empty for all other rules
  std::string fingerprint;
  std::string reproduce;     // one command line
  std::uint64_t trials = 1;  // how many trials showed the same fingerprint; of host_left, after how many faults
};

struct Totals {
  std::uint64_t calls = 0;  // driver calls of the fault-free run
  std::uint64_t sites = 0;  // distinct (call, stack) pairs among them
  std::uint64_t trials = 0;
  std::uint64_t fired = 0;  // trials whose fault hit
  std::map<std::string, std::uint64_t> verdicts;
  std::map<std::string, std::uint64_t> skipped;      // reason -> how many calls or checks were left out
  std::map<std::string, std::uint64_t> pruned = {};  // reason -> how many faults another one stood for
  std::uint64_t recovered = 0;                       // trials after whose faulted cycle a clean one was looked at
  std::uint64_t shrinking = 0;                       // runs beside the trials, to find the fewest faults that show a finding
  std::uint64_t forced = 0;                          // how often work that nobody waited for had to be run on the program's behalf
  // What the trials ran in: "fork", "spawn", "cycle"; of those that could not run as they were to: "spawn: reason".
  std::map<std::string, std::uint64_t> isolation = {};
};

// A way to fail that no trial reached.
struct NotReached {
  std::string call;
  std::string code;
  std::string how;
  std::string phase;
  bool unwinding = false;  // on the way back from another fault
  std::string why;
  std::vector<Frame> stack;
};

// Places, phases, errors and ways: how many of those that the program can reach were reached.
struct Coverage {
  std::uint64_t reachable = 0;
  std::uint64_t reached = 0;
  std::uint64_t codes_tried = 0;       // pairs of call and error
  std::uint64_t codes_documented = 0;  // for the same calls
  std::vector<NotReached> not_reached;
  std::uint64_t pruned = 0;  // faults, not ways: not tried, because one in an equal state was to be
};

// In tenths of a percent, rounded down: 1000 only when all were reached.
inline std::uint64_t PerMille(const Coverage& coverage) {
  return coverage.reachable == 0 ? 0 : coverage.reached * 1000 / coverage.reachable;
}

// One row of the `cycles` table: live objects at exit, by kind and acquire site.
struct CycleRow {
  std::string kind;
  Acquired acquired;
  std::vector<std::uint64_t> live;  // one per entry of Run::cycle_counts
  double per_cycle = 0;             // growth per cycle between the first and the last count
  std::uint64_t bytes_per_cycle = 0;
};

// What a noisy meter said over the cycles, beside the same cycles of a lifecycle that does nothing.
struct Meter {
  std::string name;
  std::uint64_t cycles = 0;  // that were judged
  bool grows = false;
  double per_cycle = 0;          // bytes
  std::uint64_t detectable = 0;  // bytes: a leak of so much per cycle would have been seen
  std::uint64_t noise = 0;       // bytes
  std::uint64_t drift = 0;       // bytes that a block of the control arm gains
  // How often the rule fired on the control arm alone, in windows that do not overlap.
  std::uint64_t control_cycles = 0;
  std::uint64_t false_alarms = 0;
  std::uint64_t windows = 0;
};

struct Meters {
  std::uint64_t warm_up = 0;  // cycles not judged
  std::uint64_t asked = 0;    // bytes per cycle that were to be detected; 0: nothing was asked
  bool of_runs = false;       // judged at the ends of processes, not at the ends of cycles
  std::vector<Meter> rows;
  std::map<std::string, std::string> absent;  // meter, or "all" -> why it says nothing
};

// One row of the live-object table of `run`.
struct LiveRow {
  std::string kind;
  std::uint64_t acquired = 0;
  std::uint64_t released = 0;
  std::uint64_t live = 0;
  std::uint64_t bytes = 0;
  std::uint64_t orphaned = 0;  // never released, died with their context
};

struct Run {
  std::string mode;     // "sweep", "cycles", "run"
  std::string outcome;  // "clean", "findings", "not_exercised", "error"
  std::string message;  // one line for not_exercised and error; for clean what it does not say
  std::vector<std::string> command;
  Driver driver;
  std::string scope;  // "pinned" or "process"
  Host host;
  Totals totals;
  std::vector<std::uint64_t> cycle_counts;
  std::map<std::string, double> per_cycle;  // growth per cycle and kind
  std::vector<CycleRow> cycle_rows;
  std::optional<Meters> meters;  // of `cycles`
  std::vector<LiveRow> live;
  std::optional<Coverage> coverage;  // of a sweep
  std::vector<Finding> findings;
  std::vector<Finding> notes;  // rules of level Note, and not_exercised trials
  std::string generated;       // header only: the one field that may differ between equal runs
  std::string tool_version;
};

}  // namespace cuaudit::report
