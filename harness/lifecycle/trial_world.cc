// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "harness/lifecycle/trial_world.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "faults/driver/genuine_driver.h"
#include "faults/driver/result.h"
#include "faults/journal/journal_file.h"
#include "faults/journal/stack_table.h"
#include "faults/shim/gate.h"
#include "faults/shim/stop_watch.h"
#include "faults/sim/world.h"
#include "harness/lifecycle/chosen_driver.h"
#include "harness/lifecycle/host_change.h"
#include "harness/lifecycle/isolation.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kRecords = std::size_t{1} << 20;
constexpr std::uint32_t kStackDepth = faults::kMaxFrames;

void NoteRefusal(void* world, driver::CallId id, const std::uint64_t* arguments) noexcept {
  sim::NoteRefusedCall(static_cast<sim::World*>(world), id, arguments);
}

// Runs the steps of one trial.
class StepRunner {
 public:
  StepRunner(const Lifecycle& lifecycle, faults::Gate* gate, faults::Journal* journal, faults::StackTable* stacks, const Metering& metering)
      : lifecycle_(lifecycle), gate_(gate), journal_(journal), stacks_(stacks), metering_(metering), cycle_(faults::Driver(gate)) {}

  bool Prepare(StepTrace* trace) {
    if (lifecycle_.with_context()) {
      const Lifecycle::Step make_current = [](void*, Cycle& cycle) {
        CUcontext context = nullptr;
        CUresult code = cycle.driver().Init(0);
        if (code == CUDA_SUCCESS) code = cycle.driver().DevicePrimaryCtxRetain(&context, 0);
        if (code == CUDA_SUCCESS) code = cycle.driver().CtxSetCurrent(context);
        return StepResult::Of(code);
      };
      RunStep(make_current, nullptr, trace);
      if (trace->failed) return false;
    }
    if (lifecycle_.prepare()) RunStep(lifecycle_.prepare(), nullptr, trace);
    return !trace->failed;
  }

  // `world`: the simulated one; null: none. `drained`: its queued work is ended before the cycle ends.
  void RunCycle(HostMeterSet meters, sim::World* world, bool drained, CycleTrace* trace) {
    const bool metered = !(meters == HostMeterSet());
    CycleMeters host(meters);
    if (metered) host.Begin();
    trace->first_record = journal_->header().next_record.load(std::memory_order_relaxed);
    trace->begin = Clock();
    gate_->Mark(faults::MarkKind::CycleBegin, 0);
    HostRecords* const records = metering_.records;
    if (records != nullptr) {
      trace->seen.first = records->clock();
      records->StartSpan(metering_.stacks);
    }
    std::shared_ptr<void> state;
    Phase(faults::Phase::Init);
    StepTrace& init = trace->at(StepName::Init);
    RunStep(
        [&](void*, Cycle& cycle) {
          state = lifecycle_.MakeState();
          return lifecycle_.init() ? lifecycle_.init()(state.get(), cycle) : StepResult{false, false, CUDA_SUCCESS, false};
        },
        nullptr, &init);
    if (!init.failed && lifecycle_.work()) {
      Phase(faults::Phase::Work);
      RunStep(lifecycle_.work(), state.get(), &trace->at(StepName::Work));
    }
    if (!init.failed || lifecycle_.teardown_after_failed_init()) {
      Phase(init.failed || trace->at(StepName::Work).failed ? faults::Phase::Unwind : faults::Phase::Teardown);
      StepTrace& teardown = trace->at(StepName::Teardown);
      if (lifecycle_.teardown()) RunStep(lifecycle_.teardown(), state.get(), &teardown);
      if (teardown.failed && lifecycle_.retry_teardown()) {
        if (records != nullptr) records->Refuse(nullptr, nullptr);
        gate_->Rearm(faults::Plan(), faults::Anew::Occurrences);
        RunStep(lifecycle_.teardown(), state.get(), &trace->at(StepName::SecondTeardown));
      }
    }
    if (state != nullptr) {
      const auto destroy = [&](void*, Cycle&) {
        state.reset();
        return StepResult{false, false, CUDA_SUCCESS, false};
      };
      RunStep(destroy, nullptr, &trace->at(StepName::Destructor));
    }
    const bool gave_away = world != nullptr && GiveAwayArguments(world);
    if (drained) sim::RunHollow(world);
    if (records != nullptr) {
      trace->seen.net = records->EndSpan();
      trace->seen.end = records->clock();
      trace->seen.allocations = journal_->header().occurrences[faults::kHostOccurrences].load(std::memory_order_relaxed);
      trace->seen.threads = journal_->header().occurrences[faults::kHostThreadOccurrences].load(std::memory_order_relaxed);
    }
    if (metered) {
      trace->host = host.End();
      // Without the drop-in it is not known which bytes are the arguments of queued functions.
      if (gave_away && records == nullptr) trace->host.value[static_cast<std::size_t>(HostMeter::HeapBytes)] = 0;
      trace->heap_bytes = host.after()[HostMeter::HeapBytes];
    }
    gate_->Mark(faults::MarkKind::CycleEnd, 0);
    trace->end = Clock();
    trace->end_record = journal_->header().next_record.load(std::memory_order_relaxed);
    trace->finished = true;
  }

