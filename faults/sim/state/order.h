// SPDX-License-Identifier: MIT
// order.h: the records of what is ordered before what: vector clocks, one for each stream, one for each recording of an event, one for the
// host; and of the device memory that was freed lately. clock.h and lifetime.h work on them.
//
//   Slot      a stream's index in every clock. A stream takes one at its first operation and keeps it until it is destroyed.
//   Horizon   for each slot, the last operation that is ordered before. Reference-counted.
//   Rumor     what a host function has seen done. It reaches the threads that the function may have woken, but never the thread whose call
//             it ran in.
//   Threads   the caller holds the world's lock.
//   Units     a count is the number of operations handed to a slot so far.
#pragma once

#include <cstdint>

#include "faults/driver/kinds.h"
#include "faults/sim/base/arena.h"

namespace cuaudit::sim {

// One operation: number `count` of its slot.
struct Stamp {
  std::uint32_t slot = 0;  // 0: none
  std::uint64_t count = 0;
};

// For each slot, the last operation that is ordered before. Immutable while more than one clock references it.
struct Horizon {
  std::uint32_t references;
  std::uint32_t size;
  std::uint64_t count[1];
};

// An operation and everything that is ordered before it.
struct Clock {
  Stamp last;
  std::uint64_t generation = 0;  // of `behind`. The host knows all of an older generation.
  Horizon* behind = nullptr;
};

struct Lane {
  Clock clock;
  std::uint64_t context = 0;  // handle of the context that owns the stream
  std::uint64_t green = 0;    // handle of the stream's green context; 0: none
  bool taken = false;
  bool blocking = false;
  bool fresh = false;        // has work that is not yet in the legacy stream's clock
  bool open = false;         // waited for something untraceable: later operations count as ordered after everything
  std::uint64_t opened = 0;  // the last operation before that wait
};

// What a host function has seen done that ran inside a call of `thread`.
struct Rumor {
  Clock clock;
  std::uint64_t thread = 0;  // Thread::serial
};

struct Order {
  Vector<Lane> slots;          // slot 0 is not used
  Vector<std::uint64_t> host;  // for each slot, the last operation that the host knows to be done
  // For each slot, the last operation that the host would know to be done if the plan had refused no wait. Its length is the highest slot
  // that a refused wait concerned; empty until one was refused.
  Vector<std::uint64_t> supposed;
  bool supposing = false;         // what the host learns now goes to `supposed`
  Vector<std::uint32_t> resting;  // slots of destroyed streams
  std::uint64_t unknown = 0;      // number of slots with operations that the host does not know to be done
  std::uint64_t generation = 1;   // grows when `unknown` falls to 0: no older operation can be in conflict any more
  Vector<Rumor> rumors;
};

// An operation and the call that queued it.
struct Trace {
  Stamp stamp;
  std::uint64_t origin = 0;
};

// Freed device memory whose addresses may not have been reused.
struct Freed {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  driver::Kind kind = driver::Kind::None;
  Trace death;
};

}  // namespace cuaudit::sim
