// SPDX-License-Identifier: MIT
// key_memo.h: keys of places that were worked out before, for all journals that share their tables of modules and call stacks.
//
//   Owns      its table.
//   Threads   one thread.
//   Errors    none; a call stack that was not finished has no entry.
//   Faults    makes no driver calls.
//   Source    ours. A key walks a call stack and hashes the build id of each module on it.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace cuaudit::faults {

struct KeyMemo {
  std::unordered_map<std::uint64_t, std::uint64_t> site_keys;  // by call stack, call and kind of record
};

}  // namespace cuaudit::faults
