// SPDX-License-Identifier: MIT
// gate.h: ask the plan, pass on or refuse, write one record.
//
//   Owns      its pinned references of primary contexts (scope pinned), given back never: they end with the process or the world.
//             Borrows the driver below and the journal; both must outlive it.
//   Threads   safe: the plan is constant after Arm, counters live in the journal's header, records are reserved one by one.
//   Streams   none of its own.
//   Errors    the driver's result, or the plan's. A full journal never changes a result.
//   Faults    forwards every call. For itself it calls, past the plan: CtxGetCurrent (what was current when the call came),
//             FuncGetParamInfo and KernelGetParamInfo (which kernel arguments can be addresses), StreamIsCapturing and
//             StreamGetCaptureInfo (while a capture is open: whether a launch, a copy or a fill becomes a node, and which), DeviceGet and
//             DeviceGetName (once, for the journal's header), DevicePrimaryCtxRetain (the pin); and where a fault loses a context,
//             DeviceGetCount, DevicePrimaryCtxGetState, DevicePrimaryCtxRetain and DevicePrimaryCtxRelease (whose primary context it is).
//   Source    ours; `how` words as in fault.h.
//
// A Gate is a DriverRef implementation like any other (Driver(&gate)), so gates stack. The drop-in uses Run<id> directly.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "gate.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "faults/driver/call_shape.h"
#include "faults/driver/driver_ref.h"
#include "faults/driver/misuse.h"
#include "faults/journal/journal.h"
#include "faults/journal/stack_table.h"
#include "faults/plan/plan.h"
#include "faults/shim/gone_handles.h"
#include "faults/shim/lost_contexts.h"
#include "faults/shim/scope.h"

namespace cuaudit::faults {

// One call on its way through the gate. `value` holds arguments as passed; for outputs the address that the call writes to.
struct Passage {
  driver::CallId id{};
  std::uint64_t value[driver::kMaxParameters] = {};
  std::uint64_t child = 0;   // the graph that a node is made of, as given: the driver writes the copy's handle over it
  std::uint64_t stream = 0;  // where the work is queued, if that is `captured`
  Record* record = nullptr;
  const class Gate* outer = nullptr;  // the gate this thread was inside of before, and its call's ticket
  std::uint64_t outer_begin = 0;
  CUresult injected = CUDA_SUCCESS;
  How how = How::Refuse;
  bool forward = true;
  bool captured = false;
};

// Told of each call that the program itself makes, before its record is begun.
struct BeforeCall {
  void (*function)(void* self, driver::BaseId base) noexcept = nullptr;
  void* self = nullptr;
};

class Gate {
 public:
  static constexpr std::size_t kMaxDevices = 64;

  // Called once, before any call passes. `journal` and `stacks` may be null: then nothing is written and faults count per process.
  void Arm(driver::DriverRef next, Journal* journal, StackTable* stacks, const Plan& plan, Scope scope) noexcept;
  // Other faults from here on, all occurrences counted anew, and call stacks or none; what a sticky fault lost stays lost. No call may be
  // under way.
  void Rearm(const Plan& plan, StackTable* stacks) noexcept;
  // Of this device's primary context somebody else holds a reference all the time: for the program it is there from its own first retain to
  // its own last release.
  void NoteHeldPrimary(CUdevice device) noexcept;
  // The driver behind follows stale handles (a genuine one does): those of objects that a fault `after` took are answered here.
  void AnswerForGoneObjects() noexcept { answers_for_gone_ = true; }
  // Of how many it cannot, their table being full.
  std::uint32_t gone_beyond() const noexcept { return gone_.beyond(); }
  const driver::DriverRef& next() const noexcept { return next_; }
  bool armed() const noexcept { return armed_; }

  template <driver::CallId id, typename... P>
  CUresult Run(P... arguments) noexcept {
    using Entry = CUresult (*)(void*, P...);
    const Entry entry = reinterpret_cast<Entry>(next_.table->entry[driver::Index(id)]);
    if (!armed_) [[likely]]
      return entry(next_.self, arguments...);
    Passage passage;
    passage.id = id;
    std::size_t i = 0;
    ((passage.value[i++] = Word(arguments)), ...);
    Enter(&passage);
    CUresult result = passage.injected;
    if (passage.forward) result = entry(next_.self, arguments...);
    return Leave(&passage, result);
  }

