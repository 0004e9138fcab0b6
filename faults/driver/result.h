// SPDX-License-Identifier: MIT
// result.h: names and classes of CUresult.
//
//   Owns      nothing; constant tables.
//   Threads   safe everywhere; no state.
//   Errors    ResultName answers "CUDA_ERROR_<number>" is unknown as an empty view; ResultFromName answers false.
//   Faults    makes no driver calls (cuGetErrorName would be one).
//   Source    generated from the CUresult enumeration of cuda.h; classes from the CUDA Driver API reference.
#pragma once

#include <cuda.h>

#include <string_view>

namespace cuaudit::driver {

// "CUDA_ERROR_OUT_OF_MEMORY"; empty for a value that the headers do not know.
std::string_view ResultName(CUresult result) noexcept;

// The same without "CUDA_ERROR_": "OUT_OF_MEMORY", "SUCCESS"; the spelling of fault texts and reports.
std::string_view ShortResultName(CUresult result) noexcept;

// Accepts both spellings.
bool ResultFromName(std::string_view name, CUresult* result) noexcept;

// The context is lost: every later call in it fails with the same code.
bool IsSticky(CUresult result) noexcept;

// What a driver answers to a release when it has no such object. Every other code speaks of something else: of a graph with memory nodes
// that may not lose one, of a capture, of a lost context.
bool SaysUnknown(CUresult result) noexcept;

// Whether cuStreamEndCapture that answers this has ended a capture: with a graph, or without one. ILLEGAL_STATE: there was none; every
// other code leaves it going on.
bool IsCaptureOver(CUresult result) noexcept;

}  // namespace cuaudit::driver
