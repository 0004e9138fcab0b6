// SPDX-License-Identifier: MIT
// trial_world.h: where trials take place: for each a new simulated world (or the one genuine driver), a gate in front of it, and one
// journal that is emptied in between.
//
//   Owns      journal, call stacks and gate; during a trial its world. Of a genuine driver one reference of the primary context, taken
//             by the first trial and kept for the process, so that no trial destroys what another one's objects live in.
//   Threads   one thread at a time; the steps of a lifecycle may use more.
//   Units     records.
//   Errors    Open answers a Status; a world that the system refuses leaves TrialTrace::opened false.
//   Faults    Init, DevicePrimaryCtxRetain and CtxSetCurrent for lifecycles WithCurrentContext, recorded and never failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "faults/journal/journal_view.h"
#include "faults/plan/plan.h"
#include "harness/lifecycle/trial_trace.h"
#include "harness/probes/host_meters.h"
#include "harness/sweep/status.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

class HostRecords;

// For which calls the program's stack is taken; it costs several times the call.
enum class Stacks : std::uint8_t {
  None,
  FaultedCycle,  // and what prepares it
  All,
};

// Which meters of the host are read around which cycles.
struct Metering {
  HostMeterSet first = {};  // the faulted one
  HostMeterSet others = {};
  std::vector<HostChange>* all = nullptr;  // one of each cycle; its memory is reserved beforehand
  HostRecords* records = nullptr;          // where the host drop-in is here; what it saw of earlier runs is gone
  bool stacks = false;                     // of what it sees
  std::vector<HostSpan>* spans = nullptr;  // as `all`
  bool count_turns = false;                // of what the program's own modules ask of the host, which the plan may refuse
};

class TrialWorld {
 public:
  // Where it goes when it is no longer needed: kept for the next sweep of the process.
  struct Return {
    void operator()(TrialWorld* world) const noexcept;
  };
  using Pointer = std::unique_ptr<TrialWorld, Return>;

  // `shared`: children forked later write into the same journal.
  static Result<Pointer> Open(AuditedDriver driver, bool shared);
  virtual ~TrialWorld() = default;

  // Runs the lifecycle `cycles` times in one world, the first time under `plan`; only the first kMostCycles leave a CycleTrace. What was
  // recorded before is gone.
  virtual void Run(const Lifecycle& lifecycle, const faults::Plan& plan, Stacks stacks, std::size_t cycles, const Metering& metering,
                   TrialTrace* trace) = 0;
  virtual void Forget() = 0;  // what was recorded
  // Which driver it is, in words: "simulated"; "genuine, CUDA 13.0, NVIDIA H200, /usr/lib/libcuda.so.1".
  virtual const std::string& driver() const = 0;
  virtual faults::JournalView Journal() const = 0;
};

}  // namespace cuaudit::harness
