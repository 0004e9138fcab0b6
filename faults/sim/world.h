// SPDX-License-Identifier: MIT
// world.h: a simulated CUDA driver as a value.
//
//   Owns      everything in its own mappings: books, device bytes, pinned and managed bytes. Never malloc, never operator new.
//   Threads   any thread may call through Driver(world); one lock per world. The current context is per thread and per world.
//             Two worlds share nothing. DestroyWorld while another thread is in a call is the caller's bug.
//   Streams   operations are queued and run only when somebody waits for them; a query of a busy stream or event answers
//             NOT_READY and runs one operation. Host functions run without the lock, on the waiting thread.
//   Units     bytes; times are virtual nanoseconds, never the clock.
//   Errors    CreateWorld answers nullptr when the address space is refused. Calls in a forked child answer NOT_INITIALIZED.
//   Faults    makes no driver calls; it is one. Entry points that are not modelled answer NOT_SUPPORTED (DriverTable::modelled).
//   Source    CUDA Driver API 13.0; differences from an H200 are listed in README.md.
#pragma once

#include <cstdint>

#include "faults/driver/driver_ref.h"
#include "faults/driver/kinds.h"

namespace cuaudit::sim {

struct WorldOptions {
  std::uint64_t device_bytes = std::uint64_t{8} << 30;  // halved until the system grants it, down to 64 MiB
  int device_count = 1;                                 // 1 to 8
  std::uint64_t seed = 1;                               // identifiers (uuid, context and buffer ids) derive from it
  const char* device_name = "cuaudit simulated H200";   // copied, at most 63 characters
};

class World;

World* CreateWorld(const WorldOptions& options) noexcept;
void DestroyWorld(World* world) noexcept;
driver::DriverRef Driver(World* world) noexcept;

// The world's own books: live objects of a kind. PrimaryContext counts references, ContextStackEntry the entries of all threads.
std::uint64_t LiveCount(const World* world, driver::Kind kind) noexcept;

struct LiveCounts {
  std::uint64_t count[driver::kKindCount];
};
LiveCounts CountAll(const World* world) noexcept;

}  // namespace cuaudit::sim
