// SPDX-License-Identifier: MIT
#include "harness/kit/lift_calls.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/driver/shape.h"
#include "faults/journal/recording.h"
#include "harness/defect/defects.h"
#include "harness/kit/parameters.h"
#include "harness/kit/recorded_runs.h"
#include "harness/kit/setting_calls.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {
namespace {

using driver::BaseId;
using driver::Family;
using driver::Kind;
using faults::Record;

constexpr std::uint64_t kLeastHostBytes = 4096;
constexpr std::uint64_t kMostHostBytes = std::uint64_t{1} << 32U;

// The n-th call of an entry point in the process.
using CallName = std::pair<BaseId, std::uint32_t>;

// Variables by the call and parameter that write them first, the same in all runs.
class Variables {
 public:
  int Of(const CallName& call, std::size_t parameter, CallVariable variable) {
    const auto [known, made] = known_.try_emplace({call, parameter}, static_cast<int>(all_.size()));
    const std::uint64_t bytes = variable.host_bytes;
    if (made) all_.push_back(std::move(variable));
    CallVariable& same = all_[static_cast<std::size_t>(known->second)];
    same.host_bytes = std::max(same.host_bytes, bytes);
    return known->second;
  }
  std::vector<CallVariable> Take() { return std::move(all_); }

 private:
  std::map<std::pair<CallName, std::size_t>, int> known_;
  std::vector<CallVariable> all_;
};

bool IsAddress(const std::string& type, Family family) {
  return family == Family::Pointer || type == "CUdeviceptr" || type == "void *" || type == "const void *";
}

// A module in memory: the argument is its text or its code.
bool TakesImage(BaseId base, const std::string& name) {
  switch (base) {
    case BaseId::ModuleLoadData:
    case BaseId::ModuleLoadDataEx:
    case BaseId::ModuleLoadFatBinary:
      return name != "optionValues";
    case BaseId::LibraryLoadData:
      return name == "code";
    case BaseId::LinkAddData:
      return name == "data";
    default:
      return false;
  }
}

// A call that follows an array of pointers.
bool AsksForAttributes(BaseId base) { return base == BaseId::PointerGetAttributes; }

// Numbers of what has a key, in the order in which the keys are met.
class Numbers {
 public:
  std::uint32_t Of(std::uint64_t key) { return static_cast<std::uint32_t>(known_.try_emplace(key, known_.size()).first->second); }

 private:
  std::map<std::uint64_t, std::size_t> known_;
};

// The same in all runs.
struct Shared {
  Variables variables;
  Numbers callers;
  Numbers stacks;
};

// Reads one run, call by call.
class Lifter {
 public:
  Lifter(const Observation& run, Shared* shared, SiteTexts* places, std::span<const report::Acquired> lost)
      : run_(run), shared_(shared), places_(places), lost_(lost) {
    for (const Record& record : run.journal.records()) {
      if (record.kind == faults::RecordKind::Argument && (record.flags & faults::kStandsOn) != 0) standing_[record.context] = &record;
    }
  }

  // `name` is the same for the same call of two runs.
  Step Lift(const Record& record, const CallName& name) {
    name_ = name;
    Step step;
    step.call = CallOf(record);
    step.succeeded = record.result == CUDA_SUCCESS;
    step.cycle = record.cycle;
    step.thread = threads_.Of(record.tid);
    step.caller = shared_->callers.Of(CallerKey(run_.journal, SiteOf(record)));
    step.stack = shared_->stacks.Of(SiteKey(run_.journal, SiteOf(record)));
    step.place = PlaceOf(record);
    step.of_defect = IsOfDefect(record, step.stack);
    const std::span<const ParameterText> parameters = ParametersOf(step.call);
    for (std::size_t i = 0; i < parameters.size(); ++i) step.values.push_back(Value(record, parameters[i], i));
    DropCounts(parameters, &step);
    settings_.Write(record, &step);
    return step;
  }

  // Whether a call that was lifted has answered this handle.
  bool Knows(std::uint64_t handle) const { return handles_.count(handle) != 0; }

 private:
  struct Memory {
    int variable = kNoVariable;
    std::uint64_t bytes = 0;
  };

