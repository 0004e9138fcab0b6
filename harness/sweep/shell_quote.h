// SPDX-License-Identifier: MIT
// shell_quote.h: words as a POSIX shell reads them back.
//
//   Threads   safe everywhere; no state.
//   Errors    none; every byte string can be quoted except one with a NUL, which no argv holds.
//   Faults    makes no driver calls.
//   Source    POSIX.1-2024 Shell Command Language, 2.2.2 and 2.2.4 (dollar-single-quotes, for words with control characters).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cuaudit::harness {

// The word itself when it needs no quotes, otherwise quoted; always one line.
std::string ShellQuote(std::string_view word);

// Quoted words with one space between them.
std::string ShellJoin(std::span<const std::string> words);

}  // namespace cuaudit::harness