 private:
  // Host functions that are queued now do not run in this cycle, or never. What they were given is theirs to free. Returns false when there
  // are none.
  bool GiveAwayArguments(sim::World* world) {
    struct Given {
      HostRecords* records;
      bool any = false;
    } given{metering_.records};
    const auto give = [](void* self, const void* argument) {
      auto* const to = static_cast<Given*>(self);
      to->any = true;
      if (to->records != nullptr) to->records->GiveAway(argument);
    };
    sim::EachHostArgument(world, &given, give);
    return given.any;
  }
  std::uint64_t Clock() const { return journal_->header().clock.load(std::memory_order_relaxed); }
  void Phase(faults::Phase phase) { gate_->Mark(faults::MarkKind::Phase, static_cast<std::uint32_t>(phase)); }

  // Call stacks end here, so that they are the same in a rehearsal, a trial and a replay.
  template <typename Step>
  [[gnu::noinline]] void RunStep(const Step& step, void* state, StepTrace* trace) {
    stacks_->StartAt(__builtin_frame_address(0));
    if (metering_.records != nullptr) metering_.records->StartAt(__builtin_frame_address(0));
    cycle_.ForgetOutputs();
    trace->ran = true;
    trace->begin = Clock();
    try {
      const StepResult result = step(state, cycle_);
      trace->failed = result.failed;
      trace->can_report = result.can_report;
      trace->has_code = result.has_code;
      trace->code = result.code;
    } catch (const std::exception& thrown) {
      trace->failed = trace->threw = trace->can_report = true;
      std::snprintf(trace->text, sizeof(trace->text), "%s", thrown.what());
    } catch (...) {
      trace->failed = trace->threw = trace->can_report = true;
    }
    trace->returned = true;
    if (trace->failed) {
      const char* const written = cycle_.WrittenOutput();
      if (written != nullptr) std::snprintf(trace->written_output, sizeof(trace->written_output), "%s", written);
    }
    stacks_->StartAt(nullptr);
  }

  const Lifecycle& lifecycle_;
  faults::Gate* gate_;
  faults::Journal* journal_;
  faults::StackTable* stacks_;
  const Metering& metering_;
  Cycle cycle_;
};

// Opens the genuine driver. The first one that is chosen stays for the process, because a driver cannot be closed.
driver::GenuineDriver* OpenedGenuineDriver(const std::string& path, std::string* why) {
  static driver::GenuineDriver genuine;
  static const char* const wrong = driver::OpenGenuineDriver(path.c_str(), &genuine);
  if (wrong == nullptr) return &genuine;
  *why = path + ": " + wrong;
  return nullptr;
}

