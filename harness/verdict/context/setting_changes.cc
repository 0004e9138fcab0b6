// SPDX-License-Identifier: MIT
#include "harness/verdict/context/setting_changes.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/driver/shape.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/context/work_contexts.h"

namespace cuaudit::harness {

using driver::BaseId;
using driver::Effect;
using driver::Kind;
using driver::SettingOf;
using driver::SettingRow;
using faults::Record;

namespace {

const SettingRow* RowOf(const Record& record, BaseId SettingRow::*call) {
  const BaseId base = BaseOf(record);
  const auto row =
      std::find_if(std::begin(driver::kSettings), std::end(driver::kSettings), [&](const SettingRow& one) { return one.*call == base; });
  return row == std::end(driver::kSettings) ? nullptr : row;
}

}  // namespace

// Advice about who accesses memory is one setting for each who does.
const SettingRow* SetterOf(const Record& record) {
  const SettingRow* const row = RowOf(record, &SettingRow::set);
  return row != nullptr && row->of == SettingOf::Memory && record.argument[2] > CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION ? nullptr : row;
}
const SettingRow* QuestionOf(const Record& record) { return RowOf(record, &SettingRow::get); }

// Numbers of 32 bits are recorded with their sign where a call is given them, and without it where it answers them.
std::uint64_t SettingArgument(const Record& record, std::int8_t index) {
  if (index == driver::kNo) return 0;
  const driver::Shape& shape = driver::ShapeOf(CallOf(record));
  const auto at = static_cast<std::size_t>(index);
  const bool is_narrow = at < shape.count && shape.parameter[at].size == sizeof(std::uint32_t);
  return is_narrow ? static_cast<std::uint32_t>(record.argument[at]) : record.argument[at];
}

namespace {

// Each advice is followed by the one that takes it back.
bool IsAdvised(const Record& record) { return record.argument[2] % 2 == 1; }

// A location, or whether it is advised. The older call has the number of a device, or CU_DEVICE_CPU.
std::uint64_t AdviceOf(const Record& record) {
  if (record.argument[2] != CU_MEM_ADVISE_SET_PREFERRED_LOCATION) return IsAdvised(record);
  auto location = std::bit_cast<CUmemLocation>(record.argument[3]);
  if (driver::ShapeOf(CallOf(record)).parameter[3].size == sizeof(CUdevice)) {
    location.id = static_cast<CUdevice>(record.argument[3]);
    location.type = location.id == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  }
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE && location.type != CU_MEM_LOCATION_TYPE_HOST_NUMA) location.id = 0;
  return std::bit_cast<std::uint64_t>(location);
}

Setting SettingOfCall(const Record& record, const SettingRow& row, std::int8_t object, std::int8_t key, std::uint64_t current) {
  Setting setting = {record.pid, &row, SettingArgument(record, object), SettingArgument(record, key)};
  if (row.of == SettingOf::Context) setting.object = current;
  if (row.of == SettingOf::Thread) setting.object = record.tid;
  if (row.of == SettingOf::Kernel) setting.key |= record.argument[3] << 32U;
  if (row.of == SettingOf::Memory && !IsAdvised(record)) --setting.key;
  return setting;
}

// The default memory pool of a device, whose handle a run may never be told.
constexpr std::uint64_t kDefaultPool = 0;

std::optional<std::uint64_t> InitialOf(const Setting& setting) {
  if (setting.row->set == BaseId::DeviceSetMemPool) return kDefaultPool;
  if (setting.row->set == BaseId::GraphNodeSetEnabled) return 1;  // of every node
  for (const driver::InitialRow& row : driver::kInitialSettings) {
    if (row.set == setting.row->set && row.key == setting.key) return row.value;
  }
  return std::nullopt;
}

bool FreesMemoryAt(const Evidence& run, const Record& record, std::uint64_t address) {
  const std::uint64_t base = record.argument[0];
  const auto holds = [&](const Object& one) {
    return one.handle == base && one.pid == record.pid && address - base < std::max<std::uint64_t>(one.bytes, 1);
  };
  return address >= base && std::any_of(run.ledger->objects.begin(), run.ledger->objects.end(), holds);
}

bool IsPrimary(Effect effect) { return effect == Effect::ReleasesPrimary || effect == Effect::ResetsPrimary; }

bool MayEndSettings(const driver::EffectRow& row) {
  constexpr Kind kKinds[] = {Kind::MemoryPool,     Kind::GreenContext, Kind::Module,        Kind::Library,
                             Kind::Stream,         Kind::DeviceMemory, Kind::ManagedMemory, Kind::StreamOrderedMemory,
                             Kind::ExecutableGraph};
  const bool kind = std::find(std::begin(kKinds), std::end(kKinds), row.kind) != std::end(kKinds);
  return driver::IsRelease(row.effect) && (kind || IsPrimary(row.effect) || row.effect == Effect::DestroysContext);
}

// True for a call that ends what has the setting, or tries to. A pool that a device took its memory from gives way to the default one.
bool Ends(const Evidence& run, const Record& record, const Setting& setting, std::uint64_t value) {
  const driver::EffectRow& row = driver::EffectOf(BaseOf(record));
  const bool primary = IsPrimary(row.effect);
  const bool pool = row.effect == Effect::Releases && row.kind == Kind::MemoryPool;
  const bool context = primary || row.effect == Effect::DestroysContext;
  switch (setting.row->of) {
    case SettingOf::Context:
      if (row.effect == Effect::DestroysContext) return record.argument[0] == setting.object;
      return row.kind == Kind::GreenContext || (primary && IsGone(run, record.pid, setting.object, record.end));
    case SettingOf::Thread:
      return false;
    case SettingOf::Device:
      return primary ? record.argument[0] == setting.object : pool && record.argument[0] == value;
    case SettingOf::MemoryPool:
      return pool && record.argument[0] == setting.object;
    case SettingOf::Function:
      return context || row.kind == Kind::Module || row.kind == Kind::Library;
    case SettingOf::Kernel:
      return row.kind == Kind::Library;
    case SettingOf::Stream:
      return context || (row.kind == Kind::Stream && record.argument[0] == setting.object);
    case SettingOf::Memory:
      return context || FreesMemoryAt(run, record, setting.object);
    case SettingOf::Executable:
      return row.kind == Kind::ExecutableGraph && record.argument[0] == setting.object;
  }
  return false;
}

struct Known {
  std::optional<std::uint64_t> value;
  bool found = false;                                   // the program was told it, or a new object has it
  std::size_t given = kNoCall;                          // the call that gave it
  std::multimap<std::uint64_t, std::size_t> open = {};  // changes that are not undone, by the former value
  std::vector<std::size_t> made = {};                   // all changes
};

class Reader {
 public:
  explicit Reader(const Evidence& run) : run_(run) {
    read_.current = CurrentContexts(run);
    for (const std::uint32_t call : run.facts().calls) {
      const Record& record = run.record(call);
      if (BaseOf(record) == BaseId::DeviceGetDefaultMemPool && AnswerOf(record) == Answer::Succeeded)
        default_pools_.insert(record.argument[0]);
    }
  }

