// SPDX-License-Identifier: MIT
// trace.h: literal record lists that read like the program that would have written them, and what the harness said of them.
//
//     Trace t;
//     t.Call(CallId::StreamCreate).Out(0, 0x10);
//     t.Call(CallId::StreamDestroy_v2).In(0, 0x10).Refused(CUDA_ERROR_UNKNOWN);
//     EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 release_refused"));
//
//   Owns      its records. A step stays valid while the trace lives.
//   Units     tickets: every step draws two, unless At() says otherwise.
//   Threads   one: what is noted is one set, for the current test.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/driver/misuse.h"
#include "faults/journal/record.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/rules.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::testing {

inline constexpr std::uint64_t kContext = 0xc0;
inline constexpr std::uint32_t kProcess = 100;
inline constexpr std::uint32_t kThread = 100;

class Step {
 public:
  explicit Step(faults::Record* record) : record_(record) {}

  Step& In(int index, std::uint64_t value);
  Step& Out(int index, std::uint64_t value) { return In(index, value); }
  Step& Fails(CUresult code);                               // by the driver
  Step& Refused(CUresult code = CUDA_ERROR_OUT_OF_MEMORY);  // by the plan: not forwarded
  Step& After(CUresult code = CUDA_ERROR_LAUNCH_FAILED);    // by the plan: forwarded, then an error
  Step& Unfinished();
  Step& Thread(std::uint32_t tid);
  Step& Process(std::uint32_t pid);
  Step& Context(std::uint64_t context);  // fails the test on a call whose context the gate does not record
  Step& Cycle(std::uint32_t cycle);
  Step& In(faults::Phase phase);  // as the program marked it
  Step& Stack(std::uint32_t stack);
  Step& Flags(std::uint16_t flags);
  Step& At(std::uint64_t begin, std::uint64_t end);
  std::uint64_t begin() const { return record_->begin; }
  bool is_driver_call() const { return record_->kind == faults::RecordKind::Call; }

 private:
  faults::Record* record_;
};

class Trace {
 public:
  Step Call(driver::CallId call);
  Step Host(faults::HostCall call, std::uint64_t handle, std::uint64_t second = 0);
  Step Mark(faults::MarkKind mark);
  Step Say(faults::MarkKind mark, std::int32_t value);  // cuaudit_report, cuaudit_output
  Step Event(faults::ProcessEvent event, std::uint32_t pid = kProcess, std::uint32_t parent = 1);
  // Where a thread was when its process died of `signal`; 0: at its deadline. `call`: what it was inside of, 0 for nothing.
  Step Stop(int signal, std::int64_t code, std::uint64_t address = 0, std::uint64_t call = 0);
  // The device addresses that `call` hands to a kernel or a graph node.
  Step Arguments(const Step& call, const std::vector<std::uint64_t>& addresses);

  // What a graph node of `call` was given (ArgumentFlag).
  Step NodeContent(const Step& call, std::uint16_t flag, std::uint64_t first, std::uint64_t second = 0);

  // What a simulated world proves: `origin` is wrong, or queued what is wrong, and collides with what `other` queued (0: nothing).
  Step Misuse(driver::MisuseRule rule, driver::Kind kind, std::uint64_t object, std::uint64_t bytes, std::uint64_t origin,
              std::uint64_t other = 0);

  // The commonest calls in one word each.
  Step Retain(std::uint64_t context = kContext, std::uint64_t device = 0);
  Step ReleasePrimary(std::uint64_t device = 0);
  Step CreateStream(std::uint64_t stream);
  Step DestroyStream(std::uint64_t stream);
  Step Alloc(std::uint64_t address, std::uint64_t bytes = 0x1000);
  Step Free(std::uint64_t address);
  Step Push(std::uint64_t context);
  Step Pop(std::uint64_t context);

  // The newest record, and another handle in it.
  Step Last();
  void RenameLast(std::uint64_t from, std::uint64_t to);

  std::vector<faults::Record> Records() const { return {records_.begin(), records_.end()}; }
  harness::Ledger Fold() const;

 private:
  faults::Record& Next(faults::RecordKind kind, std::uint16_t call);

  std::deque<faults::Record> records_;
  std::uint64_t clock_ = 0;
};

// What is not released, by kind: "stream 2", "event 1 orphaned", "array 1 relied_on_context", sorted by kind. Graph nodes are left out,
// they die with their graph.
std::vector<std::string> Left(const harness::Ledger& ledger);
// "double_release stream", in order.
std::vector<std::string> Wrong(const harness::Ledger& ledger);

// What the harness found while a test ran: the evidence for the kill matrix (scripts/gen_kill_matrix.py). Left, Wrong, Judge and the
// helpers of suites/planted note their results. Ledgers and snapshots that a test reads itself are not noted.

using Sightings = std::set<std::pair<std::string, std::string>>;  // rule and kind ("none" for rules that are about no resource)

inline Sightings& Seen() {
  static Sightings seen;
  return seen;
}

// Number of defects of each result that the current row was given, where there was one.
inline std::vector<std::size_t>& SeenDefects() {
  static std::vector<std::size_t> seen;
  return seen;
}

inline void SawDefects(std::size_t count) {
  if (count != 0) SeenDefects().push_back(count);
}

inline void Saw(std::string_view rule, std::string_view kind) { Seen().emplace(rule, kind); }

// Traces of programs that mark their cycles and report how each went.

class MarkedCycles {
 public:
  // A cycle that allocates, frees and reports. The allocation is made at stack 1.
  MarkedCycles& Good() {
    Begin();
    const std::uint64_t address = Address();
    trace.Alloc(address).Stack(1).Cycle(cycle_);
    trace.Free(address).Stack(2).Cycle(cycle_);
    return End(0);
  }
  // The allocation is refused; the cycle says `code`, and whether its output is written.
  MarkedCycles& Failed(std::int32_t code, bool written = false) {
    Begin();
    trace.Alloc(Address()).Refused().Stack(1).Cycle(cycle_);
    if (written) trace.Say(faults::MarkKind::Output, 1).Cycle(cycle_);
    return End(code);
  }
  MarkedCycles& Begin() {
    ++cycle_;
    trace.Mark(faults::MarkKind::CycleBegin).Cycle(cycle_);
    return *this;
  }
  MarkedCycles& End(std::int32_t code) {
    trace.Say(faults::MarkKind::Report, code).Cycle(cycle_);
    trace.Mark(faults::MarkKind::CycleEnd).Cycle(cycle_);
    return *this;
  }
  std::uint32_t cycle() const { return cycle_; }
  std::uint64_t Address() const { return 0x1000U * (cycle_ + 1); }

  Trace trace;

 private:
  std::uint32_t cycle_ = 0;
};

// Into how many defects the findings of one trial without symbols are grouped (harness/defect).

// What is wrong at one place.
struct WrongThing {
  harness::Rule rule{};
  driver::Kind kind{};
  std::uint64_t place = 0;  // where it was lost or shown
  std::uint64_t other = 0;  // the call that it collides with
};

[[nodiscard]] std::size_t CountDefects(const std::vector<WrongThing>& things);
[[nodiscard]] std::size_t CountDefects(const std::vector<harness::TrialFinding>& findings);
// Of what is left, or of what was done wrong.
[[nodiscard]] std::size_t CountLosses(const harness::Ledger& ledger);
[[nodiscard]] std::size_t CountViolations(const harness::Ledger& ledger);

}  // namespace cuaudit::testing
