// SPDX-License-Identifier: MIT
// setting_use.cc: which calls work with a setting.
#include <algorithm>
#include <iterator>

#include "faults/driver/effects.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/context/put_back_calls.h"
#include "harness/verdict/context/setting_changes.h"

namespace cuaudit::harness {

using driver::BaseId;
using driver::Kind;
using driver::SettingOf;
using faults::Record;

namespace {

// True for what a tear-down begins with: it waits, and fetches the last result. No setting changes what becomes of that.
bool WindsUp(const Record& record) {
  switch (BaseOf(record)) {
    case BaseId::CtxSynchronize:
    case BaseId::StreamSynchronize:
    case BaseId::StreamQuery:
    case BaseId::StreamWaitEvent:
    case BaseId::EventRecord:
    case BaseId::EventSynchronize:
    case BaseId::MemcpyDtoH:
    case BaseId::MemcpyDtoHAsync:
    case BaseId::MemPoolTrimTo:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool WorksWith(const Setting& setting, const Record& record, std::uint64_t current) {
  const driver::EffectRow& row = driver::EffectOf(BaseOf(record));
  if (record.pid != setting.pid || WindsUp(record) || SetterOf(record) != nullptr) return false;
  const bool names_its_pool = BaseOf(record) == BaseId::MemAllocFromPoolAsync;
  const bool takes_from_pool = driver::IsAcquire(row.effect) && row.kind == Kind::StreamOrderedMemory && !names_its_pool;
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
      return takes_from_pool && setting.row->set == BaseId::DeviceSetMemPool;
    case SettingOf::MemoryPool:
      return takes_from_pool || names();
    case SettingOf::Function:
    case SettingOf::Kernel:
    case SettingOf::Stream:
    case SettingOf::Memory:
    case SettingOf::Executable:
      return names();
  }
  return false;
}

}  // namespace cuaudit::harness
