// SPDX-License-Identifier: MIT
// lifecycle.h: describes init, work and teardown of something that uses the driver, and asks two questions about it: do clean cycles
// leave nothing behind, and does every failing driver call unwind cleanly.
//
//     struct Pool {
//       int planes;
//       CUstream stream = nullptr;
//       CUresult Init(cuaudit::DriverRef driver);      // a failed Init releases what it made
//       CUresult Work(cuaudit::DriverRef driver);      // optional
//       CUresult Teardown(cuaudit::DriverRef driver);  // optional: the destructor may do it
//     };
//     const auto pool = cuaudit::Lifecycle::Of<Pool>("pool", 3).WithCurrentContext();
//     const cuaudit::Audit audit = cuaudit::Sweep(pool);
//     if (!audit.clean()) std::cout << audit.Text();
//
// A step takes a Cycle&, a DriverRef or nothing. Steps that call cu* functions by name need the drop-in library linked or preloaded
// (CMake: cuaudit::dropin); then every driver call of a cycle is audited like a call through DriverRef.
// A step reports by its return value: CUresult, bool (true: success), int (0: success) or StepResult. A step that returns void reports
// nothing. An exception that leaves a step reports a failure without a code. Audit::outcome is the result of the whole audit.
// A state object is made and destroyed once per cycle. Different threads may sweep at the same time. A lifecycle may start threads,
// which must be done when the step returns. cuaudit makes no driver calls besides those of the steps and, with WithCurrentContext,
// cuInit, cuDevicePrimaryCtxRetain and cuCtxSetCurrent. Sizes are in bytes; times are in milliseconds where the name says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuaudit/driver.h"

#define CUAUDIT_PUBLIC __attribute__((visibility("default")))

namespace cuaudit::report {
struct Run;
}

namespace cuaudit {

// What a step reported to its caller.
struct StepResult {
  bool failed = false;
  bool has_code = false;  // true: the caller was given `code`
  CUresult code = CUDA_SUCCESS;
  bool can_report = true;  // false: the step has no return value

  static StepResult Done() { return {}; }
  static StepResult Failed() { return {true, false, CUDA_SUCCESS, true}; }
  static StepResult Of(CUresult code) { return {code != CUDA_SUCCESS, true, code, true}; }
};

// One execution of a lifecycle, as its steps see it.
class Cycle {
 public:
  explicit Cycle(DriverRef driver) : driver_(driver) {}
  DriverRef driver() const { return driver_; }

  // Declares memory through which this step returns a result. A step that reports a failure must leave it as it is now, or all zero.
  template <typename T>
  void Output(const char* name, T* output) {
    static_assert(sizeof(T) <= kMostBytes && std::is_trivially_copyable_v<T>);
    if (watched_count_ == kMostOutputs) return;
    Watched& watched = watched_[watched_count_++];
    watched = {name, output, sizeof(T), {}};
    std::memcpy(watched.before, output, sizeof(T));
  }

  // Name of the first declared output that was written, or null. Used by the code that runs the steps.
  const char* WrittenOutput() const {
    for (std::size_t i = 0; i < watched_count_; ++i) {
      const Watched& watched = watched_[i];
      static constexpr unsigned char kZero[kMostBytes] = {};
      if (std::memcmp(watched.output, watched.before, watched.bytes) != 0 && std::memcmp(watched.output, kZero, watched.bytes) != 0)
        return watched.name;
    }
    return nullptr;
  }
  void ForgetOutputs() { watched_count_ = 0; }

