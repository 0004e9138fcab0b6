// SPDX-License-Identifier: MIT
// key_memo.h: a cache of keys of places, shared by all journals that share their tables of modules and call stacks. It saves work: a key
// walks a call stack and hashes the build id of each module on it.
//
// A KeyMemo is used by one thread. A call stack that was not completely written has no entry.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace cuaudit::faults {

struct KeyMemo {
  std::unordered_map<std::uint64_t, std::uint64_t> site_keys;  // by call stack, call and kind of record
};

}  // namespace cuaudit::faults
