// SPDX-License-Identifier: MIT
#include "allocator/errors.h"

#include <cstdarg>
#include <cstdio>

namespace cuaudit::alloc {
namespace {
constinit thread_local char text[200] = "";
constinit thread_local OutOfMemory account{};
}  // namespace

CUresult Refuse(CUresult result, const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return result;
}

const char* LastRefusal() noexcept { return text; }
OutOfMemory& LastAccount() noexcept { return account; }

}  // namespace cuaudit::alloc
