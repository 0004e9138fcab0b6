// SPDX-License-Identifier: MIT
// coredump.h: what a context, or the whole driver, is told about coredumps. None is ever written here.
//
//   Owns      nothing; a plain value.
//   Threads   the world's lock is held by every caller.
//   Units     names of at most 1023 characters.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, Coredump Attributes Control; answers of an H200 (580.159.04).
#pragma once

#include <cstddef>

namespace cuaudit::sim {

inline constexpr std::size_t kCoredumpName = 1024;

struct Coredump {
  bool on_exception = false;
  bool user_trigger = false;
  int flags = 0;  // CUCoredumpGenerationFlags; lightweight and "the host dumps too" are bits of it
  char file[kCoredumpName] = "core.cuda.HOSTNAME.PID";
  char pipe[kCoredumpName] = "corepipe.cuda.HOSTNAME.PID";
};

}  // namespace cuaudit::sim
