// SPDX-License-Identifier: MIT
// foreign_runtime.h: recognises NVIDIA's CUDA runtime by the export tables that it asks a driver for, and tells the user what to do
// about it.
//
// Every CUDA runtime from 11.8 on requires these tables of cuGetExportTable (kTables in foreign_runtime.cc) to authenticate the driver.
// A simulated driver is refused, rightly. The question is never answered; the program is told instead.
#pragma once

#include <cstddef>

namespace cuaudit::driver {

// `id`: the 16 bytes passed to cuGetExportTable; may be null.
[[nodiscard]] bool IsRuntimeTable(const void* id) noexcept;

// Writes one sentence for a program whose `object` (a file) contains such a runtime; cuts the sentence at `capacity`. `own_directory`:
// the directory of cuaudit's own runtime; empty when there is none.
void ExplainForeignRuntime(const char* object, const char* own_directory, char* text, std::size_t capacity) noexcept;

}  // namespace cuaudit::driver
