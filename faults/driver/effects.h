// SPDX-License-Identifier: MIT
// effects.h: what each base entry point does to resources, and which errors it may return.
//
// The tables come from effects.def and from the result codes that the toolkit's headers document.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "faults/driver/call_id.h"
#include "faults/driver/kinds.h"

namespace cuaudit::driver {

enum class Effect : std::uint8_t {
  Describes,        // describes the API itself; refusing the call proves nothing about resources, so sweeps leave it alone
  Queries,          // reads state
  Uses,             // works with objects that must be alive
  Acquires,         // makes the object written to *object
  AcquiresCounted,  // makes the object with `bytes` references
  AcquiresGiven,    // makes an object that the caller names: a registered or mapped address
  Retains,          // adds a reference to an existing object, or makes an object with one reference
  RetainsCounted,   // adds `bytes` references
  Releases,
  ReleasesCounted,  // releases `bytes` references
  ReleasesRange,    // releases every object inside [object, object + bytes)
  ReleasesPointee,  // releases the object whose handle the argument points to
  RetainsPrimary,
  ReleasesPrimary,
  ResetsPrimary,  // destroys the primary context whatever its reference count
  CreatesContext,
  DestroysContext,
  PushesContext,
  PopsContext,
  SetsContext,
  AddsNode,
  ClonesGraph,
  BeginsCapture,
  EndsCapture,
  Instantiates,
  UpdatesGraph,
  LaunchesGraph,
  GraphRetains,     // a graph takes `bytes` references of a user object; with CU_GRAPH_USER_OBJECT_MOVE it takes over the caller's
  GraphReleases,    // a graph releases `bytes` references
  MakesDescriptor,  // writes a file descriptor to *object when the handle type asks for one; the program closes it
};

struct EffectRow {
  BaseId base;
  Effect effect;
  Kind kind;
  std::int8_t object;  // argument index, -1: none
  std::int8_t bytes;   // argument index, -1: none
};

const EffectRow& EffectOf(BaseId base) noexcept;
std::span<const CUresult> LegalCodes(BaseId base) noexcept;
bool IsLegalCode(BaseId base, CUresult code) noexcept;

// "acquires counted".
std::string_view Name(Effect effect) noexcept;
// True when the call makes, retains or maps something that a later call must release.
bool IsAcquire(Effect effect) noexcept;
// True when the call releases something; popping the context stack counts.
bool IsRelease(Effect effect) noexcept;
// True when the call makes an object, and does not only add a reference. The program closes a descriptor itself, so none counts.
bool MakesObject(Effect effect) noexcept;
// True when another context may be current afterwards.
bool MovesContext(Effect effect) noexcept;
// True when the record of the call says which context was current.
bool RecordsContext(Effect effect) noexcept;

// The error that a sweep injects by default: the likeliest legal error of the call, or CUDA_SUCCESS when no error is legal.
CUresult DefaultCode(BaseId base) noexcept;

}  // namespace cuaudit::driver
