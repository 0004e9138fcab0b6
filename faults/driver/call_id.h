// SPDX-License-Identifier: MIT
// call_id.h: a number and a name for every driver entry point of the toolkit's headers.
//
//   CallId    one exported symbol. It is spelled without "cu" so that the renaming macros of cuda.h leave it alone: CallId::MemAlloc_v2.
//   BaseId    one entry point, whatever its version or per-thread-stream variant: BaseId::MemAlloc. Faults and effects use BaseIds.
//
// scripts/gen_driver_table.py generates the tables from the installed headers. The numbers change with the toolkit, so a journal stores
// the digest of its tables (TableDigest), and a tool built from other tables refuses the journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuaudit::driver {

enum class CallId : std::uint16_t {
#define CUAUDIT_CALL(id, base, version, per_thread) id,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
};

enum class BaseId : std::uint16_t {
#define CUAUDIT_BASE(base, current) base,
#include "driver_bases.inc"
#undef CUAUDIT_BASE
// Entry points that only newer toolkits declare. They have a BaseId so that code can name them, but no CallId maps to them.
#define CUAUDIT_ABSENT_BASE(base) base,
#include "driver_absent.inc"
#undef CUAUDIT_ABSENT_BASE
};

struct CallRow {
  std::string_view symbol;  // as exported: "cuMemAlloc_v2"
  BaseId base;
  std::uint16_t version;  // CUDA version in which the ABI appeared, 11020 for 11.2; 0 when the typedef headers do not say
  bool per_thread;        // _ptsz or _ptds
};

inline constexpr CallRow kCalls[] = {
#define CUAUDIT_CALL(id, base, version, per_thread) {"cu" #id, BaseId::base, version, per_thread != 0},
#include "driver_calls.inc"
#undef CUAUDIT_CALL
};
inline constexpr std::size_t kCallCount = sizeof(kCalls) / sizeof(kCalls[0]);

struct BaseRow {
  std::string_view name;  // as cuGetProcAddress wants it: "cuMemAlloc"
  CallId current;         // the symbol that cuda.h's macros pick
};

inline constexpr BaseRow kBases[] = {
#define CUAUDIT_BASE(base, current) {"cu" #base, CallId::current},
#include "driver_bases.inc"
#undef CUAUDIT_BASE
};
inline constexpr std::size_t kBaseCount = sizeof(kBases) / sizeof(kBases[0]);

constexpr std::size_t Index(CallId id) { return static_cast<std::size_t>(id); }
constexpr std::size_t Index(BaseId id) { return static_cast<std::size_t>(id); }
constexpr const CallRow& Row(CallId id) { return kCalls[Index(id)]; }
constexpr BaseId BaseOf(CallId id) { return Row(id).base; }
constexpr std::string_view Name(CallId id) { return Row(id).symbol; }
constexpr std::string_view Name(BaseId id) { return kBases[Index(id)].name; }

// Index of the base entry point with exactly that name, or kBaseCount.
constexpr std::size_t FindBase(std::string_view name) {
  std::size_t low = 0;
  std::size_t high = kBaseCount;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (kBases[middle].name < name) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < kBaseCount && kBases[low].name == name ? low : kBaseCount;
}

// FNV-1a over all symbols in order.
consteval std::uint64_t TableDigest() {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const CallRow& row : kCalls) {
    for (const char c : row.symbol) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    hash = (hash ^ 0xffU) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace cuaudit::driver
