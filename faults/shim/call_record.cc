// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/call_record.h"

#include <string.h>

#include "faults/driver/effects.h"
#include "faults/driver/shape.h"

namespace cuaudit::faults {

using driver::Effect;

std::uint32_t CountCall(driver::CallId call, Journal* journal) noexcept {
  return journal->header().occurrences[driver::Index(driver::BaseOf(call))].fetch_add(1, std::memory_order_relaxed) + 1;
}

void FillArguments(const Passage& passage, bool nested, driver::DriverRef next, Journal* journal) noexcept {
  const driver::EffectRow& row = driver::EffectOf(driver::BaseOf(passage.id));
  Record* const record = passage.record;
  record->occurrence = passage.occurrence;
  if (nested) record->flags |= kNested;
  if (!next.table->modelled[driver::Index(passage.id)]) record->flags |= kUnmodelled;
  if (driver::RecordsContext(row.effect)) {
    CUcontext current = nullptr;
    if (next.CtxGetCurrent(&current) == CUDA_SUCCESS) record->context = reinterpret_cast<std::uintptr_t>(current);
  }
  const driver::Shape& shape = driver::ShapeOf(passage.id);
  for (std::size_t i = 0; i < shape.count && i < kRecordArguments; ++i) {
    if (!shape.parameter[i].output && !(journal->recording() && IsData(row.base, i))) record->argument[i] = passage.value[i];
  }
  if (row.effect == Effect::ReleasesPointee && passage.value[0] != 0) {
    memcpy(&record->argument[0], reinterpret_cast<const void*>(passage.value[0]), sizeof(record->argument[0]));
  }
}

void FillOutputs(const Passage& passage) noexcept {
  const driver::Shape& shape = driver::ShapeOf(passage.id);
  const bool keep_first = driver::EffectOf(driver::BaseOf(passage.id)).effect == Effect::ReleasesPointee;
  for (std::size_t i = 0; i < shape.count && i < kRecordArguments; ++i) {
    const driver::Parameter& parameter = shape.parameter[i];
    if (parameter.output && passage.value[i] != 0 && !(keep_first && i == 0)) {
      memcpy(&passage.record->argument[i], reinterpret_cast<const void*>(passage.value[i]), parameter.size);
    }
  }
}

namespace {

// Of a window its size: one of no bytes is none, whatever else it says.
std::uint64_t StreamAttribute(std::uint64_t attribute, const CUstreamAttrValue& value) noexcept {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      return value.accessPolicyWindow.num_bytes;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      return std::uint64_t{value.memSyncDomainMap.remote} << 8U | value.memSyncDomainMap.default_;
    default: {  // a number of 32 bits
      std::uint32_t number = 0;
      memcpy(&number, &value, sizeof(number));
      return number;
    }
  }
}

}  // namespace

void ReadSetting(const Passage& passage) noexcept {
  const driver::BaseId base = driver::BaseOf(passage.id);
  std::uint64_t* const behind = passage.record->argument + driver::ShapeOf(passage.id).count;
  const auto* const value = reinterpret_cast<const void*>(passage.value[2]);
  if (base == driver::BaseId::ThreadExchangeStreamCaptureMode) *behind = passage.given;
  if (base == driver::BaseId::MemPoolSetAttribute || base == driver::BaseId::MemPoolGetAttribute) {
    // Attributes of newer drivers may be smaller.
    const bool is_wide = passage.value[1] >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && passage.value[1] <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    memcpy(behind, value, is_wide ? sizeof(cuuint64_t) : sizeof(int));
  }
  if (base == driver::BaseId::StreamSetAttribute || base == driver::BaseId::StreamGetAttribute)
    *behind = StreamAttribute(passage.value[1], *static_cast<const CUstreamAttrValue*>(value));
}

void WriteGarbage(const Passage& passage) noexcept {
  const driver::Shape& shape = driver::ShapeOf(passage.id);
  for (std::size_t i = 0; i < shape.count; ++i) {
    if (!shape.parameter[i].output || passage.value[i] == 0) continue;
    memset(reinterpret_cast<void*>(passage.value[i]), 0xA5, shape.parameter[i].size);
  }
}

void WriteMark(Journal* journal, MarkKind kind, std::uint32_t value, const std::uint64_t* device_bytes) noexcept {
  if (journal == nullptr) return;
  JournalHeader& header = journal->header();
  if (kind == MarkKind::CycleBegin) header.cycle.fetch_add(1, std::memory_order_relaxed);
  if (kind == MarkKind::Phase)
    header.phase.store(value <= static_cast<std::uint32_t>(Phase::Unwind) ? value : 0, std::memory_order_relaxed);
  Record* record = NewRecord(journal, RecordKind::Mark, static_cast<std::uint16_t>(kind));
  if (record == nullptr) return;
  record->argument[0] = value;
  if (device_bytes != nullptr) {
    record->argument[1] = 1;
    record->argument[2] = *device_bytes;
  }
  journal->Finish(record);
  if (kind == MarkKind::CycleEnd) header.phase.store(0, std::memory_order_relaxed);
}

void WriteProcess(Journal* journal, ProcessEvent event, std::uint64_t argument) noexcept {
  Record* record = NewRecord(journal, RecordKind::Process, static_cast<std::uint16_t>(event));
  if (record == nullptr) return;
  record->argument[0] = argument;
  journal->Finish(record);
}

void WriteBlock(Journal* journal, StackTable* stacks, MarkKind kind, std::uint64_t address, std::uint64_t bytes) noexcept {
  Record* record = NewRecord(journal, RecordKind::Mark, static_cast<std::uint16_t>(kind));
  if (record == nullptr) return;
  record->argument[0] = address;
  record->argument[1] = bytes;
  if (stacks != nullptr) record->stack = stacks->Capture();
  journal->Finish(record);
}

void WriteMisuse(Journal* journal, const driver::Misuse& misuse) noexcept {
  Record* record = NewRecord(journal, RecordKind::Misuse, static_cast<std::uint16_t>(misuse.rule));
  if (record == nullptr) return;
  record->argument[0] = static_cast<std::uint64_t>(misuse.kind);
  record->argument[1] = misuse.object;
  record->argument[2] = misuse.bytes;
  record->argument[3] = misuse.origin;
  record->argument[4] = misuse.other;
  record->argument[5] = misuse.refused_wait ? 1 : 0;
  journal->Finish(record);
}

}  // namespace cuaudit::faults
