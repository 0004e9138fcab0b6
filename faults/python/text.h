// SPDX-License-Identifier: MIT
// text.h: copies the characters of a Python str, as UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/python/layout.h"
#include "faults/python/safe_memory.h"

namespace cuaudit::python {

// Writes the end of the text where there is not enough room for all of it, and a terminating zero. False: it cannot be read. `type` is the
// address of PyUnicode_Type.
[[nodiscard]] bool CopyText(SafeMemory* memory, const Layout& layout, std::uintptr_t type, std::uintptr_t text, char* to,
                            std::size_t room) noexcept;

}  // namespace cuaudit::python
