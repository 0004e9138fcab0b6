// SPDX-License-Identifier: MIT
// parameters.h: types and names of the parameters of every entry point as text, and the structures (structures.def) that some point to, as
// bytes for a call and as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "faults/driver/call_id.h"
#include "faults/driver/kinds.h"

namespace cuaudit::harness {

struct ParameterText {
  std::string type;  // "const CUDA_ARRAY3D_DESCRIPTOR *"
  std::string name;  // "pAllocateArray"

  bool pointer() const { return !type.empty() && type.back() == '*'; }
  bool constant() const { return type.rfind("const ", 0) == 0; }
  // What it points to: "CUDA_ARRAY3D_DESCRIPTOR"; "void *" of "void **".
  std::string pointee() const;
};

std::span<const ParameterText> ParametersOf(driver::CallId call);

// "CUcontext *pctx, unsigned int flags, CUdevice dev"
std::string DeclaredParameters(driver::CallId call);

// The rows of structures.def, as bytes for a call and as text for a C program.
//
//   Errors    none: a type without a row is all zero.

// At least the size of every structure that a call is given.
inline constexpr std::size_t kMostStructure = 4096;

// True when there is a row for this type that names an object of this kind, or none.
bool KnowsStructure(std::string_view type, driver::Kind kind);

// Writes the structure to `room` (kMostStructure zero bytes). `object` is the value of the object in it, `memory` host memory.
void FillStructure(std::string_view type, driver::Kind kind, std::uint64_t object, void* memory, void* room);

// "{.Width = 64, .Height = 64}", with `object` and `memory` in their places.
std::string StructureText(std::string_view type, driver::Kind kind, const std::string& object, const std::string& memory);

// What a call is given that changes a setting behind a pointer: `number` tells it, as faults/shim/call_record.cc reads it. `key` is the
// second argument of the call. Written to `room`, as a structure is; `memory` is host memory, and "room" in the text.
void FillPointee(driver::CallId call, std::uint64_t key, std::uint64_t number, void* memory, void* room);
std::string PointeeText(driver::CallId call, std::uint64_t key, std::uint64_t number);

// Functions that do nothing. `Of` answers null for a type that is no function.
const void* NothingFunction(std::string_view type);
// "static void CUDA_CB nothing_CUhostFn(void *data) { }"; the name alone is "nothing_" and the type.
std::string FunctionText(std::string_view type);

// True for a call that asks for a variable of a module, and not for a kernel.
bool NamesAVariable(driver::CallId call);

// True for a wait until memory has a value.
bool WaitsForValue(driver::BaseId base);

// A module with the kernel "kernel" and the variable "variable".
extern const char kModuleText[];

}  // namespace cuaudit::harness