  CallValue Value(const Record& record, const ParameterText& parameter, std::size_t index) {
    const driver::Parameter& shape = driver::ShapeOf(CallOf(record)).parameter[index];
    if (index >= faults::kRecordArguments) return {parameter.pointer() ? CallValue::Is::Nothing : CallValue::Is::Number};
    const std::uint64_t word = record.argument[index];
    if (faults::IsData(BaseOf(record), index)) return {CallValue::Is::Number, 0};
    // Memory that has 0 ends a wait for at least 0, but no wait for a bit of 0.
    if (WaitsForValue(BaseOf(record)) && index == 3) return {CallValue::Is::Number, word & CU_STREAM_WAIT_VALUE_FLUSH};
    // One attribute stands for all that the program asks for.
    if (AsksForAttributes(BaseOf(record)) && index == 0) return {CallValue::Is::Number, std::min<std::uint64_t>(word, 1)};
    if (shape.output) return Output(record, parameter, index, word);
    // It answers a number, as its type does not tell.
    if (BaseOf(record) == BaseId::MemPoolGetAttribute && index == 2)
      return {CallValue::Is::Output, 0, shared_->variables.Of(name_, index, {"cuuint64_t"})};
    const std::string pointee = parameter.pointee();
    if (NothingFunction(parameter.type) != nullptr) return {word == 0 ? CallValue::Is::Nothing : CallValue::Is::Function};
    if (!parameter.pointer() && shape.size == 0) return {CallValue::Is::Structure};
    if (TakesImage(BaseOf(record), parameter.name)) return {word == 0 ? CallValue::Is::Nothing : CallValue::Is::Image};
    if (IsAddress(parameter.type, shape.family)) return Address(record, index, word);
    if (!parameter.pointer()) {
      const bool handle = shape.handle || ArgumentFamily(CallOf(record), index) != Family::None;
      const bool number = !handle || (shape.family == Family::Stream && IsStandardStream(word));
      return number ? CallValue{CallValue::Is::Number, word} : Handle(word);
    }
    if (word == 0 || shape.handle) return {CallValue::Is::Nothing};
    if (pointee == "char") return {parameter.constant() ? CallValue::Is::Text : CallValue::Is::Room};
    if (pointee == "void *" && !AsksForAttributes(BaseOf(record))) return {CallValue::Is::Room};
    const auto standing = standing_.find(record.begin);
    if (standing != standing_.end()) {
      const auto kind = static_cast<Kind>(standing->second->argument[0]);
      if (KnowsStructure(pointee, kind)) {
        CallValue value = Handle(standing->second->argument[1]);
        if (value.is == CallValue::Is::Variable) return {CallValue::Is::Structure, 0, value.variable, kind};
      }
    }
    if (KnowsStructure(pointee, Kind::None)) return {CallValue::Is::Structure};
    return {CallValue::Is::Room};
  }

  CallValue Output(const Record& record, const ParameterText& parameter, std::size_t index, std::uint64_t word) {
    const driver::EffectRow& effect = driver::EffectOf(BaseOf(record));
    const bool acquires = driver::IsAcquire(effect.effect);
    const std::string type = parameter.pointee();
    CallVariable made = {.type = type, .family = driver::ShapeOf(CallOf(record)).parameter[index].family};
    if (acquires && effect.object == static_cast<int>(index)) made.kind = effect.kind;
    const int variable = shared_->variables.Of(name_, index, std::move(made));
    const CallValue value{CallValue::Is::Output, 0, variable};
    if (word == 0 || record.result != CUDA_SUCCESS) return value;
    const bool address = IsAddress(type, driver::ShapeOf(CallOf(record)).parameter[index].family);
    if (!address && type.rfind("CU", 0) != 0) return value;
    // A call that makes an object names it anew. Others tell of an object that has a variable already, as cuCtxPopCurrent does.
    const bool anew = driver::MakesObject(effect.effect);
    if (address) {
      if (anew || FindMemory(word) == memory_.end()) memory_[word] = {variable, std::max<std::uint64_t>(1, BytesOf(record, effect))};
    } else if (anew) {
      handles_[word] = variable;
    } else {
      handles_.try_emplace(word, variable);
    }
    return value;
  }

  CallValue Handle(std::uint64_t word) const {
    const auto known = handles_.find(word);
    if (known != handles_.end()) return {CallValue::Is::Variable, 0, known->second};
    const auto memory = FindMemory(word);
    if (memory != memory_.end()) return {CallValue::Is::Variable, word - memory->first, memory->second.variable};
    return {CallValue::Is::Number, 0};  // a handle that no recorded call made
  }

