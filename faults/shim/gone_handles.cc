// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/gone_handles.h"

#include <string.h>

#include "faults/driver/effects.h"
#include "faults/driver/shape.h"

namespace cuaudit::faults {
namespace {

using driver::Effect;

// Of a parameter that carries a handle which is an address in the driver's own memory; of all others None, device memory among them: the
// driver checks those addresses itself. Where the type does not tell (texture objects), the effect does.
driver::Family HandleFamily(const driver::EffectRow& row, const driver::Shape& shape, std::size_t i) noexcept {
  if (shape.parameter[i].size != sizeof(std::uint64_t)) return driver::Family::None;
  driver::Family family = shape.parameter[i].family;
  if (family == driver::Family::None && row.object == static_cast<int>(i)) family = driver::FamilyOf(row.kind);
  switch (family) {
    case driver::Family::PrimaryContext:  // it is named by its device, or made under its context's handle
      return shape.parameter[i].output ? driver::Family::Context : driver::Family::None;
    case driver::Family::Pointer:
    case driver::Family::HostPointer:
    case driver::Family::HostRegistration:
    case driver::Family::AddressReservation:
    case driver::Family::PhysicalMemory:
    case driver::Family::Mapping:
      return driver::Family::None;
    default:
      return family;
  }
}

}  // namespace

void GoneHandles::Answer(Passage* passage) const noexcept {
  const driver::EffectRow& row = driver::EffectOf(driver::BaseOf(passage->id));
  const driver::Shape& shape = driver::ShapeOf(passage->id);
  for (std::size_t i = 0; i < shape.count; ++i) {
    const driver::Family family = HandleFamily(row, shape, i);
    if (family == driver::Family::None || shape.parameter[i].output || !Has(family, passage->value[i])) continue;
    passage->injected = CUDA_ERROR_INVALID_HANDLE;  // no fault of the plan: the record has none
    passage->how = How::Refuse;
    passage->forward = false;
    return;
  }
}

void GoneHandles::After(const Passage& passage) noexcept {
  const driver::EffectRow& row = driver::EffectOf(driver::BaseOf(passage.id));
  const driver::Shape& shape = driver::ShapeOf(passage.id);
  const bool ends = row.effect == Effect::Releases || row.effect == Effect::DestroysContext;
  // The end of peer access names a context, which stays.
  if (passage.injected != CUDA_SUCCESS && row.object >= 0 && ends && row.kind != driver::Kind::PeerAccess) {
    const auto object = static_cast<std::size_t>(row.object);
    const driver::Family family = HandleFamily(row, shape, object);
    if (family != driver::Family::None) Add(family, passage.value[object]);
  }
  // What is current, or is popped, may be a context that is gone; whatever else the driver names is there.
  if (!any() || row.effect == Effect::PopsContext || row.base == driver::BaseId::CtxGetCurrent) return;
  for (std::size_t i = 0; i < shape.count; ++i) {
    const driver::Family family = HandleFamily(row, shape, i);
    if (family == driver::Family::None || !shape.parameter[i].output || passage.value[i] == 0) continue;
    std::uint64_t named = 0;
    memcpy(&named, reinterpret_cast<const void*>(passage.value[i]), sizeof(named));
    Remove(family, named);
  }
}

}  // namespace cuaudit::faults
