// SPDX-License-Identifier: MIT
// effects.h: what each base entry point does to resources, and which errors it may answer.
//
//   Owns      nothing; constant tables made from effects.def and from the result codes that the toolkit's headers document.
//   Threads   safe everywhere; no state.
//   Errors    LegalCodes lists CUDA_ERROR_* values only; it is empty where the headers document none and nothing was observed.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0; observed_codes.def for codes seen in the field.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

#include "faults/driver/call_id.h"
#include "faults/driver/kinds.h"

namespace cuaudit::driver {

enum class Effect : std::uint8_t {
  Describes,        // answers about the API itself; refusing it proves nothing about resources, so sweeps leave it alone
  Queries,          // reads state
  Uses,             // works with objects that must be alive
  Acquires,         // makes the object written to *object
  AcquiresCounted,  // makes it with `bytes` references
  AcquiresGiven,    // the object is named by the caller: a registered or mapped address
  Retains,          // one more reference to an object that exists, or an object with one reference
  RetainsCounted,   // `bytes` more references
  Releases,
  ReleasesCounted,  // gives back `bytes` references
  ReleasesRange,    // releases every object inside [object, object + bytes)
  ReleasesPointee,  // the argument points to the handle
  RetainsPrimary,
  ReleasesPrimary,
  ResetsPrimary,  // destroys the primary context whatever its count
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
  GraphRetains,   // a graph takes `bytes` references of a user object, the caller's own ones with CU_GRAPH_USER_OBJECT_MOVE
  GraphReleases,  // a graph gives back `bytes` references
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

// True where the call makes, retains or maps something that a later call has to give back.
bool IsAcquire(Effect effect) noexcept;
// True where the call gives something back, the context stack included.
bool IsRelease(Effect effect) noexcept;

// The code a sweep injects when nobody chose one: the likeliest legal failure of that call, CUDA_SUCCESS where none is legal.
CUresult DefaultCode(BaseId base) noexcept;

}  // namespace cuaudit::driver