 private:
  static constexpr std::size_t kMostOutputs = 8;
  static constexpr std::size_t kMostBytes = 64;
  struct Watched {
    const char* name;
    const void* output;
    std::size_t bytes;
    unsigned char before[kMostBytes];
  };
  DriverRef driver_;
  std::size_t watched_count_ = 0;
  Watched watched_[kMostOutputs] = {};
};

namespace detail {

inline StepResult ToStepResult(StepResult result) { return result; }
inline StepResult ToStepResult(CUresult code) { return StepResult::Of(code); }
inline StepResult ToStepResult(bool done) { return done ? StepResult::Done() : StepResult::Failed(); }
inline StepResult ToStepResult(int status) { return status == 0 ? StepResult::Done() : StepResult::Failed(); }

// Never inlined, because the frame of this function marks where the program's own frames end in a call stack.
template <typename F>
[[gnu::noinline]] StepResult Call(F& step, Cycle& cycle) {
  const auto call = [&]() -> decltype(auto) {
    if constexpr (std::is_invocable_v<F&, Cycle&>) {
      return step(cycle);
    } else if constexpr (std::is_invocable_v<F&, DriverRef>) {
      return step(cycle.driver());
    } else {
      static_assert(std::is_invocable_v<F&>, "a step takes a cuaudit::Cycle&, a cuaudit::DriverRef or nothing");
      return step();
    }
  };
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    return {false, false, CUDA_SUCCESS, false};
  } else {
    return ToStepResult(call());
  }
}

// Calls a member function of a state as a step.
template <typename State, typename Method>
StepResult CallMember(State& state, Method method, Cycle& cycle) {
  if constexpr (std::is_invocable_v<Method, State&, Cycle&>) {
    const auto step = [&](Cycle& c) { return (state.*method)(c); };
    return Call(step, cycle);
  } else if constexpr (std::is_invocable_v<Method, State&, DriverRef>) {
    const auto step = [&](DriverRef d) { return (state.*method)(d); };
    return Call(step, cycle);
  } else {
    const auto step = [&] { return (state.*method)(); };
    return Call(step, cycle);
  }
}

// A state made as State{parameters...}, in one block with its reference count, as std::make_shared makes one with a constructor.
template <typename State>
struct Braced {
  template <typename... P>
  explicit Braced(const P&... parameters) : state{parameters...} {}
  State state;
};

template <typename State>
concept HasWork = requires {
  &State::Work;
};
template <typename State>
concept HasTeardown = requires {
  &State::Teardown;
};

}  // namespace detail

class Lifecycle {
 public:
  using Step = std::function<StepResult(void* state, Cycle& cycle)>;

  // Add the steps with Prepare, Init, Work and Teardown. The caller owns what the steps share.
  explicit Lifecycle(std::string name) : name_(std::move(name)) {}

  // Makes a new State(parameters...) or State{parameters...} for each cycle and destroys it at the end of the cycle. State::Init is
  // required, Work and Teardown are optional.
  template <typename State, typename... P>
  static Lifecycle Of(std::string name, P... parameters) {
    Lifecycle lifecycle(std::move(name));
    lifecycle.make_ = [parameters...]() -> std::shared_ptr<void> {
      if constexpr (std::is_constructible_v<State, const P&...>) {
        return std::make_shared<State>(parameters...);
      } else {
        // Compilers differ in which aggregates have State(parameters...). The number of host allocations must not.
        const auto made = std::make_shared<detail::Braced<State>>(parameters...);
        return std::shared_ptr<State>(made, &made->state);
      }
    };
    lifecycle.init_ = [](void* state, Cycle& cycle) { return detail::CallMember(*static_cast<State*>(state), &State::Init, cycle); };
    if constexpr (detail::HasWork<State>) {
      lifecycle.work_ = [](void* state, Cycle& cycle) { return detail::CallMember(*static_cast<State*>(state), &State::Work, cycle); };
    }
    if constexpr (detail::HasTeardown<State>) {
      lifecycle.teardown_ = [](void* state, Cycle& cycle) {
        return detail::CallMember(*static_cast<State*>(state), &State::Teardown, cycle);
      };
    }
    return lifecycle;
  }

  // Runs before the first cycle of each world. The audit ignores it: no call in it is made to fail, and what it acquires is no leak.
  template <typename F>
  Lifecycle& Prepare(F step) {
    prepare_ = Erase(std::move(step));
    return *this;
  }
  template <typename F>
  Lifecycle& Init(F step) {
    init_ = Erase(std::move(step));
    return *this;
  }
  template <typename F>
  Lifecycle& Work(F step) {
    work_ = Erase(std::move(step));
    return *this;
  }
  template <typename F>
  Lifecycle& Teardown(F step) {
    teardown_ = Erase(std::move(step));
    return *this;
  }
  // Makes the primary context of device 0 current before the first cycle.
  Lifecycle& WithCurrentContext() {
    with_context_ = true;
    return *this;
  }
  // Calls Teardown also after a failed Init. Without this option a failed Init must clean up after itself, and nothing follows.
  Lifecycle& TeardownAfterFailedInit() {
    teardown_after_failed_init_ = true;
    return *this;
  }
  // Calls Teardown a second time after it failed. For a Teardown that keeps what it could not release.
  Lifecycle& RetryTeardown() {
    retry_teardown_ = true;
    return *this;
  }
  // Names a call that may fail without being reported: every "cuDeviceGetAttribute", one call, "cuMemAlloc#2", or the calls below a
  // function, "cuMemAlloc@make_pool". The audit checks that the failure is absorbed, and that some fault hits the call.
  Lifecycle& Benign(std::string call) {
    benign_.push_back(std::move(call));
    return *this;
  }
  // Says that steps which return CUresult translate errors into codes of their own.
  Lifecycle& AnyCode() {
    any_code_ = true;
    return *this;
  }