  void Read(std::size_t step) {
    const Record& record = run_.call(step);
    NoteOrigin(record);
    End(record, step);
    if (const SettingRow* const row = SetterOf(record)) Set(record, *row, step);
    else if (const SettingRow* const asked = QuestionOf(record)) Ask(record, *asked, step);
  }
  SettingChanges Take() { return std::move(read_); }

 private:
  std::uint64_t SettingAt(const Record& record, const SettingRow& row, std::int8_t index) const {
    const std::uint64_t value = SettingArgument(record, index);
    return row.set == BaseId::DeviceSetMemPool && default_pools_.count(value) != 0 ? kDefaultPool : value;
  }

  Known& Of(const Setting& setting) {
    const std::optional<std::uint64_t> initial = InitialOf(setting);
    return known_.try_emplace(setting, Known{initial, initial.has_value()}).first->second;
  }

  void NoteOrigin(const Record& record) {
    const BaseId base = BaseOf(record);
    const bool of_code = base == BaseId::ModuleGetFunction || base == BaseId::LibraryGetKernel || base == BaseId::LibraryGetModule;
    if ((of_code || base == BaseId::KernelGetFunction) && AnswerOf(record) == Answer::Succeeded)
      origins_[{record.pid, record.argument[0]}] = {record.argument[1], of_code};
  }

  // True for the end of another module or library than the one that the function or kernel comes from. Who listed all of them was not told.
  bool IsElsewhere(const Record& end, const Setting& setting) const {
    bool is_known = false;
    auto of = origins_.find({setting.pid, setting.object});
    for (int steps = 0; steps < 3 && of != origins_.end(); ++steps, of = origins_.find({setting.pid, of->second.handle})) {
      if (of->second.handle == end.argument[0]) return false;
      is_known = of->second.is_code;
    }
    return is_known;
  }

  // A new object may have the same handle.
  void End(const Record& record, std::size_t step) {
    const driver::EffectRow& row = driver::EffectOf(BaseOf(record));
    if (!MayEndSettings(row)) return;
    const bool of_code = row.kind == Kind::Module || row.kind == Kind::Library;
    for (const SettingRow& of : driver::kSettings) {
      const bool is_named = of.of == SettingOf::MemoryPool || (of.of == SettingOf::Context && row.effect == Effect::DestroysContext) ||
                            (of.of == SettingOf::Stream && row.kind == Kind::Stream) || of.of == SettingOf::Executable;
      auto one = known_.lower_bound({record.pid, &of, is_named ? record.argument[0] : 0, 0});
      while (one != known_.end() && one->first.pid == record.pid && one->first.row == &of &&
             (!is_named || one->first.object == record.argument[0])) {
        const auto next = std::next(one);
        if (Ends(run_, record, one->first, one->second.value.value_or(0)) && !(of_code && IsElsewhere(record, one->first))) {
          for (const std::size_t change : one->second.made) read_.changes[change].ended = step;
          known_.erase(one);
        }
        one = next;
      }
    }
    if (of_code)
      std::erase_if(origins_, [&](const auto& one) { return one.first.first == record.pid && one.second.handle == record.argument[0]; });
  }

