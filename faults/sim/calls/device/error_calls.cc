// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"

namespace cuaudit::sim {
namespace {

struct ErrorText {
  int code;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
#define CUAUDIT_ERROR_TEXT(code, name, text) {code, #name, text},
#include "faults/sim/calls/device/error_texts.def"
#undef CUAUDIT_ERROR_TEXT
};

const ErrorText* FindError(CUresult code) {
  for (const ErrorText& row : kErrors) {
    if (row.code == static_cast<int>(code)) return &row;
  }
  return nullptr;
}

}  // namespace

CUresult api::GetErrorName(Call&, CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const row = FindError(error);
  *text = row == nullptr ? nullptr : row->name;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult api::GetErrorString(Call&, CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const row = FindError(error);
  *text = row == nullptr ? nullptr : row->text;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