  const std::string& name() const { return name_; }

  // The rest is read by the code that runs the lifecycle.
  std::shared_ptr<void> MakeState() const { return make_ ? make_() : nullptr; }
  const Step& prepare() const { return prepare_; }
  const Step& init() const { return init_; }
  const Step& work() const { return work_; }
  const Step& teardown() const { return teardown_; }
  bool with_context() const { return with_context_; }
  bool teardown_after_failed_init() const { return teardown_after_failed_init_; }
  bool retry_teardown() const { return retry_teardown_; }
  bool any_code() const { return any_code_; }
  const std::vector<std::string>& benign() const { return benign_; }

 private:
  template <typename F>
  static Step Erase(F step) {
    return [step](void*, Cycle& cycle) mutable { return detail::Call(step, cycle); };
  }

  std::string name_;
  std::function<std::shared_ptr<void>()> make_;
  Step prepare_, init_, work_, teardown_;
  bool with_context_ = false, teardown_after_failed_init_ = false, retry_teardown_ = false, any_code_ = false;
  std::vector<std::string> benign_;
};

enum class AuditedDriver : std::uint8_t {
  Chosen,  // the driver that CUAUDIT_OPTIONS asks for (driver=real, driver=auto); the simulated one when it names none
  Simulated,
  Genuine,
};

// Faults that a sweep skips because it tries another fault in an equal state: same phase, same call stack, same objects alive. Such
// states can still differ in other data, so the skipped faults are counted and a clean audit mentions them.
enum class Prune : std::uint8_t {
  None,
  Second,  // skip second faults; states are equal when their numbers of live objects are
  All,     // skip first faults too; live objects count as none, one, two or many, so only the first turns of a loop are tried
};

struct SweepOptions {
  // How a first fault fails: refuse, refuse+garbage, after, persist, burst:K, sticky; with cuaudit::host also host_oom and host_thread.
  std::vector<std::string> hows = {"refuse"};
  bool all_codes = false;               // try every documented error of a call, not only the likeliest one
  std::vector<std::string> calls = {};  // base entry points that are made to fail; empty: all
  int depth = 2;                        // most faults in one trial; from the second on they hit calls made while unwinding
  Prune prune = Prune::Second;          // the default tries every first fault
  std::size_t limit = 0;                // most trials; 0: no limit
  bool isolate = false;                 // run each trial in a process, so that a crash is a verdict; simulated driver only
  std::uint32_t deadline_ms = 10000;    // an isolated trial that makes no driver call for so long counts as a hang
  bool may_drift = false;               // judge a case whose fault-free runs differ, instead of calling it not exercised
  // Audit host resources too: what a faulted cycle leaves each time it is run again. These are descriptors, threads, loaded libraries
  // and heap bytes; with cuaudit::host linked (or libcuaudit_host.so preloaded) also heap blocks, mutexes and library references, each
  // with the place that made it.
  bool host = true;
  AuditedDriver driver = AuditedDriver::Chosen;
  bool shrink = true;                  // look for the fewest faults that show a finding of several
  std::string coverage_at_least = {};  // percent; a sweep that reaches fewer ways to fail is not exercised
  std::string work_dir = {};           // finished trials are kept in a folder of it, and the next sweep of this lifecycle goes on from them
  std::vector<std::string> formats = {};  // reports to write: "json=audit.json", "junit=...", "text=..."; {case}: the lifecycle's name
};

struct CycleOptions {
  std::uint32_t warm_up = 1;  // first cycles, whose leftovers count as process-lifetime caches
  std::uint32_t cycles = 10;  // cycles after the warm-up; none may leave more than the one before
  bool host = true;           // audit host resources too, as in SweepOptions, and mapped bytes
  AuditedDriver driver = AuditedDriver::Chosen;
  std::uint32_t most_cycles = 0;  // while something grows, the cycles double up to this number; 0: eight times `cycles`
};

enum class AuditOutcome : std::uint8_t {
  Clean,
  Findings,
  NotExercised,  // no fault fired, no driver call was seen, or what grew may be a cache that fills; proves nothing
  Error,         // the case itself does not work; see Audit::message
  NotRun,        // CUAUDIT_CASE names another lifecycle; proves nothing, and cuaudit/gtest.h skips the test
  NoDevice,      // the genuine driver was asked for and is not available; proves nothing, and cuaudit/gtest.h skips the test
};

