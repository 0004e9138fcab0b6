// SPDX-License-Identifier: MIT
#include "harness/ledger/arguments.h"

#include <algorithm>
#include <array>

#include "faults/driver/result.h"

namespace cuaudit::harness {
namespace {

using driver::BaseId;
using driver::Family;

struct Correction {
  BaseId base;
  int index;
  Family family;
};

// Handles that the headers declare as plain integers, and addresses that a call only asks about, hints at or is about to reuse.
constexpr Correction kCorrections[] = {
    {BaseId::TexObjectDestroy, 0, Family::TextureObject},
    {BaseId::TexObjectGetResourceDesc, 1, Family::TextureObject},
    {BaseId::TexObjectGetResourceViewDesc, 1, Family::TextureObject},
    {BaseId::TexObjectGetTextureDesc, 1, Family::TextureObject},
    {BaseId::SurfObjectDestroy, 0, Family::SurfaceObject},
    {BaseId::SurfObjectGetResourceDesc, 1, Family::SurfaceObject},
    {BaseId::MemMap, 0, Family::None},
    {BaseId::MemMap, 3, Family::PhysicalMemory},
    {BaseId::MemUnmap, 0, Family::None},
    {BaseId::MemAddressReserve, 3, Family::None},
    {BaseId::MemAddressFree, 0, Family::None},
    {BaseId::MemSetAccess, 0, Family::None},
    {BaseId::MemGetAccess, 2, Family::None},
    {BaseId::MemRelease, 0, Family::PhysicalMemory},
    {BaseId::MemExportToShareableHandle, 1, Family::PhysicalMemory},
    {BaseId::MemGetAllocationPropertiesFromHandle, 1, Family::PhysicalMemory},
    {BaseId::MulticastAddDevice, 0, Family::PhysicalMemory},
    {BaseId::MulticastBindMem, 0, Family::PhysicalMemory},
    {BaseId::MulticastBindMem, 2, Family::PhysicalMemory},
    {BaseId::MulticastBindAddr, 0, Family::PhysicalMemory},
    {BaseId::MulticastUnbind, 0, Family::PhysicalMemory},
    {BaseId::PointerGetAttribute, 2, Family::None},
    {BaseId::PointerGetAttributes, 3, Family::None},
    {BaseId::PointerSetAttribute, 2, Family::None},
    {BaseId::MemGetAddressRange, 2, Family::None},
};

constexpr std::array<bool, driver::kBaseCount> Corrected() {
  std::array<bool, driver::kBaseCount> corrected{};
  for (const Correction& row : kCorrections) corrected[driver::Index(row.base)] = true;
  return corrected;
}
constexpr std::array<bool, driver::kBaseCount> kCorrected = Corrected();

}  // namespace

Answer AnswerOf(const faults::Record& record) noexcept {
  if (record.end == 0) return Answer::Unfinished;
  if ((record.flags & faults::kInjected) != 0) {
    return (record.flags & faults::kForwarded) != 0 ? Answer::After : Answer::Refused;
  }
  if (record.result == CUDA_SUCCESS) return Answer::Succeeded;
  if (record.result == CUDA_ERROR_DEINITIALIZED) return Answer::TornDown;
  return driver::IsSticky(static_cast<CUresult>(record.result)) ? Answer::Refused : Answer::Failed;
}

bool SaysNoSuchMemory(const faults::Record& record) noexcept {
  const Answer answer = AnswerOf(record);
  return answer == Answer::Unfinished || (answer == Answer::Failed && record.result == CUDA_ERROR_INVALID_VALUE);
}

Family ArgumentFamily(driver::CallId call, std::size_t index) noexcept {
  const driver::Shape& shape = driver::ShapeOf(call);
  if (index >= shape.count) return Family::None;
  const Family family = shape.parameter[index].family;
  const BaseId base = driver::BaseOf(call);
  if (shape.parameter[index].output || !kCorrected[driver::Index(base)]) return family;
  for (const Correction& row : kCorrections) {
    if (row.base == base && row.index == static_cast<int>(index)) return row.family;
  }
  return family;
}

std::uint64_t ObjectHandle(const faults::Record& record, const driver::EffectRow& row) noexcept {
  const std::uint64_t named = ArgumentAt(record, row.object);
  if (row.kind != driver::Kind::PeerAccess || named == 0) return named;
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;  // handles are far smaller, so two pairs do not get one number
  return named + record.context * kOdd;
}

std::uint64_t BytesOf(const faults::Record& record, const driver::EffectRow& row) noexcept {
  // cuMemAllocPitch(pointer, pitch, width, height, element): the pitch is known only after the call.
  if (row.base == BaseId::MemAllocPitch) return std::max(record.argument[1], record.argument[2]) * record.argument[3];
  return ArgumentAt(record, row.bytes);
}

std::uint64_t ParentOf(const faults::Record& record, const driver::EffectRow& row) noexcept {
  if (row.base == BaseId::MemAllocFromPoolAsync) return record.argument[2];
  if (row.base == BaseId::CtxEnablePeerAccess) return record.argument[0];
  if (row.effect == driver::Effect::AddsNode || row.effect == driver::Effect::Instantiates) return record.argument[1];
  if (row.base == BaseId::GreenCtxStreamCreate || row.base == BaseId::ExternalMemoryGetMappedBuffer ||
      row.base == BaseId::ExternalMemoryGetMappedMipmappedArray) {
    return record.argument[1];
  }
  return 0;
}

}  // namespace cuaudit::harness
