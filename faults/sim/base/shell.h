// SPDX-License-Identifier: MIT
// shell.h: the mappings that a world lives in. A destroyed world's mappings are cleared and kept for the next world, because mapping and
// unmapping cost several times what a small world does.
//
//   Owns      its mappings. At most kSpares shells wait in the process; each holds address space but almost no memory.
//   Threads   any thread; shells change hands by an atomic exchange, without a lock.
//   Units     bytes.
//   Errors    false when the system refuses the address space even after the spare shells were released.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuaudit::sim {

struct Shell {
  char* books = nullptr;  // the world's records; the first page holds only the mark that a fork wipes
  std::size_t book_bytes = 0;
  char* device = nullptr;  // device addresses that clients see
  char* device_bytes = nullptr;
  char* host = nullptr;
  std::size_t region_bytes = 0;  // size of each of the three
};

inline constexpr std::size_t kPage = 4096;

// All memory is zero; the regions have at least `region_bytes`.
bool TakeShell(std::size_t region_bytes, Shell* shell) noexcept;
// Clears [p, p + used). The first part stays committed, so that a small world is cheap; the rest is returned to the system.
void ClearUsed(char* p, std::size_t used) noexcept;
// Keeps a cleared shell for the next world, or unmaps it.
void LeaveShell(const Shell& shell) noexcept;
void UnmapShell(const Shell& shell) noexcept;
void DropSpareShells() noexcept;

}  // namespace cuaudit::sim