  CallValue Address(const Record& record, std::size_t index, std::uint64_t word) {
    if (word == 0) return {CallValue::Is::Nothing};
    auto memory = FindMemory(word);
    if (memory == memory_.end()) {
      CallVariable host = {.type = "void *", .host_bytes = HostBytes(record)};
      memory = memory_.insert_or_assign(word, Memory{shared_->variables.Of(name_, index, host), host.host_bytes}).first;
    }
    return {CallValue::Is::Variable, word - memory->first, memory->second.variable};
  }

  // The largest size among the arguments: what the call may read or write.
  static std::uint64_t HostBytes(const Record& record) {
    std::uint64_t most = kLeastHostBytes;
    const std::span<const ParameterText> parameters = ParametersOf(CallOf(record));
    for (std::size_t i = 0; i < std::min(parameters.size(), faults::kRecordArguments); ++i) {
      if (parameters[i].type == "size_t") most = std::max(most, record.argument[i]);
    }
    return std::min(most, kMostHostBytes);
  }

  std::map<std::uint64_t, Memory>::const_iterator FindMemory(std::uint64_t word) const {
    auto above = memory_.upper_bound(word);
    if (above == memory_.begin()) return memory_.end();
    --above;
    return word - above->first < above->second.bytes ? above : memory_.end();
  }

  // Arrays of handles are left out, and so the numbers of their elements must be.
  static void DropCounts(std::span<const ParameterText> parameters, Step* step) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const bool array = parameters[i].pointer() && driver::ShapeOf(step->call).parameter[i].handle;
      if (step->values[i].is != CallValue::Is::Nothing || !array) continue;
      for (std::size_t j = 0; j < parameters.size(); ++j) {
        if (parameters[j].name.rfind("num", 0) == 0 && step->values[j].is == CallValue::Is::Number) step->values[j].number = 0;
      }
    }
  }

  const report::Acquired& TextOf(const Record& record) {
    const Site site = SiteOf(record);
    return places_->Text(run_.journal, site, SiteKey(run_.journal, site));
  }

  // "open_pair, blame.c:42"; "libnorth.so+0x1234" where no function has a name.
  std::string PlaceOf(const Record& record) {
    const report::Acquired& place = TextOf(record);
    for (const report::Frame& frame : place.stack) {
      if (frame.function.empty()) continue;
      std::string text(PlainName(frame.function));
      if (!frame.file.empty()) text += ", " + std::filesystem::path(frame.file).filename().string() + ":" + std::to_string(frame.line);
      return text;
    }
    if (place.stack.empty() || place.stack.front().module.empty()) return {};
    return fmt::format("{}+{:#x}", place.stack.front().module, place.stack.front().offset);
  }

  bool IsOfDefect(const Record& record, std::uint32_t stack) {
    if (lost_.empty() || !driver::IsAcquire(driver::EffectOf(BaseOf(record)).effect)) return false;
    const auto [known, asked] = of_defect_.try_emplace(stack, false);
    if (asked) {
      const report::Acquired& place = TextOf(record);
      known->second = std::any_of(lost_.begin(), lost_.end(), [&](const report::Acquired& one) { return IsSamePlace(one, place); });
    }
    return known->second;
  }

  const Observation& run_;
  Shared* const shared_;
  SiteTexts* const places_;
  const std::span<const report::Acquired> lost_;
  std::map<std::uint32_t, bool> of_defect_;          // by the number of the call stack
  CallName name_;                                    // of the call that is lifted
  std::map<std::uint64_t, const Record*> standing_;  // by the call that they belong to
  std::map<std::uint64_t, int> handles_;
  std::map<std::uint64_t, Memory> memory_;
  Numbers threads_;
  SettingValues settings_;
};

struct NamedCall {
  const Record* record = nullptr;
  CallName name;
};

struct Lifted {
  NamedCall made;
  Step step;
};

std::vector<NamedCall> CallsOf(const Observation& run, std::uint32_t process) {
  const Evidence evidence = run.evidence();
  std::vector<NamedCall> calls;
  // The gate counts anew in each cycle of a lifecycle in C++, and the calls of all processes together.
  std::map<BaseId, std::uint32_t> made;
  for (const std::uint32_t index : evidence.facts().calls) {
    const Record& record = evidence.record(index);
    if (record.pid != process || record.end == 0) continue;
    calls.push_back({&record, CallName(BaseOf(record), ++made[BaseOf(record)])});
  }
  return calls;
}

