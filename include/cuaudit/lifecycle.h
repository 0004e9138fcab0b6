// SPDX-License-Identifier: MIT
// lifecycle.h: init, work and teardown of something that uses the driver, described in a few lines, and the two questions asked of it: do
// clean cycles leave nothing behind, and does every failing driver call unwind cleanly.
//
//     struct Pool {
//       int planes;
//       CUstream stream = nullptr;
//       CUresult Init(cuaudit::DriverRef driver);      // fails: whatever it made is released again
//       CUresult Work(cuaudit::DriverRef driver);      // optional
//       CUresult Teardown(cuaudit::DriverRef driver);  // optional: the destructor may do it
//     };
//     const auto pool = cuaudit::Lifecycle::Of<Pool>("pool", 3).WithCurrentContext();
//     const cuaudit::Audit audit = cuaudit::Sweep(pool);
//     if (!audit.clean()) std::cout << audit.Text();
//
//   Owns      the steps; state objects are made and destroyed once per cycle.
//   Threads   a value. Sweeps of several threads share nothing; lifecycles may start threads, which must be done when a step returns.
//   Streams   none of its own.
//   Units     bytes; milliseconds where the name says so.
//   Errors    what a step reports is its return value: CUresult, bool (true: done), int (0: done) or StepResult; void reports nothing,
//             and an exception that leaves a step reports a failure without a code. Audit::outcome says what the whole amounts to.
//   Faults    makes no driver calls but those of the steps and, WithCurrentContext, Init, DevicePrimaryCtxRetain, CtxSetCurrent.
//   Source    ours.
//
// A step takes a Cycle&, a DriverRef or nothing. Steps that call cu* functions by name need the drop-in library linked or preloaded
// (CMake: cuaudit::dropin); then every call of a cycle goes where DriverRef goes.
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

namespace cuaudit {

// What a step told its caller.
struct StepResult {
  bool failed = false;
  bool has_code = false;  // `code` is what the caller was given
  CUresult code = CUDA_SUCCESS;
  bool can_report = true;  // false: a step without a return value

  static StepResult Done() { return {}; }
  static StepResult Failed() { return {true, false, CUDA_SUCCESS, true}; }
  static StepResult Of(CUresult code) { return {code != CUDA_SUCCESS, true, code, true}; }
};

// One execution of a lifecycle, as its steps see it.
class Cycle {
 public:
  explicit Cycle(DriverRef driver) : driver_(driver) {}
  DriverRef driver() const { return driver_; }

  // Memory through which this step answers. A step that reports a failure must leave it as it is now, or all zero.
  template <typename T>
  void Output(const char* name, T* output) {
    static_assert(sizeof(T) <= kMostBytes && std::is_trivially_copyable_v<T>);
    if (watched_count_ == kMostOutputs) return;
    Watched& watched = watched_[watched_count_++];
    watched = {name, output, sizeof(T), {}};
    std::memcpy(watched.before, output, sizeof(T));
  }

  // The name of the first output that was written, null for none. For whoever runs the step.
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

// Where the program's own frames end in a call stack: never inlined.
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

  // Steps are given one by one; what they share is the caller's own.
  explicit Lifecycle(std::string name) : name_(std::move(name)) {}

