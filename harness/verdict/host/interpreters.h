// SPDX-License-Identifier: MIT
// interpreters.h: recognises interpreters by file name. The lines of a program that one interprets do not show in its call stacks,
// but those of CPython do (faults/python).
#pragma once

#include <string_view>

namespace cuaudit::harness {

bool IsInterpreter(std::string_view path) noexcept;

}  // namespace cuaudit::harness
