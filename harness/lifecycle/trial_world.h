// SPDX-License-Identifier: MIT
// trial_world.h: the world of each trial, and how what a trial left is given back before the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "faults/driver/driver_ref.h"
#include "faults/journal/journal_view.h"
#include "faults/plan/plan.h"
#include "harness/ledger/ledger.h"
#include "harness/lifecycle/trial_evidence.h"
#include "harness/probes/host_meters.h"
#include "harness/process/status.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// Releases what a trial left on the one genuine driver of the process, so that the next trial starts without it, as in a new
// simulated world: the newest object first, with `context` as the current context. Answers how many objects cannot be released, and stay
// until the process ends.
//
//   Threads   one thread, while no other thread calls the driver.
//   Faults    makes the release calls on `driver` itself: they are not recorded and never fail by plan.
std::uint32_t GiveBack(driver::DriverRef driver, CUcontext context, const Ledger& ledger);

// Pops every context of this thread's stack.
void EmptyContextStack(driver::DriverRef driver);

// Sets this thread's capture mode to the default. A mode that a trial left decides which calls the next trial may make.
void PutBackCaptureMode(driver::DriverRef driver);

// The place where trials run: for each trial a new simulated world (or the one genuine driver), a gate in front of it, and a
// journal that is emptied in between.
//
//   Owns      journal, call stacks and gate, and during a trial its world. On a genuine driver one reference to the primary context, which
//             the first trial takes and the process keeps, so that no trial destroys the context of another trial's objects.
//   Threads   one thread at a time; the steps of a lifecycle may use more.
//   Units     records.
//   Errors    Open answers a Status. When the system refuses a world, TrialTrace::opened stays false.
//   Faults    Init, DevicePrimaryCtxRetain and CtxSetCurrent for lifecycles WithCurrentContext, recorded and never failed.

class HostRecords;

// Calls for which the program's stack is taken. A stack costs several times the call.
enum class Stacks : std::uint8_t {
  None,
  FaultedCycle,  // and its preparation
  All,
};

// Host meters that are read around the cycles.
struct Metering {
  HostMeterSet first = {};  // the faulted cycle
  HostMeterSet others = {};
  std::vector<HostChange>* all = nullptr;  // one per cycle; memory is reserved beforehand
  HostRecords* records = nullptr;          // the host drop-in, if present
  bool stacks = false;                     // take stacks of host resources, and keep its earlier records, which are dropped otherwise
  std::vector<HostSpan>* spans = nullptr;  // one per cycle, like `all`
  bool count_turns = false;                // count refusable host requests of the program's modules
};

class TrialWorld {
 public:
  // Keeps the world for the next sweep of the process instead of deleting it.
  struct Return {
    void operator()(TrialWorld* world) const noexcept;
  };
  using Pointer = std::unique_ptr<TrialWorld, Return>;

  // With `shared` children that are forked later write to the same journal.
  static Result<Pointer> Open(AuditedDriver driver, bool shared);
  virtual ~TrialWorld() = default;

  // Runs the lifecycle `cycles` times in one world, the first time under `plan`. Only the first kMostCycles leave a CycleTrace. Earlier
  // records are dropped.
  virtual void Run(const Lifecycle& lifecycle, const faults::Plan& plan, Stacks stacks, std::size_t cycles, const Metering& metering,
                   TrialTrace* trace) = 0;
  virtual void Forget() = 0;  // drops all records
  // Called in a forked child: writes where it dies, or where its threads are when it is asked (faults/shim/stop_watch.h).
  virtual void WatchStops() = 0;
  // The driver in words: "simulated"; "genuine, CUDA 13.0, NVIDIA H200, /usr/lib/libcuda.so.1".
  virtual const std::string& driver() const = 0;
  virtual faults::JournalView Journal() const = 0;
};

}  // namespace cuaudit::harness
