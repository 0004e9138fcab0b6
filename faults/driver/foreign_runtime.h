// SPDX-License-Identifier: MIT
// foreign_runtime.h: recognises NVIDIA's CUDA runtime by what it asks of a driver, and says what to do about it.
//
//   Owns      nothing.
//   Threads   safe.
//   Errors    none; a text that does not fit is cut.
//   Faults    makes no driver calls.
//   Source    facts on interposition, section 1.2: the tables that every CUDA runtime from 11.8 on requires. That runtime authenticates
//             the driver. A simulated driver is refused, rightly; the question is never answered, the program is told instead.
#pragma once

#include <cstddef>

namespace cuaudit::driver {

// `id`: the 16 bytes handed to cuGetExportTable; null is none.
[[nodiscard]] bool IsRuntimeTable(const void* id) noexcept;

// One sentence for a program whose `object` (a file) holds such a runtime. `own_directory`: where cuaudit's own runtime lies.
void ExplainForeignRuntime(const char* object, const char* own_directory, char* text, std::size_t capacity) noexcept;

}  // namespace cuaudit::driver