  void Watch(const BeforeCall& before) noexcept {
    before_ = before;
    armed_ = armed_ || before.function != nullptr;
  }
  // In a process forked inside BeforeCall that goes on as if it were its parent: from here on under `plan`, whose counts stand in the
  // journal's header, and in its parent's name in all records.
  void Continue(const Plan& plan) noexcept;

  // By which process id this process stands in its records.
  static std::uint32_t ProcessName() noexcept;

  // Another plan from here on, its counts anew; the occurrences of calls go on. No other thread may be inside a call.
  void ReplacePlan(const Plan& plan) noexcept;

  // Marks and process events may be written before a driver is there.
  void Attach(Journal* journal) noexcept { journal_ = journal; }
  // `device_bytes`: memory in use on the current device, null when nobody read it.
  void Mark(MarkKind kind, std::uint32_t value, const std::uint64_t* device_bytes = nullptr) noexcept;
  void Note(ProcessEvent event, std::uint64_t argument) noexcept;
  // The program's own pool hands out a block, or takes it back (bytes 0).
  void Block(MarkKind kind, std::uint64_t address, std::uint64_t bytes) noexcept;

  // What a simulated world asks and tells (WorldOptions::origin, on_misuse), its observer being the gate right in front of it: the
  // `begin` ticket of the call that this thread has under way, 0 outside of calls and without a journal; and one record.
  static std::uint64_t CallUnderWay(void* gate) noexcept;
  static void NoteMisuse(void* gate, const driver::Misuse& misuse) noexcept;

 private:
  template <typename T>
  static std::uint64_t Word(T argument) noexcept {
    if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<std::uintptr_t>(argument);
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      return static_cast<std::uint64_t>(argument);
    } else if constexpr (std::is_same_v<T, float>) {
      return std::bit_cast<std::uint32_t>(argument);
    } else {
      return 0;
    }
  }

  void Enter(Passage* passage) noexcept;
  CUresult Leave(Passage* passage, CUresult result) noexcept;
  void Decide(Passage* passage, bool nested, std::uint64_t site) noexcept;
  void RecordAddresses(const Passage& passage) noexcept;
  void CountCaptures(const Passage& passage, CUresult result) noexcept;
  void SeeCapture(Passage* passage) const noexcept;
  static std::uint64_t ChildOf(const Passage& passage) noexcept;
  void Pin(const Passage& passage) noexcept;
  void NameDevice() noexcept;
  std::uint64_t UnreferencedDevices() const noexcept;
  void AnswerIfGone(Passage* passage) const noexcept;
  void NoteGone(const Passage& passage) noexcept;
  void ForgetLostContext(const Passage& passage) noexcept;
  Record* NewRecord(RecordKind kind, std::uint16_t call) noexcept;

  driver::DriverRef next_;
  Journal* journal_ = nullptr;
  StackTable* stacks_ = nullptr;
  Plan plan_;
  std::uint32_t arming_ = 0;  // which of all plans that this process's gates were given
  BeforeCall before_;
  Scope scope_ = Scope::Pinned;
  bool armed_ = false;
  std::atomic<std::uint32_t> matched_[kMaxFaults] = {};  // used when there is no journal
  bool answers_for_gone_ = false;
  GoneHandles gone_;
  LostContexts lost_;                                       // this process's
  std::atomic<std::int32_t> references_[kMaxDevices] = {};  // of primary contexts, the program's own
  std::atomic<std::uint64_t> pinned_devices_{0};            // one bit per device ordinal
  std::atomic<std::int32_t> captures_{0};                   // begun through this gate and not ended
};

// A DriverRef whose every call passes the gate.
driver::DriverRef Driver(Gate* gate) noexcept;

}  // namespace cuaudit::faults
