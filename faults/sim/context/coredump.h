// SPDX-License-Identifier: MIT
// coredump.h: coredump settings of a context or of the whole driver. The simulator never writes a coredump.
//
//   Threads   the caller holds the world's lock.
//   Units     names of at most 1023 characters.
//   Source    CUDA Driver API 13.0, Coredump Attributes Control; answers of an H200 (580.159.04).
#pragma once

#include <cstddef>

namespace cuaudit::sim {

inline constexpr std::size_t kCoredumpName = 1024;

struct Coredump {
  bool on_exception = false;
  bool user_trigger = false;
  int flags = 0;  // CUCoredumpGenerationFlags; the attributes "lightweight" and "trigger host" are bits of it
  char file[kCoredumpName] = "core.cuda.HOSTNAME.PID";
  char pipe[kCoredumpName] = "corepipe.cuda.HOSTNAME.PID";
};

}  // namespace cuaudit::sim