class GatedTrialWorld : public TrialWorld {
 public:
  Status Open(const LifecycleDriver& chosen, bool shared) {
    faults::JournalOptions options = {.record_capacity = kRecords, .stack_depth = kStackDepth};
    if (const char* wrong = journal_.Open(options, shared)) return {Exit::Failure, wrong};
    stacks_->Attach(journal_.journal(), IsOwnObject());
    stacks_->LeaveOut(Diversion::DropInCode());
    reusable_ = chosen.driver == AuditedDriver::Simulated && !shared;
    if (chosen.driver == AuditedDriver::Simulated) return {};
    if (!chosen.why_not.empty()) return {Exit::Environment, chosen.why_not};
    std::string why;
    driver::GenuineDriver* const genuine = OpenedGenuineDriver(chosen.path, &why);
    if (genuine == nullptr) return {Exit::Environment, why};
    genuine_ = driver::Driver(genuine);
    Status status = KeepPrimaryContext();
    if (status.ok()) NameGenuine(chosen.path);
    return status;
  }
  void NameSimulated(const LifecycleDriver& chosen) {
    driver_ = "simulated" + (chosen.instead.empty() ? "" : " (driver=auto: " + chosen.instead + ")");
  }

  void Run(const Lifecycle& lifecycle, const faults::Plan& plan, Stacks wanted, std::size_t cycles, const Metering& metering,
           TrialTrace* trace) override {
    static const TrialTrace kNothing;  // copied at once; its many texts would be cleared one by one
    *trace = kNothing;
    const std::uint64_t unheard = BlocksUnheard();
    journal_.Clear();
    gate_.emplace();
    if (genuine_.has_value()) EmptyContextStack(*genuine_);
    if (genuine_.has_value()) PutBackCaptureMode(*genuine_);
    sim::World* const world = genuine_.has_value() ? nullptr : NewWorld();
    if (world == nullptr && !genuine_.has_value()) return;
    trace->opened = true;
    if (world != nullptr) journal_.journal()->header().driver_kind.store(faults::DriverKind::Simulated);
    gate_->Arm(genuine_.has_value() ? *genuine_ : sim::Driver(world), journal_.journal(), wanted == Stacks::None ? nullptr : stacks_.get(),
               faults::Plan(), genuine_.has_value() ? faults::Scope::Process : faults::Scope::Pinned);
    if (genuine_.has_value()) {
      gate_->AnswerForGoneObjects();
      gate_->NoteHeldPrimary(0);
    }
    if (world != nullptr) gate_->Tell({&NoteRefusal, world});
    const Diversion diversion(faults::Driver(&*gate_));
    StepRunner runner(lifecycle, &*gate_, journal_.journal(), stacks_.get(), metering);
    if (metering.records != nullptr && !metering.stacks) metering.records->Clear();
    trace->prepared = runner.Prepare(&trace->prepare);
    for (std::size_t i = 0; trace->prepared && i < cycles; ++i) {
      std::optional<CycleTrace> beyond;
      const bool with_stacks = wanted == Stacks::All || (wanted == Stacks::FaultedCycle && i == 0);
      gate_->RecordStacks(with_stacks ? stacks_.get() : nullptr);
      gate_->Rearm(i == 0 ? plan : faults::Plan(), faults::Anew::Occurrences);
      CycleTrace* const cycle = i < kMostCycles ? &trace->cycle[i] : &beyond.emplace();
      const bool turns = metering.records != nullptr && metering.count_turns && i == 0;
      if (turns) metering.records->Refuse(journal_.journal(), &plan);
      // Only the faulted cycle: what a program never waits for when nothing fails is compared as it is.
      const bool drained = world != nullptr && i == 0 && plan.size() != 0;
      runner.RunCycle(i == 0 ? metering.first : metering.others, world, drained, cycle);
      if (turns) metering.records->Refuse(nullptr, nullptr);
      if (metering.all != nullptr) metering.all->push_back(cycle->host);
      if (metering.spans != nullptr) metering.spans->push_back(cycle->seen);
      const bool failed = std::any_of(cycle->step, cycle->step + kSteps, [](const StepTrace& step) { return step.failed; });
      if (!failed || trace->first_failed != 0) continue;
      trace->first_failed = i + 1;
      trace->failed = *cycle;
    }
    if (world != nullptr) sim::DestroyWorld(world);
    trace->unguarded = gate_->gone_beyond();
    trace->unheard = BlocksUnheard() - unheard;
    if (world == nullptr) CleanUp(trace);
    trace->finished = true;
  }

  bool reusable() const { return reusable_; }
  void Forget() override { journal_.Clear(); }
  void WatchStops() override { faults::WatchStops(journal_.journal(), stacks_.get()); }
  const std::string& driver() const override { return driver_; }
  faults::JournalView Journal() const override {
    faults::JournalView view = journal_.View();
    view.Remember(keys_.get());
    return view;
  }

