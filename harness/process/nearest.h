// SPDX-License-Identifier: MIT
// nearest.h: the word that somebody most likely meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cuaudit::harness {

// The word of `known` with the smallest edit distance (letters put in, left out or replaced) to `word`; the first of several. Empty when
// even that differs in more than half of the longer word's letters, and where `word` has more than 64.
std::string Nearest(std::string_view word, std::span<const std::string> known);

// ", did you mean WORD?", or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string> known);

}  // namespace cuaudit::harness