// Calls that make a context current which a later call retains, by the context.
using EarlyCalls = std::map<std::uint64_t, std::vector<NamedCall>>;

// The calls that are hit by a fault have these names, and stay where they are in all runs.
std::set<CallName> NamesOfFailing(const std::vector<NamedCall>& calls) {
  std::set<CallName> names;
  for (const NamedCall& call : calls) {
    if (call.record->fault != 0) names.insert(call.name);
  }
  return names;
}

// The context that a successful call retains; 0: the call retains none.
std::uint64_t RetainedBy(const Record& record) {
  return BaseOf(record) == BaseId::DevicePrimaryCtxRetain && record.result == CUDA_SUCCESS ? record.argument[0] : 0;
}

bool ChoosesContext(const Record& record) {
  const driver::Effect effect = driver::EffectOf(BaseOf(record)).effect;
  return effect == driver::Effect::SetsContext || effect == driver::Effect::PushesContext;
}

std::vector<Lifted> LiftRun(const Observation& run, const std::vector<NamedCall>& made, const std::set<CallName>& failing, Shared* shared,
                            SiteTexts* places, std::span<const report::Acquired> lost) {
  Lifter lifter(run, shared, places, lost);
  std::set<std::uint64_t> retained;
  for (const NamedCall& call : made) retained.insert(RetainedBy(*call.record));
  EarlyCalls early;
  std::vector<Lifted> calls;
  const auto lift = [&](const NamedCall& call) { calls.push_back({call, lifter.Lift(*call.record, call.name)}); };
  for (const NamedCall& call : made) {
    const std::uint64_t context = call.record->argument[0];
    const bool is_early = ChoosesContext(*call.record) && context != 0 && !lifter.Knows(context) && retained.count(context) != 0;
    if (is_early && failing.count(call.name) == 0) {
      early[context].push_back(call);
      continue;
    }
    lift(call);
    for (const NamedCall& waits : early[RetainedBy(*call.record)]) lift(waits);
    early.erase(RetainedBy(*call.record));
  }
  return calls;
}

}  // namespace

Result<CallList> LiftCalls(std::span<const Observation> runs, std::span<const faults::Fault> faults, std::span<const Wrong> wanted,
                           SiteTexts* places, std::span<const report::Acquired> lost) {
  Shared shared;
  std::vector<std::vector<Lifted>> lifted;
  const std::vector<std::uint32_t> processes = ProcessesOf(runs, wanted);
  const auto stay = NamesOfFailing(CallsOf(runs.back(), processes.back()));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    lifted.push_back(LiftRun(runs[i], CallsOf(runs[i], processes[i]), stay, &shared, places, lost));
  }
  std::vector<Lifted>& path = lifted.back();
  const FunctionReturns returns(runs, wanted);
  std::uint64_t returned = FunctionReturns::kNever;  // in the last run
  CallList list;
  list.stages.emplace_back();
  for (Lifted& call : path) {
    const std::size_t next = list.stages.size() - 1;  // the fault that is waited for
    if (next < faults.size() && call.made.record->fault == next + 1) {
      FailingStep failing{std::move(call.step), faults[next]};
      failing.step.succeeded = true;
      std::vector<Lifted>& before = lifted[next];
      const auto same = std::find_if(before.begin(), before.end(), [&](const Lifted& other) { return other.made.name == call.made.name; });
      if (same == before.end()) {
        return Status(Exit::Environment, "the run without the fault makes no call number " + std::to_string(call.made.name.second) +
                                             " of " + std::string(driver::Name(call.made.name.first)));
      }
      const std::uint64_t before_returned = returns.In(runs[next], same->made.record->begin);
      for (auto rest = same + 1; rest != before.end(); ++rest) {
        rest->step.goes_on = rest->made.record->begin >= before_returned;
        list.stages.back().rest.push_back(rest->step);
      }
      if (next + 1 == faults.size()) returned = returns.In(runs.back(), call.made.record->begin);
      list.stages.back().failing = std::move(failing);
      list.stages.emplace_back();
      continue;
    }
    call.step.goes_on = call.made.record->begin >= returned;
    list.stages.back().steps.push_back(std::move(call.step));
  }
  if (list.stages.size() != faults.size() + 1) return Status(Exit::Environment, "a fault did not fire in the recorded trial");
  list.variables = shared.variables.Take();
  return list;
}

}  // namespace cuaudit::harness