  // A new State(parameters...) or State{parameters...} for each cycle, destroyed at its end. State::Init is needed, Work and Teardown are
  // optional.
  template <typename State, typename... P>
  static Lifecycle Of(std::string name, P... parameters) {
    Lifecycle lifecycle(std::move(name));
    lifecycle.make_ = [parameters...]() -> std::shared_ptr<void> {
      if constexpr (std::is_constructible_v<State, const P&...>) {
        return std::make_shared<State>(parameters...);
      } else {
        return std::shared_ptr<State>(new State{parameters...});
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

  // Before the first cycle of each world, outside the audit: nothing fails there and nothing of it is owed.
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
  // Prepares by making the primary context of device 0 current.
  Lifecycle& WithCurrentContext() {
    with_context_ = true;
    return *this;
  }
  // Teardown is called on what a failed init left. Otherwise a failed init has unwound itself, and neither work nor teardown follows.
  Lifecycle& TeardownAfterFailedInit() {
    teardown_after_failed_init_ = true;
    return *this;
  }
  // A teardown that failed keeps what it could not release, and calling it a second time releases it.
  Lifecycle& RetryTeardown() {
    retry_teardown_ = true;
    return *this;
  }
  // A call that is allowed to fail without being reported: "cuDeviceGetAttribute", or one of them, "cuMemAlloc#2". Checked to be absorbed.
  Lifecycle& Benign(std::string call) {
    benign_.push_back(std::move(call));
    return *this;
  }
  // Steps that return CUresult translate errors into codes of their own.
  Lifecycle& AnyCode() {
    any_code_ = true;
    return *this;
  }

  const std::string& name() const { return name_; }

  // What follows is read by whoever runs the lifecycle.
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
  bool with_context_ = false;
  bool teardown_after_failed_init_ = false;
  bool retry_teardown_ = false;
  bool any_code_ = false;
  std::vector<std::string> benign_;
};

enum class AuditedDriver : std::uint8_t {
  Chosen,  // what CUAUDIT_OPTIONS asks for (driver=real, driver=auto), the simulated one when it asks for none
  Simulated,
  Genuine,
};

// What a sweep leaves out because a fault in an equal state stands for it: same phase, same call stack, same objects alive. Data that is in
// none of these can make equal states differ: what is left out is counted, and a clean audit says so.
enum class Prune : std::uint8_t {
  None,
  Second,  // faults made while unwinding; objects are counted one by one
  All,     // first ones too; none, one, two or many objects of a kind: of a loop the first turns only
};

struct SweepOptions {
  // Of first faults: refuse, refuse+garbage, after, persist, burst:K, sticky; and of the host, with cuaudit::host: host_oom, host_thread.
  std::vector<std::string> hows = {"refuse"};
  bool all_codes = false;               // every documented error of a call, not the likeliest one
  std::vector<std::string> calls = {};  // base entry points that fail first; empty: all
  int depth = 2;                        // faults of one trial: 1, or more by calls made while unwinding from the ones before
  Prune prune = Prune::Second;          // every first fault is tried
  std::size_t limit = 0;                // trials, 0: no limit
  bool isolate = false;                 // a process for each trial, so that a crash is a verdict; simulated driver only
  std::uint32_t deadline_ms = 10000;    // without any driver call after which an isolated trial hangs
  bool may_drift = false;               // a case whose fault-free runs differ is no reason to call nothing proved
  // The host's resources too: what a faulted cycle keeps each time it is run again. Descriptors, threads, loaded libraries, heap bytes;
  // with cuaudit::host (or libcuaudit_host.so preloaded) heap blocks, mutexes and references of libraries by the place that made them.
  bool host = true;
  AuditedDriver driver = AuditedDriver::Chosen;
};

struct CycleOptions {
  std::uint32_t warm_up = 1;  // cycles whose leftovers are taken for process-lifetime caches
  std::uint32_t cycles = 10;  // after those; none may leave more than the one before
  bool host = true;           // the host's resources too, as in SweepOptions; and mapped bytes
  AuditedDriver driver = AuditedDriver::Chosen;
};

enum class AuditOutcome : std::uint8_t {
  Clean,
  Findings,
  NotExercised,  // no fault fired, or no driver call was seen: proves nothing
  Error,         // the case itself does not work: see message
  NotRun,        // CUAUDIT_CASE names another lifecycle: proves nothing; cuaudit/gtest.h skips the test
  NoDevice,      // the genuine driver is asked for and is not here: proves nothing; cuaudit/gtest.h skips the test
};

struct Finding {
  std::string rule;   // "leak", "double_release", "swallowed", ...
  std::string title;  // the rule in one line
  std::string kind;   // of the object: "stream"; empty when it is about none
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::string detail;                                                 // what else there is to say: "init returned CUDA_SUCCESS"
  std::vector<std::string> faults;                                    // their text forms, in order; empty for a fault-free run
  std::string acquired;                                               // entry point that made the object
  std::string where;                                                  // call at which it showed
  std::vector<std::string> acquired_stack, where_stack, fault_stack;  // innermost frame first
  std::string fingerprint;
  std::string replay;        // one shell line
  std::uint64_t trials = 1;  // that showed it
};

struct Audit {
  std::string lifecycle;
  std::string driver;  // "simulated", or "genuine" with version, device and file; empty: none was opened
  AuditOutcome outcome = AuditOutcome::Error;
  std::string message;  // one line, for all but Findings
  std::string drift;    // the first call in which two fault-free runs differ; empty: they are alike
  std::uint64_t calls = 0;
  std::uint64_t trials = 0;
  std::uint64_t fired = 0;
  std::map<std::string, std::uint64_t> verdicts;
  std::map<std::string, std::uint64_t> skipped;  // reason -> checks or trials left out
  std::map<std::string, std::uint64_t> pruned;   // reason -> faults that were not tried, because another one stands for them
  std::vector<std::string> unmetered;            // resources of the host that were not looked at, each with the reason
  std::vector<Finding> findings;
  std::vector<Finding> notes;

  bool clean() const { return outcome == AuditOutcome::Clean; }
  CUAUDIT_PUBLIC std::string Text() const;
};

// Every fallible call fails in turn, each in a world of its own, and a clean cycle follows in the same world. With CUAUDIT_FAULT in the
// environment only that trial runs ("cuMemAlloc#1=OUT_OF_MEMORY,refuse;cuStreamDestroy#1=..."), with CUAUDIT_CASE only that lifecycle.
[[nodiscard]] CUAUDIT_PUBLIC Audit Sweep(const Lifecycle& lifecycle, const SweepOptions& options = {});

// The one trial with these faults, as a finding lists them.
[[nodiscard]] CUAUDIT_PUBLIC Audit Replay(const Lifecycle& lifecycle, const std::vector<std::string>& faults,
                                          const SweepOptions& options = {});

// Clean cycles in one world.
[[nodiscard]] CUAUDIT_PUBLIC Audit RunCycles(const Lifecycle& lifecycle, const CycleOptions& options = {});

// Null when a device answers, otherwise the reason why tests on the genuine driver cannot run.
[[nodiscard]] CUAUDIT_PUBLIC const char* WhyNoDevice() noexcept;

// The driver that AuditedDriver::Chosen means now; nothing is opened for the question.
[[nodiscard]] CUAUDIT_PUBLIC bool GenuineDriverIsChosen() noexcept;

// Null when the chosen driver is here, otherwise the reason why nothing can run on it. A choice that makes no sense is an error of each
// audit instead.
[[nodiscard]] CUAUDIT_PUBLIC const char* WhyNoDriver() noexcept;

// The test that runs now, "Suite.Name", for the replay lines; empty: none.
CUAUDIT_PUBLIC void SetRunningTest(const std::string& name);

}  // namespace cuaudit