  // Who is not told the value cannot put it back.
  void Ask(const Record& record, const SettingRow& row, std::size_t step) {
    const Setting setting = SettingOfCall(record, row, row.object_asked, row.key_asked, read_.current[step]);
    Known& known = Of(setting);
    known.value.reset();
    if (AnswerOf(record) != Answer::Succeeded) return;
    known.value = SettingAt(record, row, row.answer);
    known.found = true;
  }

  // The flags of a primary context have two calls that set them. Nobody says what one puts back that the other has changed.
  void SetFlagsOtherwise(const Record& record, std::size_t step) {
    const BaseId set = BaseOf(record);
    if (set != BaseId::CtxSetFlags && set != BaseId::DevicePrimaryCtxSetFlags) return;
    for (auto& [setting, known] : known_) {
      const BaseId other = setting.row->set;
      if (setting.pid != record.pid || other == set || (other != BaseId::CtxSetFlags && other != BaseId::DevicePrimaryCtxSetFlags))
        continue;
      for (const auto& [before, change] : known.open) read_.changes[change].undone = step;
      known.open.clear();
      known.value = std::nullopt;
    }
  }

  // The changes that a call undoes, or tries to, by giving that value.
  std::vector<std::size_t> Undo(std::uint64_t value, std::size_t step, Known* known) {
    const auto [first, last] = known->open.equal_range(value);
    std::vector<std::size_t> undone;
    for (auto one = first; one != last; ++one) {
      read_.changes[one->second].undone = step;
      undone.push_back(one->second);
    }
    known->open.erase(first, last);
    return undone;
  }

  // A call that failed and does not tell its value may have been to undo any change but one of its own.
  void TryAll(const Record& record, std::size_t step, Known* known) {
    for (auto one = known->open.begin(); one != known->open.end();) {
      SettingChange& change = read_.changes[one->second];
      const bool is_own = change.record->stack == record.stack;
      if (!is_own) change.undone = step;
      one = is_own ? std::next(one) : known->open.erase(one);
    }
  }

  void Set(const Record& record, const SettingRow& row, std::size_t step) {
    const Setting setting = SettingOfCall(record, row, row.object, row.key, read_.current[step]);
    const bool is_unnamed = row.of == SettingOf::Stream && IsStandardStream(setting.object);  // each context has its own
    if (is_unnamed || (row.of == SettingOf::Context && setting.object == 0)) return;
    Known& known = Of(setting);
    const Answer answer = AnswerOf(record);
    const std::uint64_t value = row.of == SettingOf::Memory ? AdviceOf(record) : SettingAt(record, row, row.value);
    SetFlagsOtherwise(record, step);
    const bool changes = answer == Answer::Succeeded || answer == Answer::After;
    const bool tells_value = changes || static_cast<std::size_t>(row.value) < driver::ShapeOf(CallOf(record)).count;
    const std::vector<std::size_t> undone = tells_value ? Undo(value, step, &known) : std::vector<std::size_t>();
    if (!tells_value) TryAll(record, step, &known);
    if (!changes) {
      read_.calls[setting].push_back({step, value, true});
      return;
    }
    if (row.get == row.set) {
      known.value = SettingAt(record, row, row.answer);
      known.found = true;
    }
    const auto any = [&](const auto& is) {
      return std::any_of(undone.begin(), undone.end(), [&](std::size_t one) { return is(read_.changes[one]); });
    };
    SettingCall call = {step, value, false, kNoCall, any([](const SettingChange& one) { return one.found; })};
    if (known.value && *known.value != value) {
      call.change = read_.changes.size();
      known.open.emplace(*known.value, call.change);
      known.made.push_back(call.change);
      // The next turn of a loop undoes what the turn before has undone, and is a change all the same.
      const bool undoes = any([](const SettingChange& one) { return !one.undoes; });
      read_.changes.push_back(
          {setting, &record, step, *known.value, value, known.found, known.given, kNoCall, kNoCall, undoes, answer == Answer::After});
    }
    known.value = value;
    known.found = call.puts_back;
    known.given = step;
    read_.calls[setting].push_back(call);
  }

  // What a function, a kernel or a module comes from.
  struct Origin {
    std::uint64_t handle = 0;
    bool is_code = false;  // a module or a library
  };

  const Evidence& run_;
  std::set<std::uint64_t> default_pools_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Origin> origins_;
  SettingChanges read_;
  std::map<Setting, Known> known_;
};

}  // namespace

SettingChanges SettingChangesOf(const Evidence& run) {
  const std::vector<std::uint32_t>& calls = run.facts().calls;
  const bool any = std::any_of(calls.begin(), calls.end(), [&](std::uint32_t call) { return SetterOf(run.record(call)) != nullptr; });
  if (!any) return {};
  Reader reader(run);
  for (std::size_t step = 0; step < calls.size(); ++step) reader.Read(step);
  return reader.Take();
}

}  // namespace cuaudit::harness
