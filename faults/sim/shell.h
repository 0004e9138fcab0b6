// SPDX-License-Identifier: MIT
// shell.h: the mappings that a world lives in. What a destroyed world leaves is kept, cleared, for the next one: mapping and unmapping
// cost several times what a small world does.
//
//   Owns      its mappings; at most kSpares shells wait in the process, each with address space but almost no memory.
//   Threads   any; shells change hands by an atomic exchange, there is no lock.
//   Units     bytes.
//   Errors    false when the system refuses the address space, spare shells given back first.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuaudit::sim {

struct Shell {
  char* books = nullptr;  // its first page holds nothing but the mark that a fork wipes
  std::size_t book_bytes = 0;
  char* device = nullptr;  // addresses that clients see
  char* device_bytes = nullptr;
  char* host = nullptr;
  std::size_t region_bytes = 0;  // of each of the three
};

inline constexpr std::size_t kPage = 4096;

// Cleared memory everywhere; the regions have at least `region_bytes`.
bool TakeShell(std::size_t region_bytes, Shell* shell) noexcept;
// Clears [p, p + used): what is small stays in memory, the rest goes back to the system.
void ClearUsed(char* p, std::size_t used) noexcept;
// Keeps a cleared shell for the next world, or unmaps it.
void LeaveShell(const Shell& shell) noexcept;
void UnmapShell(const Shell& shell) noexcept;
void DropSpareShells() noexcept;

}  // namespace cuaudit::sim
