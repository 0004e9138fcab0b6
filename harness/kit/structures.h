// SPDX-License-Identifier: MIT
// structures.h: the rows of structures.def, as bytes for a call and as text for a C program.
//
//   Errors    none: a type without a row is all zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "faults/driver/kinds.h"

namespace cuaudit::harness {

// At least the size of every structure that a call is given.
inline constexpr std::size_t kMostStructure = 4096;

// True when there is a row for this type that names an object of this kind, or none.
bool KnowsStructure(std::string_view type, driver::Kind kind);

// Writes the structure to `room` (kMostStructure zero bytes). `object` is the value of the object in it, `memory` host memory.
void FillStructure(std::string_view type, driver::Kind kind, std::uint64_t object, void* memory, void* room);

// "{.Width = 64, .Height = 64}", with `object` and `memory` in their places.
std::string StructureText(std::string_view type, driver::Kind kind, const std::string& object, const std::string& memory);

// Functions that do nothing. `Of` answers null for a type that is no function.
const void* NothingFunction(std::string_view type);
// "static void CUDA_CB nothing_CUhostFn(void *data) { }"; the name alone is "nothing_" and the type.
std::string FunctionText(std::string_view type);

// A module with the kernel "kernel" and the variable "variable".
extern const char kModuleText[];

}  // namespace cuaudit::harness
