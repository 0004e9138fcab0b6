// SPDX-License-Identifier: MIT
// interpreters.h: recognises interpreters by file name. The lines of an interpreted program do not show in its call stacks.
#pragma once

#include <string_view>

namespace cuaudit::harness {

bool IsInterpreter(std::string_view path) noexcept;

}  // namespace cuaudit::harness
