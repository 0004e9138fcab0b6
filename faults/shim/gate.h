// SPDX-License-Identifier: MIT
// gate.h: ask the plan, pass on or refuse, write one record.
//
//   Owns      its policies (below). Borrows the driver below and the journal; both must outlive it.
//   Threads   safe: the plan is constant while calls pass, counters live in the journal's header, records are reserved one by one. Arm, Rearm
//             and RecordStacks may be called only while no thread is inside a call, Rearm also by the one thread of a forked process.
//   Errors    the driver's result, or the plan's. A full journal never changes a result.
//   Faults    forwards every call. For itself it calls DeviceGet and DeviceGetName once, for the journal's header; what its policies call,
//             past the plan, their headers say.
//
// A Gate is a DriverRef implementation like any other (Driver(&gate)), so gates stack. The drop-in uses Run<id> directly.
//
// The order in which a call is asked about. Before the driver:
//   1 BeforeCall                        2 a record is begun: number, arguments, current context (call_record.h)
//   3 call stack, if the plan names sites of this entry point
//   4 the plan: all faults that match count, the first that fires decides
//   5 a sticky fault that fired loses the context, or if none fired a lost context answers (lost_contexts.h)
//   6 a gone handle answers, if nothing did before (gone_handles.h)
//   7 call stack, if not taken yet      8 whether it is captured, if it is passed on (captures.h)
// After the driver, or OnRefusal:
//   1 what the call wrote, addresses of graph nodes and objects in structures (told_objects.h)
//   2 captures begun and ended
//   3 cuInit: the device's name         4 the pin, after a retain (pinned_contexts.h)
//   5 contexts that took their loss with them, references of the program    6 handles that are gone, or are there again
//   7 the plan's result and garbage     8 an `after` that the driver forestalled did not fire     9 the record ends
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
#include "faults/shim/call_record.h"
#include "faults/shim/captures.h"
#include "faults/shim/gone_handles.h"
#include "faults/shim/lost_contexts.h"
#include "faults/shim/pinned_contexts.h"
#include "faults/shim/scope.h"
#include "faults/shim/texture_memory.h"
#include "faults/shim/told_objects.h"

namespace cuaudit::faults {

// Told of each call that the program itself makes, before its record is begun.
struct BeforeCall {
  void (*function)(void* self, driver::BaseId base) noexcept = nullptr;
  void* self = nullptr;
};

// Told of each call that fails by the plan, refused or carried out under `after`, before the program gets its answer. A call that a lost
// context answers is not told of. `arguments` are as passed.
struct OnRefusal {
  void (*function)(void* self, driver::CallId id, const std::uint64_t* arguments) noexcept = nullptr;
  void* self = nullptr;
};

// Called for each descriptor that a call made for the program or that the driver took over from it, before the call returns.
using OnDescriptor = void (*)(int descriptor, bool taken) noexcept;

// What begins anew when a gate in use gets another plan. All of it is counted in the journal's header.
enum class Anew : std::uint8_t {
  Nothing,     // a forked process goes on under its parent's plan and more faults
  Faults,      // calls that a fault matched, and how often it fired: a cycle of one process
  Occurrences  // of calls, and calls that a fault matched: a cycle of a lifecycle. How often each fault of the trial fired goes on
};

class Gate {
 public:
  // Called once, before any call passes. `journal` and `stacks` may be null: then nothing is written and faults count per process.
  void Arm(driver::DriverRef next, Journal* journal, StackTable* stacks, const Plan& plan, Scope scope) noexcept;
  // Another plan from here on. What a sticky fault lost stays lost.
  void Rearm(const Plan& plan, Anew anew) noexcept;
  // Null: call stacks are not recorded.
  void RecordStacks(StackTable* stacks) noexcept { stacks_ = stacks; }
  // Of this device's primary context somebody else holds a reference all the time: for the program it is there from its own first retain to
  // its own last release.
  void NoteHeldPrimary(CUdevice device) noexcept;
  // The driver behind follows stale handles (a genuine one does, and a simulated one that crashes as it does): those of objects that a
  // fault `after` took are answered here.
  void AnswerForGoneObjects() noexcept { answers_for_gone_ = true; }
  void Tell(const OnRefusal& refusal) noexcept { refusal_ = refusal; }
  // Number of gone objects that are not answered for, because the table is full.
  std::uint32_t gone_beyond() const noexcept { return gone_.beyond(); }
  // Number of texture and surface objects whose memory is not followed, because the table is full.
  std::uint32_t textures_beyond() const noexcept { return textures_.beyond(); }
  const driver::DriverRef& next() const noexcept { return next_; }
  bool armed() const noexcept { return armed_; }

  // Always inlined: call stacks leave out one frame around Enter, so that they begin with the caller of the gate in every build.
  template <driver::CallId id, typename... P>
  [[gnu::always_inline]] CUresult Run(P... arguments) noexcept {
    using Entry = CUresult (*)(void*, P...);
    const Entry entry = reinterpret_cast<Entry>(next_.table->entry[driver::Index(id)]);
    if (!armed_) [[likely]]
      return entry(next_.self, arguments...);
    Passage passage;
    passage.id = id;
    std::size_t i = 0;
    ((passage.value[i++] = Word(arguments)), ...);
    if constexpr (WritesOver(driver::BaseOf(id))) passage.given = GivenTo(passage);
    Enter(&passage);
    CUresult result = passage.injected;
    if (passage.forward) result = entry(next_.self, arguments...);
    return Leave(&passage, result);
  }

  void Watch(const BeforeCall& before) noexcept {
    before_ = before;
    armed_ = armed_ || before.function != nullptr;
  }
  // Null: nobody is told.
  void WatchDescriptors(OnDescriptor function) noexcept { on_descriptor_ = function; }
  // By which process id this process stands in its records.
  static std::uint32_t ProcessName() noexcept;

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
    } else if constexpr (std::is_same_v<T, CUmemLocation>) {
      return std::bit_cast<std::uint64_t>(argument);
    } else {
      return 0;
    }
  }

  void Enter(Passage* passage) noexcept;
  CUresult Leave(Passage* passage, CUresult result) noexcept;
  void Decide(Passage* passage, bool nested, std::uint64_t site) noexcept;
  void NameDevice() noexcept;
  void TellObjects(const Passage& passage) noexcept;

  driver::DriverRef next_;
  Journal* journal_ = nullptr;
  StackTable* stacks_ = nullptr;
  Plan plan_;
  std::uint32_t arming_ = 0;  // which of all plans that this process's gates were given
  BeforeCall before_;
  OnRefusal refusal_;
  Scope scope_ = Scope::Pinned;
  bool armed_ = false;
  std::atomic<std::uint32_t> matched_[kMaxFaults] = {};  // used when there is no journal
  bool answers_for_gone_ = false;
  GoneHandles gone_;
  LostContexts lost_;  // this process's
  PinnedContexts pinned_;
  Captures captures_;
  TextureMemory textures_;
  OnDescriptor on_descriptor_ = nullptr;
};

// A DriverRef whose every call passes the gate.
driver::DriverRef Driver(Gate* gate) noexcept;

}  // namespace cuaudit::faults
