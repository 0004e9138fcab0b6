// SPDX-License-Identifier: MIT
#include "harness/verdict/context/setting_changes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/driver/shape.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/context/put_back_calls.h"

namespace cuaudit::harness {

using driver::Effect;
using driver::Kind;
using driver::SettingOf;
using driver::SettingRow;
using faults::Record;

namespace {

const SettingRow* RowOf(const Record& record, driver::BaseId SettingRow::*call) {
  const driver::BaseId base = BaseOf(record);
  const auto row =
      std::find_if(std::begin(driver::kSettings), std::end(driver::kSettings), [&](const SettingRow& one) { return one.*call == base; });
  return row == std::end(driver::kSettings) ? nullptr : row;
}

}  // namespace

// Whose accesses are advised about is in a structure, which is not recorded.
const SettingRow* SetterOf(const Record& record) {
  const SettingRow* const row = RowOf(record, &SettingRow::set);
  const bool is_told = row == nullptr || row->of != SettingOf::Memory || record.argument[2] <= CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
  return is_told ? row : nullptr;
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

std::uint64_t GivenBy(const Record& record, const SettingRow& row) {
  return row.of == SettingOf::Memory ? IsAdvised(record) : SettingArgument(record, row.value);
}

Setting SettingOfCall(const Record& record, const SettingRow& row, std::int8_t object, std::int8_t key, std::uint64_t current) {
  Setting setting = {record.pid, &row, SettingArgument(record, object), SettingArgument(record, key)};
  if (row.of == SettingOf::Context) setting.object = current;
  if (row.of == SettingOf::Thread) setting.object = record.tid;
  if (row.of == SettingOf::Kernel) setting.key |= record.argument[3] << 32U;
  if (row.of == SettingOf::Memory && !IsAdvised(record)) --setting.key;
  return setting;
}

std::optional<std::uint64_t> InitialOf(const Setting& setting) {
  for (const driver::InitialRow& row : driver::kInitialSettings) {
    if (row.set == setting.row->set && row.key == setting.key) return row.value;
  }
  return std::nullopt;
}

// A call that records which context is current tells it of all calls of its thread since the one before.
std::vector<std::uint64_t> CurrentContexts(const Evidence& run) {
  const std::vector<std::uint32_t>& calls = run.facts().calls;
  struct Thread {
    std::vector<std::size_t> untold;
    std::uint64_t context = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Thread> threads;
  std::vector<std::uint64_t> current(calls.size(), 0);
  for (std::size_t step = 0; step < calls.size(); ++step) {
    const Record& record = run.record(calls[step]);
    const Effect effect = EffectOfCall(record);
    Thread& thread = threads[{record.pid, record.tid}];
    thread.untold.push_back(step);
    if (!driver::RecordsContext(effect)) continue;
    for (const std::size_t one : thread.untold) current[one] = record.context;
    thread.untold.clear();
    thread.context = record.context;
    const Answer answer = AnswerOf(record);
    if (!driver::MovesContext(effect) || (answer != Answer::Succeeded && answer != Answer::After)) continue;
    thread.context = driver::IsRelease(effect) ? 0 : record.argument[0];
  }
  for (const auto& [name, thread] : threads) {
    for (const std::size_t one : thread.untold) current[one] = thread.context;
  }
  return current;
}

bool FreesMemoryAt(const Evidence& run, const Record& record, std::uint64_t address) {
  const std::uint64_t base = record.argument[0];
  const auto holds = [&](const Object& one) {
    return one.handle == base && one.pid == record.pid && address - base < std::max<std::uint64_t>(one.bytes, 1);
  };
  return address >= base && std::any_of(run.ledger->objects.begin(), run.ledger->objects.end(), holds);
}

// True for a call that ends what has the setting, or tries to. A pool that a device took its memory from gives way to the default one.
bool Ends(const Evidence& run, const Record& record, const Setting& setting, std::uint64_t value) {
  const driver::EffectRow& row = driver::EffectOf(BaseOf(record));
  if (!driver::IsRelease(row.effect) || record.pid != setting.pid) return false;
  const bool primary = row.effect == Effect::ReleasesPrimary || row.effect == Effect::ResetsPrimary;
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
  }
  return false;
}

struct Known {
  std::optional<std::uint64_t> value;
  std::vector<std::size_t> open;  // changes that are not undone
};

class Reader {
 public:
  explicit Reader(const Evidence& run) : run_(run) { read_.current = CurrentContexts(run); }

  void Read(std::size_t step) {
    const Record& record = run_.record(run_.facts().calls[step]);
    if (driver::IsRelease(EffectOfCall(record)))
      std::erase_if(known_, [&](const auto& one) { return Ends(run_, record, one.first, one.second.value.value_or(0)); });
    if (const SettingRow* const row = SetterOf(record)) Set(record, *row, step);
    else if (const SettingRow* const asked = QuestionOf(record)) Ask(record, *asked, step);
  }
  SettingChanges Take() { return std::move(read_); }

 private:
  Known& Of(const Setting& setting) { return known_.try_emplace(setting, Known{InitialOf(setting), {}}).first->second; }

  // Who is not told the value cannot put it back.
  void Ask(const Record& record, const SettingRow& row, std::size_t step) {
    const Setting setting = SettingOfCall(record, row, row.object_asked, row.key_asked, read_.current[step]);
    Known& known = Of(setting);
    known.value.reset();
    if (AnswerOf(record) == Answer::Succeeded) known.value = SettingArgument(record, row.answer);
  }

  void Set(const Record& record, const SettingRow& row, std::size_t step) {
    const Setting setting = SettingOfCall(record, row, row.object, row.key, read_.current[step]);
    const bool is_unnamed = row.of == SettingOf::Stream && IsStandardStream(setting.object);  // each context has its own
    if (is_unnamed || (row.of == SettingOf::Context && setting.object == 0)) return;
    Known& known = Of(setting);
    const Answer answer = AnswerOf(record);
    const bool changes = answer == Answer::Succeeded || answer == Answer::After;
    const bool tells_value = changes || static_cast<std::size_t>(row.value) < driver::ShapeOf(CallOf(record)).count;
    const std::uint64_t value = GivenBy(record, row);
    const auto undone = std::erase_if(known.open, [&](std::size_t one) {
      SettingChange& change = read_.changes[one];
      if (tells_value ? value != change.before : record.stack == change.record->stack) return false;
      change.undone = step;
      return true;
    });
    if (!changes) return;
    if (row.get == row.set) known.value = SettingArgument(record, row.answer);
    if (known.value && *known.value != value && undone == 0) {
      known.open.push_back(read_.changes.size());
      read_.changes.push_back({setting, &record, step, *known.value, value, kNoCall, answer == Answer::After});
    }
    known.value = value;
    read_.calls.push_back({setting, step, value});
  }

  const Evidence& run_;
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

std::size_t EndOf(const Evidence& run, const SettingChange& change) {
  const std::vector<std::uint32_t>& calls = run.facts().calls;
  for (std::size_t step = change.step + 1; step < calls.size(); ++step) {
    if (Ends(run, run.record(calls[step]), change.setting, change.value)) return step;
  }
  return kNoCall;
}

bool WorksWith(const Setting& setting, const Record& record, std::uint64_t current) {
  const driver::EffectRow& row = driver::EffectOf(BaseOf(record));
  if (record.pid != setting.pid || SetterOf(record) != nullptr) return false;
  const bool waits = BaseOf(record) == driver::BaseId::StreamSynchronize || BaseOf(record) == driver::BaseId::StreamQuery;
  const bool takes_from_pool = driver::IsAcquire(row.effect) && row.kind == Kind::StreamOrderedMemory;
  const auto names = [&] {
    return std::find(std::begin(record.argument), std::end(record.argument), setting.object) != std::end(record.argument) &&
           !driver::IsRelease(row.effect) && !OnlyLooks(record, row.effect);
  };
  switch (setting.row->of) {
    case SettingOf::Context:
      return current == setting.object && NeedsCurrent(record, row.effect);
    case SettingOf::Thread:
      return record.tid == setting.object && NeedsCurrent(record, row.effect);
    case SettingOf::Device:
      return takes_from_pool && setting.row->set == driver::BaseId::DeviceSetMemPool;
    case SettingOf::MemoryPool:
      return takes_from_pool || names();
    case SettingOf::Function:
    case SettingOf::Kernel:
    case SettingOf::Memory:
      return names();
    case SettingOf::Stream:
      return names() && !waits;
  }
  return false;
}

}  // namespace cuaudit::harness
