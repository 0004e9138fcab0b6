// SPDX-License-Identifier: MIT
// result.h: names and classes of CUresult. Makes no driver call, unlike cuGetErrorName.
//
// The names are generated from the CUresult enumeration of cuda.h. The classes follow the CUDA Driver API reference.
#pragma once

#include <cuda.h>

#include <string_view>

namespace cuaudit::driver {

// "CUDA_ERROR_OUT_OF_MEMORY"; empty for a value that is not in the headers.
std::string_view ResultName(CUresult result) noexcept;

// The name without its prefix, as in fault texts and reports: "OUT_OF_MEMORY", "SUCCESS".
std::string_view ShortResultName(CUresult result) noexcept;

// Accepts names with and without the prefix. Returns false for an unknown name.
bool ResultFromName(std::string_view name, CUresult* result) noexcept;

// True for an error that loses the context: every later call in the context fails with the same code.
bool IsSticky(CUresult result) noexcept;

// True for an error of a release call that means "no such object". Other errors have another reason: a graph that may not lose a memory
// node, a capture, a lost context.
bool SaysUnknown(CUresult result) noexcept;

// True when a cuStreamEndCapture with this result has ended a capture, with a graph or without one. CUDA_ERROR_ILLEGAL_STATE means that
// there was no capture; after any other error the capture goes on.
bool IsCaptureOver(CUresult result) noexcept;

}  // namespace cuaudit::driver