 private:
  sim::World* NewWorld() {
    sim::WorldOptions options;
    options.observer = &*gate_;
    options.origin = &faults::Gate::CallUnderWay;
    options.on_misuse = &faults::Gate::NoteMisuse;
    return sim::CreateWorld(options);
  }

  Status KeepPrimaryContext() {
    static CUcontext kept = nullptr;
    if (kept == nullptr) {
      CUresult code = genuine_->Init(0);
      if (code == CUDA_SUCCESS) code = genuine_->DevicePrimaryCtxRetain(&kept, 0);
      if (code != CUDA_SUCCESS) {
        const std::string name(driver::ShortResultName(code));
        return {Exit::Environment, "no device answers: cuInit or cuDevicePrimaryCtxRetain says CUDA_ERROR_" + name};
      }
    }
    context_ = kept;
    return {};
  }

  void NameGenuine(const std::string& path) {
    int version = 0;
    char device[128] = "";
    driver_ = "genuine";
    if (genuine_->DriverGetVersion(&version) == CUDA_SUCCESS)
      driver_ += ", CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    if (genuine_->DeviceGetName(device, sizeof(device), 0) == CUDA_SUCCESS) driver_ += std::string(", ") + device;
    driver_ += ", " + path;
  }

  // Restores the genuine driver to the state before this trial.
  void CleanUp(TrialTrace* trace) {
    trace->kept = GiveBack(*genuine_, context_, FoldObjects(journal_.View().records()));
    CUresult code = genuine_->CtxPushCurrent(context_);
    if (code == CUDA_SUCCESS) code = genuine_->CtxSynchronize(context_);
    if (driver::IsSticky(code)) trace->lost = code;
    EmptyContextStack(*genuine_);
    PutBackCaptureMode(*genuine_);
  }

  bool reusable_ = false;
  faults::MemoryJournal journal_;
  std::unique_ptr<faults::StackTable> stacks_ = std::make_unique<faults::StackTable>();
  std::unique_ptr<faults::KeyMemo> keys_ = std::make_unique<faults::KeyMemo>();  // of its call stacks, which Clear leaves
  std::optional<faults::Gate> gate_;
  std::optional<driver::DriverRef> genuine_;
  CUcontext context_ = nullptr;  // of the genuine driver
  std::string driver_;
};

// Worlds kept for the next sweep of the process. Only call stacks are left in them.
struct Spares {
  static constexpr std::size_t kMost = 4;
  std::mutex guard;
  std::vector<std::unique_ptr<GatedTrialWorld>> worlds;
};

Spares& TheSpares() {
  static auto* const spares = new Spares;  // never destroyed, because sweeps may end in exit handlers
  return *spares;
}

}  // namespace

void TrialWorld::Return::operator()(TrialWorld* world) const noexcept {
  std::unique_ptr<GatedTrialWorld> owned(static_cast<GatedTrialWorld*>(world));
  if (!owned->reusable()) return;
  Spares& spares = TheSpares();
  const std::lock_guard<std::mutex> lock(spares.guard);
  if (spares.worlds.size() < Spares::kMost) spares.worlds.push_back(std::move(owned));
}

Result<TrialWorld::Pointer> TrialWorld::Open(AuditedDriver driver, bool shared) {
  const Result<LifecycleDriver> chosen = ChooseDriver(driver);
  if (!chosen.ok()) return chosen.status();
  if (chosen->driver == AuditedDriver::Simulated && !shared) {
    Spares& spares = TheSpares();
    const std::lock_guard<std::mutex> lock(spares.guard);
    if (!spares.worlds.empty()) {
      spares.worlds.back()->NameSimulated(*chosen);
      Pointer spare(spares.worlds.back().release());
      spares.worlds.pop_back();
      return spare;
    }
  }
  auto world = std::make_unique<GatedTrialWorld>();
  Status status = world->Open(*chosen, shared);
  if (!status.ok()) return status;
  if (chosen->driver == AuditedDriver::Simulated) world->NameSimulated(*chosen);
  return Pointer(world.release());
}

}  // namespace cuaudit::harness
