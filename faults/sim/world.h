// SPDX-License-Identifier: MIT
// world.h: a simulated CUDA driver as a value.
//
//   Owns      everything in its own mappings: books, device bytes, pinned and managed bytes. Never malloc, never operator new.
//             A few destroyed worlds' mappings wait, cleared, for the next ones: see shell.h.
//   Threads   any thread may call through Driver(world); one lock per world. The current context is per thread and per world.
//             Two worlds share nothing. DestroyWorld while another thread is in a call is the caller's bug.
//   Streams   operations are queued and run when somebody waits for them, asks for them or the schedule says so. Host functions run
//             without the lock, on a thread that is inside a driver call.
//   Units     bytes; times are virtual nanoseconds. Real time counts in patience_ms and for whoever calls RunUnattended.
//   Errors    CreateWorld answers nullptr when the address space is refused or nobody has the profile. A child
//             forked after cuInit hears NOT_INITIALIZED.
//   Faults    makes no driver calls; it is one. Entry points that are not modelled answer NOT_SUPPORTED (DriverTable::modelled).
//   Source    CUDA Driver API 13.0; differences from an H200 are listed in README.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/driver/driver_ref.h"
#include "faults/driver/kinds.h"
#include "faults/driver/misuse.h"

struct cuaudit_kernel;

namespace cuaudit::sim {

// When queued work runs. All four are deterministic for one seed and one order of calls.
enum class Schedule : std::uint8_t {
  Lazy,         // when somebody waits for it; a query of something busy runs one operation
  Fifo,         // as soon as what it depends on has run, in the order of the calls: an idle, fast device
  Random,       // at each call a number of runnable operations drawn from `seed`, of streams drawn from it
  Adversarial,  // what nobody is ordered before as late as possible, the newest runnable operation first
};

// What became of the kernels of a world.
enum class KernelCount : std::uint8_t {
  Hosted,      // a host function stood in for it
  Idle,        // nothing did: it read and wrote nothing
  Mismatched,  // of those, the ones whose registered host function expects other parameters than the launch has
};
inline constexpr std::size_t kKernelCounts = 3;

struct WorldOptions {
  std::uint64_t device_bytes = std::uint64_t{8} << 30;  // of all devices; no more than the profile has, halved until granted, to 64 MiB
  int device_count = 1;                                 // 1 to 8
  std::uint64_t seed = 1;                               // identifiers (uuid, context and buffer ids) and Random derive from it
  const char* profile = "h200";                         // which device: "h200" or "small", see profile.h
  const char* device_name = nullptr;                    // copied, at most 63 characters; null: the profile's
  Schedule schedule = Schedule::Lazy;
  // Real milliseconds for other threads to write what a stream waits for, when nothing that is queued can run; then the wait is given
  // up and its context lost with LAUNCH_TIMEOUT. A device would hang.
  std::uint32_t patience_ms = 1000;
  // What tells of misuse that the world can prove, called with the world's lock held: it must not call the driver. May be null.
  void (*on_misuse)(void* observer, const driver::Misuse& misuse) = nullptr;
  // Names the call under way (a journal ticket), kept with each operation it queues and handed back in Misuse. May be null.
  std::uint64_t (*origin)(void* observer) = nullptr;
  void* observer = nullptr;
  // Called once, with the world's lock held, when something is queued that the CPU may wait for without a driver call. True: somebody
  // calls RunUnattended from now on, and calls that only queue leave host functions to it. May be null. See attendance.h.
  bool (*on_awaited)(void* observer) = nullptr;
  // Registered host kernels, the newest first; more may be added at any time (include/cuaudit/kernel.h). May be null.
  const std::atomic<cuaudit_kernel*>* kernels = nullptr;
  std::atomic<std::uint64_t>* kernel_counts = nullptr;  // kKernelCounts of them, added to as kernels run; null: the world's own
};

class World;

World* CreateWorld(const WorldOptions& options) noexcept;
void DestroyWorld(World* world) noexcept;
// From here on calls answer DEINITIALIZED, as a driver's do whose process is exiting; objects stay as they are.
void Shutdown(World* world) noexcept;
// What its caller remembers between two of them.
struct Attendance {
  std::uint64_t calls = ~std::uint64_t{0};
  std::uint64_t since = 0;  // the first operation that was not yet queued when the wait for it began
  std::uint32_t rounds = 0;
  // One more for each time something is run, before the program can see what it did. May be null.
  std::atomic<std::uint32_t>* forced = nullptr;
};
// To be called at intervals. When the CPU may be waiting for what is queued, and there was no call since the last time (or there were
// calls for ten times, but none that ran it), runs what can run, as a device would; answers how many operations that were.
std::uint64_t RunUnattended(World* world, Attendance* attendance) noexcept;
// A world in a process that forks and whose child is to go on with it, which no driver allows and a fault sweep wants. The parent holds the
// world, forks, and releases it; the child continues it. False: another thread is inside a host function; nothing is held then. The child
// counts kernels at `kernel_counts` unless that is null; true: somebody attended the world, and nobody does any more.
bool HoldForFork(World* world) noexcept;
// The page of this world that a fork wipes, by which it knows of one.
const void* WipedByFork(const World* world) noexcept;
void ReleaseAfterFork(World* world) noexcept;
bool ContinueForked(World* world, std::atomic<std::uint64_t>* kernel_counts) noexcept;
// Destroyed worlds leave their address space, cleared, to the next ones; this gives it back to the system.
void DropSpareWorlds() noexcept;
driver::DriverRef Driver(World* world) noexcept;
// A host kernel of this world alone, which stands before the process's. False when the books are full.
bool RegisterKernel(World* world, const cuaudit_kernel* kernel) noexcept;
std::uint64_t CountKernels(const World* world, KernelCount what) noexcept;

// Memory of each device, as it was granted.
std::uint64_t DeviceBytes(const World* world) noexcept;

// The world's own books: live objects of a kind. PrimaryContext counts references, ContextStackEntry the entries of all threads.
std::uint64_t LiveCount(const World* world, driver::Kind kind) noexcept;

struct LiveCounts {
  std::uint64_t count[driver::kKindCount];
};
LiveCounts CountAll(const World* world) noexcept;

// One that is counted. `handle`: what calls name it by; an address, or the device of a reference of a primary context.
struct LiveObject {
  driver::Kind kind;
  std::uint64_t handle;
  std::uint64_t bytes;  // as asked for; 0: it has none
  bool freeing;         // memory whose stream-ordered free is queued
};
// All but the entries of context stacks, as far as there is room. Answers how many there are.
std::size_t ListLive(const World* world, LiveObject* list, std::size_t room) noexcept;

// What became of a handle that is no address. Of a slot's handles the last is known; see object.h for how long that is.
enum class Fate : std::uint8_t {
  Unknown,  // no handle of this world, or one of long ago
  Alive,
  Destroyed,
  DiedWithContext,  // or with its green context
};
Fate FateOf(const World* world, std::uint64_t handle) noexcept;

}  // namespace cuaudit::sim
