// SPDX-License-Identifier: MIT
// interpreters.h: which modules run a program that is not in their own code, told by their file names.
#pragma once

#include <string_view>

namespace cuaudit::harness {

bool IsInterpreter(std::string_view path) noexcept;

}  // namespace cuaudit::harness
