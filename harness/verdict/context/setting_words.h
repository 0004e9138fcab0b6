// SPDX-License-Identifier: MIT
// setting_words.h: how a report names a setting and what became of its value.
#pragma once

#include <cstdint>

#include "harness/ledger/rules.h"
#include "harness/verdict/context/setting_changes.h"

namespace cuaudit::harness {

// "CU_LIMIT_STACK_SIZE 1024 -> 8192". A value that is a handle is left out, since it differs from run to run.
[[nodiscard]] Details WordsOf(const SettingChange& change, std::uint64_t left);

}  // namespace cuaudit::harness
