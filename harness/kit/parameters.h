// SPDX-License-Identifier: MIT
// parameters.h: types and names of the parameters of every entry point as text, from the declarations in the toolkit's headers.
//
//   Errors    none.
#pragma once

#include <span>
#include <string>

#include "faults/driver/call_id.h"

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

}  // namespace cuaudit::harness
