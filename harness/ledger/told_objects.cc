// SPDX-License-Identifier: MIT
// Other objects that a call names in its Argument records: descriptors that the driver makes or takes over, and the foundations of
// textures, nodes, functions and levels; the external memory that is mapped.
#include "faults/journal/record.h"
#include "harness/ledger/process_fold.h"

namespace cuaudit::harness {
namespace {

using driver::BaseId;
using driver::Family;
using driver::Kind;
using faults::Record;

// The function or kernel that a call launches; 0 for other calls.
std::uint64_t LaunchedCode(const Record& record) {
  switch (BaseOf(record)) {
    case BaseId::LaunchKernel:
    case BaseId::LaunchCooperativeKernel:
      return record.argument[0];
    case BaseId::LaunchKernelEx:
      return record.argument[1];
    default:
      return 0;
  }
}

bool SaysNoSuchFunction(const Record& record) {
  const Answer answer = AnswerOf(record);
  return answer == Answer::Unfinished || (answer == Answer::Failed && record.result == CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace

// A launch that the driver accepts shows that the function is valid: its handle may have been given anew without a record.
void ProcessFold::CheckCode(const Record& record) {
  const std::uint64_t code = LaunchedCode(record);
  if (code == 0 || !SaysNoSuchFunction(record)) return;
  const std::int64_t gone = account_.GoneUnder(kCode, code);
  if (gone >= 0) account_.ViolateFoundation(record, code, gone);
}

// The addresses of a node, and the module or library of the function that it launches.
Graphs::Addresses ProcessFold::WithCode(const Record& record, const Graphs::Addresses& addresses, Told told) {
  std::uint64_t code = LaunchedCode(record);
  for (const Record* const one : told) {
    const bool is_code = (one->flags & faults::kStandsOn) != 0 && one->argument[0] == static_cast<std::uint64_t>(Kind::Module);
    if (is_code) code = one->argument[1];
  }
  Graphs::Addresses all = addresses;
  const std::int64_t under = code == 0 ? -1 : account_.AliveUnderCode(code);
  if (under >= 0) all.push_back(kNeededObject | static_cast<std::uint64_t>(under));
  return all;
}

void ProcessFold::FollowFoundations(const Record& record, Told told) {
  const Answer answer = AnswerOf(record);
  for (const Record* const one : told) {
    const bool named = (one->flags & faults::kNames) != 0 && one->argument[0] < driver::kKindCount;
    if (named) account_.CheckUse(driver::FamilyOf(static_cast<Kind>(one->argument[0])), one->argument[1], record);
  }
  if (answer != Answer::Succeeded && answer != Answer::After) return;
  const auto& argument = record.argument;
  for (const Record* const one : told) {
    if ((one->flags & faults::kDescriptor) != 0) TakeDescriptors(record, *one);
    const Kind made = driver::EffectOf(BaseOf(record)).kind;
    const bool view = made == Kind::TextureObject || made == Kind::SurfaceObject;
    if ((one->flags & faults::kStandsOn) != 0 && view && one->argument[0] < driver::kKindCount)
      account_.StandOn(driver::FamilyOf(made), argument[0], static_cast<Kind>(one->argument[0]), one->argument[1]);
    if ((one->flags & faults::kLends) != 0 && one->argument[0] < driver::kKindCount) {
      const auto kind = static_cast<Kind>(one->argument[0]);
      account_.AcquireUnowned(driver::FamilyOf(kind), one->argument[1], 0, record);  // whoever had the handle before is gone
      if (answer == Answer::Succeeded) account_.Lend(kind, one->argument[1], SiteOf(record), true);
    }
    if ((one->flags & faults::kLaunchWords) == 0) continue;
    for (const std::uint64_t word : one->argument) {
      if (!faults::IsDistinctive(word)) continue;
      for (const Family family : {Family::TextureObject, Family::SurfaceObject}) {
        const std::int64_t gone = account_.Held(family, word) < 0 ? -1 : account_.GoneUnder(family, word);
        if (gone >= 0) account_.ViolateFoundation(record, word, gone);
      }
    }
  }
  if (answer != Answer::Succeeded) return;
  switch (BaseOf(record)) {
    case BaseId::ModuleGetFunction:
      return account_.CodeOf(argument[0], Kind::Module, argument[1]);
    case BaseId::LibraryGetKernel:
      return account_.CodeOf(argument[0], Kind::Library, argument[1]);
    case BaseId::KernelGetFunction:
      return account_.CodeOf(argument[0], Kind::None, argument[1]);
    case BaseId::ModuleGetGlobal:
      return account_.VariableOf(argument[0], argument[1], Kind::Module, argument[2]);
    case BaseId::LibraryGetGlobal:
    case BaseId::LibraryGetManaged:
      return account_.VariableOf(argument[0], argument[1], Kind::Library, argument[2]);
    case BaseId::LibraryGetModule:
      return account_.StandOn(Family::Module, argument[0], Kind::Library, argument[1]);
    case BaseId::MipmappedArrayGetLevel:
      return account_.StandOn(Family::Array, argument[0], Kind::MipmappedArray, argument[1]);
    default:
      return;
  }
}

// Only the host probes see the program close the descriptor, so without them it is not judged.
void ProcessFold::TakeDescriptors(const Record& record, const Record& told) {
  if (!looked_at_) return;
  const std::uint64_t made = told.argument[0];
  if (made != 0 && AnswerOf(record) == Answer::After) account_.AcquireUnowned(Family::FileDescriptor, made, 0, record);
  if (made != 0 && AnswerOf(record) == Answer::Succeeded) {
    Object object = {.kind = Kind::FileDescriptor, .handle = made, .parent = record.argument[1]};
    account_.Acquire(object, record);
  }
  if (told.argument[1] != 0) account_.TakeOver(told.argument[1], record);
}

// True for a descriptor that a driver call has already recorded. A census may find it again, because the driver opens past the wrappers.
bool ProcessFold::IsToldDescriptor(std::uint64_t descriptor) {
  const HandleEntry* const entry = account_.Find(Family::FileDescriptor, descriptor);
  if (entry == nullptr) return false;
  if (entry->top < 0) return entry->borrowed;
  return account_.books().object(entry->top).acquired.record_kind == faults::RecordKind::Call;
}

// The external memory that the call maps; -1: it maps none.
std::int64_t ProcessFold::MappedExternal(const Record& record) {
  const BaseId base = BaseOf(record);
  const bool maps = base == BaseId::ExternalMemoryGetMappedBuffer || base == BaseId::ExternalMemoryGetMappedMipmappedArray;
  return maps ? account_.Held(Family::ExternalMemory, record.argument[1]) : -1;
}

}  // namespace cuaudit::harness
