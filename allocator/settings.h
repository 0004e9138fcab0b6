// SPDX-License-Identifier: MIT
// settings.h: what an allocator is to be, from a text such as "max_split_size_mb:128,policy:wait,roundup_power2_divisions:[1:4,>:8]".
//
//   Owns      plain values.
//   Threads   values; no shared state.
//   Units     as the keys say; _mb are mebibytes, as PyTorch has them.
//   Errors    one line: which key, at which character (counted from 1), what stands there, what was expected. Nothing is changed then.
//   Faults    makes no driver calls.
//   Source    keys and grammar of PYTORCH_ALLOC_CONF: tokens end at , : [ ] and blanks mean nothing. A key may stand once. settings.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/options.h"

namespace cuaudit::alloc {

enum class BackendKind : std::uint8_t {
  Native,         // the caching allocator of this room
  StreamOrdered,  // the driver's memory pools
  Uncached,       // cuMemAlloc and cuMemFree for each block
};

enum class RecordHistory : std::uint8_t {
  Never,
  State,  // events without stacks
  Alloc,  // with the stacks of allocations
  All,    // with everybody's
};

struct Settings {
  Options options;
  BackendKind backend = BackendKind::Native;
  RecordHistory record_history = RecordHistory::Never;
  std::size_t history_entries = std::size_t{1} << 16;
};

// False: `error` says why. An empty text is the defaults.
[[nodiscard]] bool ParseSettings(std::string_view text, Settings* out, std::string* error);

// All keys with their values, in the table's order; ParseSettings reads it back to the same settings.
std::string FormatSettings(const Settings& settings);

struct SettingRow {
  std::string_view key;
  std::string expected;  // "a whole number of MiB from 2 to 1048576"
  std::string_view help;
};
std::vector<SettingRow> SettingRows();

// For a snapshot: PyTorch's names for what it shows of its settings, and every key of ours.
std::vector<std::pair<std::string, std::string>> SettingsForSnapshot(const Settings& settings);

}  // namespace cuaudit::alloc