struct Finding {
  std::string rule;   // "leak", "double_release", "swallowed", ...
  std::string title;  // the rule in one line
  std::string kind;   // kind of the object, such as "stream"; empty when the finding is about no object
  std::uint64_t count = 0, bytes = 0;
  std::string detail;                                                 // more about the finding: "init returned CUDA_SUCCESS"
  std::vector<std::string> faults;                                    // text forms, in firing order; empty for a fault-free run
  std::string acquired;                                               // entry point that made the object
  std::string where;                                                  // call at which the finding showed
  std::vector<std::string> acquired_stack, where_stack, fault_stack;  // innermost frame first
  std::string fingerprint;
  std::string replay;        // shell command that reproduces the finding
  std::uint64_t trials = 1;  // number of trials that showed the finding
};

// Findings with one cause.
struct Defect {
  std::string rules;                        // "leak", or several, with a comma between them
  std::string amount;                       // what is lost: "1 context, 2 stream (64 bytes)"; may be empty
  std::string blame;                        // "Decoder::Open returned without cuStreamDestroy"; empty when no function is known
  std::string released;                     // the release that a fault-free cycle makes; empty when it makes none
  std::vector<std::string> released_stack;  // and where, innermost frame first
  std::vector<std::size_t> findings;        // indices in Audit::findings; the first one shows the defect with the fewest faults
  std::uint64_t trials = 0;                 // trials that show it; 0: it shows without a fault
  std::string fingerprint;                  // the same when the program is built again
};

struct Audit {
  std::string lifecycle;
  std::string driver;  // "simulated", or "genuine" with version, device and file; empty: no driver was opened
  AuditOutcome outcome = AuditOutcome::Error;
  std::string message;  // one line, for all outcomes but Findings
  std::string drift;    // first call in which two fault-free runs differ; empty: they are equal
  std::uint64_t calls = 0, trials = 0, fired = 0;
  std::map<std::string, std::uint64_t> verdicts;
  std::map<std::string, std::uint64_t> skipped;  // reason -> number of checks or trials left out
  std::map<std::string, std::uint64_t> pruned;   // reason -> number of faults not tried because an equal one was
  std::uint64_t reachable = 0;                   // ways to fail (call, call stack, error, way) that the lifecycle comes to
  std::uint64_t reached = 0;                     // those of them that a fault reached
  std::vector<std::string> unmetered;            // host resources that were not audited, each with the reason
  std::vector<Defect> defects;
  std::vector<Finding> findings, notes;
  std::shared_ptr<const report::Run> run;  // what Text() is made of; null when nothing was run

  bool clean() const { return outcome == AuditOutcome::Clean; }
  // Removes the findings for which `tolerated` answers true, and the defects that consist of nothing else.
  CUAUDIT_PUBLIC void Tolerate(const std::function<bool(const Finding&)>& tolerated);
  // What `cuaudit sweep` prints of its defects, below a line with the outcome.
  CUAUDIT_PUBLIC std::string Text() const;
};

// Makes every fallible call fail in turn, each in a world of its own, and runs a clean cycle in the same world afterwards.
// The environment variable CUAUDIT_FAULT restricts the sweep to one trial ("cuMemAlloc#1=OUT_OF_MEMORY,refuse;cuStreamDestroy#1=..."),
// CUAUDIT_CASE to one lifecycle. CUAUDIT_SWEEP has options as `cuaudit sweep` takes them. They override the options given in the code, for
// Sweep and Replay: CUAUDIT_SWEEP='--depth 1 --codes all --format json={case}.json' ./test
[[nodiscard]] CUAUDIT_PUBLIC Audit Sweep(const Lifecycle& lifecycle, const SweepOptions& options = {});

// Runs one trial with these faults, written as in Finding::faults.
[[nodiscard]] CUAUDIT_PUBLIC Audit Replay(const Lifecycle& lifecycle, const std::vector<std::string>& faults,
                                          const SweepOptions& options = {});

// Runs fault-free cycles in one world.
[[nodiscard]] CUAUDIT_PUBLIC Audit RunCycles(const Lifecycle& lifecycle, const CycleOptions& options = {});

// Returns null when a device is available, otherwise the reason why tests on the genuine driver cannot run.
[[nodiscard]] CUAUDIT_PUBLIC const char* WhyNoDevice() noexcept;

// True when AuditedDriver::Chosen means the genuine driver. Opens nothing.
[[nodiscard]] CUAUDIT_PUBLIC bool GenuineDriverIsChosen() noexcept;

// Returns null when the chosen driver is available, otherwise the reason why nothing can run on it. An invalid choice is not reported
// here but as an error of each audit.
[[nodiscard]] CUAUDIT_PUBLIC const char* WhyNoDriver() noexcept;

// Sets the running test, "Suite.Name", for Finding::replay; empty: no test runs.
CUAUDIT_PUBLIC void SetRunningTest(const std::string& name);

}  // namespace cuaudit
