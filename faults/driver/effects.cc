// SPDX-License-Identifier: MIT
#include "faults/driver/effects.h"

#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace cuaudit::driver {
namespace {

constexpr EffectRow kRows[] = {
#define CUAUDIT_EFFECT(base, effect, kind, object, bytes) {BaseId::base, Effect::effect, Kind::kind, object, bytes},
#include "driver_effects.inc"
#undef CUAUDIT_EFFECT
};

// gen_driver_table.py checks that every base entry point has exactly one row. This proves that it ran on these tables.
static_assert(sizeof(kRows) / sizeof(kRows[0]) == kBaseCount);

constexpr std::array<EffectRow, kBaseCount> Sorted() {
  std::array<EffectRow, kBaseCount> rows{};
  for (const EffectRow& row : kRows) rows[Index(row.base)] = row;
  return rows;
}
constexpr std::array<EffectRow, kBaseCount> kByBase = Sorted();

struct Observed {
  BaseId base;
  CUresult code;
};
constexpr Observed kObserved[] = {
#define CUAUDIT_OBSERVED(base, code, source) {BaseId::base, code},
#include "driver_observed.inc"
#undef CUAUDIT_OBSERVED
};

constexpr std::size_t kMaxCodes = 24;
struct Codes {
  std::array<CUresult, kMaxCodes> code{};
  std::size_t count = 0;
  constexpr void Add(CUresult value) {
    for (std::size_t i = 0; i < count; ++i) {
      if (code[i] == value) return;
    }
    code[count++] = value;
  }
};

template <typename... T>
constexpr Codes Documented(BaseId base, T... listed) {
  Codes codes;
  (codes.Add(listed), ...);
  for (const Observed& row : kObserved) {
    if (row.base == base) codes.Add(row.code);
  }
  return codes;
}

constexpr Codes kCodes[] = {
#define CUAUDIT_CODES(base, ...) Documented(BaseId::base __VA_OPT__(, ) __VA_ARGS__),
#include "driver_codes.inc"
#undef CUAUDIT_CODES
};
static_assert(sizeof(kCodes) / sizeof(kCodes[0]) == kBaseCount);

// Likeliest error first: errors of a busy GPU come before errors that only a wrong program gets.
constexpr CUresult kPreference[] = {
    CUDA_ERROR_OUT_OF_MEMORY,   CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_FAILED,    CUDA_ERROR_ILLEGAL_ADDRESS,
    CUDA_ERROR_UNKNOWN,         CUDA_ERROR_NO_BINARY_FOR_GPU,       CUDA_ERROR_SYSTEM_NOT_READY, CUDA_ERROR_NO_DEVICE,
    CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED,    CUDA_ERROR_INVALID_HANDLE,   CUDA_ERROR_INVALID_VALUE,
    CUDA_ERROR_NOT_INITIALIZED,
};

constexpr CUresult LikeliestOf(const Codes& codes) {
  for (const CUresult preferred : kPreference) {
    for (std::size_t i = 0; i < codes.count; ++i) {
      if (codes.code[i] == preferred) return preferred;
    }
  }
  return codes.count == 0 ? CUDA_SUCCESS : codes.code[0];
}

// A sweep asks for it once for each call on each way back.
constexpr std::array<CUresult, kBaseCount> Likeliest() {
  std::array<CUresult, kBaseCount> likeliest{};
  for (std::size_t i = 0; i < kBaseCount; ++i) likeliest[i] = LikeliestOf(kCodes[i]);
  return likeliest;
}
constexpr std::array<CUresult, kBaseCount> kLikeliest = Likeliest();

}  // namespace

const EffectRow& EffectOf(BaseId base) noexcept { return kByBase[Index(base)]; }

std::span<const CUresult> LegalCodes(BaseId base) noexcept {
  const Codes& codes = kCodes[Index(base)];
  return {codes.code.data(), codes.count};
}

bool IsLegalCode(BaseId base, CUresult code) noexcept {
  for (const CUresult legal : LegalCodes(base)) {
    if (legal == code) return true;
  }
  return false;
}

namespace {

constexpr unsigned kAcquires = 1U;
constexpr unsigned kReleases = 2U;
constexpr unsigned kMakes = 4U;
constexpr unsigned kMovesContext = 8U;

struct EffectWords {
  Effect effect;
  std::string_view name;
  unsigned traits;
};
constexpr EffectWords kEffects[] = {
    {Effect::Describes, "describes", 0},
    {Effect::Queries, "queries", 0},
    {Effect::Uses, "uses", 0},
    {Effect::Acquires, "acquires", kAcquires | kMakes},
    {Effect::AcquiresCounted, "acquires counted", kAcquires | kMakes},
    {Effect::AcquiresGiven, "acquires given", kAcquires | kMakes},
    {Effect::Retains, "retains", kAcquires},
    {Effect::RetainsCounted, "retains counted", kAcquires},
    {Effect::Releases, "releases", kReleases},
    {Effect::ReleasesCounted, "releases counted", kReleases},
    {Effect::ReleasesRange, "releases range", kReleases},
    {Effect::ReleasesPointee, "releases pointee", kReleases},
    {Effect::RetainsPrimary, "retains primary", kAcquires},
    {Effect::ReleasesPrimary, "releases primary", kReleases},
    {Effect::ResetsPrimary, "resets primary", kReleases},
    {Effect::CreatesContext, "creates context", kAcquires | kMakes | kMovesContext},
    {Effect::DestroysContext, "destroys context", kReleases | kMovesContext},
    {Effect::PushesContext, "pushes context", kAcquires | kMovesContext},
    {Effect::PopsContext, "pops context", kReleases | kMovesContext},
    {Effect::SetsContext, "sets context", kMovesContext},
    {Effect::AddsNode, "adds node", kAcquires | kMakes},
    {Effect::ClonesGraph, "clones graph", kAcquires | kMakes},
    {Effect::BeginsCapture, "begins capture", 0},
    {Effect::EndsCapture, "ends capture", kAcquires | kMakes},
    {Effect::Instantiates, "instantiates", kAcquires | kMakes},
    {Effect::UpdatesGraph, "updates graph", 0},
    {Effect::LaunchesGraph, "launches graph", 0},
    {Effect::GraphRetains, "graph retains", kAcquires},
    {Effect::GraphReleases, "graph releases", kReleases},
    {Effect::MakesDescriptor, "makes descriptor", kAcquires},
};
static_assert([] {
  for (std::size_t i = 0; i < std::size(kEffects); ++i) {
    if (static_cast<std::size_t>(kEffects[i].effect) != i) return false;
  }
  return std::size(kEffects) == static_cast<std::size_t>(Effect::MakesDescriptor) + 1;
}());

constexpr unsigned TraitsOf(Effect effect) { return kEffects[static_cast<std::size_t>(effect)].traits; }

}  // namespace

std::string_view Name(Effect effect) noexcept { return kEffects[static_cast<std::size_t>(effect)].name; }
bool IsAcquire(Effect effect) noexcept { return (TraitsOf(effect) & kAcquires) != 0; }
bool IsRelease(Effect effect) noexcept { return (TraitsOf(effect) & kReleases) != 0; }
bool MakesObject(Effect effect) noexcept { return (TraitsOf(effect) & kMakes) != 0; }
bool MovesContext(Effect effect) noexcept { return (TraitsOf(effect) & kMovesContext) != 0; }
bool RecordsContext(Effect effect) noexcept { return (TraitsOf(effect) & (kAcquires | kReleases | kMovesContext)) != 0; }

CUresult DefaultCode(BaseId base) noexcept { return kLikeliest[Index(base)]; }

}  // namespace cuaudit::driver
