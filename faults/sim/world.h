// SPDX-License-Identifier: MIT
// world.h: a simulated CUDA driver as a value. CreateWorld makes one, Driver(world) is the DriverRef to call it through.
//
//   Owns      its own mappings: records, device bytes, pinned and managed bytes. It uses neither malloc nor operator new. The mappings of a
//             few destroyed worlds are kept for the next ones (arena.h).
//   Threads   any thread may call through Driver(world); each world has one lock. The current context is per thread and per world. Two
//             worlds share nothing. The caller must not destroy a world while another thread is in a call.
//   Streams   operations are queued and run when somebody waits for them, asks for them or the schedule says so. Host functions run without
//             the lock, on a thread that is inside a driver call.
//   Units     bytes; times are virtual nanoseconds. Real time counts in patience_ms and for whoever calls RunUnattended.
//   Errors    CreateWorld returns nullptr when the address space is refused or the profile is unknown. A child forked after cuInit gets
//             NOT_INITIALIZED. Entry points without a model return NOT_SUPPORTED (DriverTable::modelled).
//   Source    CUDA Driver API 13.0; README.md lists differences from an H200.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/driver/driver_ref.h"
#include "faults/driver/kinds.h"
#include "faults/driver/misuse.h"

struct cuaudit_kernel;

namespace cuaudit::sim {

// When queued work runs. All four schedules are deterministic for one seed and one order of calls.
enum class Schedule : std::uint8_t {
  Lazy,         // when somebody waits for it; a query of busy work runs one operation
  Fifo,         // as soon as its dependencies have run, in the order of the calls: an idle, fast device
  Random,       // at each call, a random number of runnable operations of random streams, drawn from `seed`
  Adversarial,  // unordered work as late as possible, the newest runnable operation first
};

// What becomes of a call whose use is undefined and of which every recorded run of an H200 died (Call::Undefined).
enum class OnUndefined : std::uint8_t {
  Error,  // it answers an error, or goes on, so that a sweep learns more
  Crash,  // the calling thread reads an address where nothing is: SIGSEGV, as on the genuine driver
};

// What became of the kernels that a world ran.
enum class KernelCount : std::uint8_t {
  Hosted,      // a host function ran in its place
  Idle,        // no host function ran in its place: the kernel read and wrote nothing
  Mismatched,  // the part of Idle whose registered host function expects other parameters
};
inline constexpr std::size_t kKernelCounts = 3;

struct WorldOptions {
  std::uint64_t device_bytes = std::uint64_t{8} << 30;  // of all devices; no more than the profile has, halved until granted, to 64 MiB
  int device_count = 1;                                 // 1 to 8
  std::uint64_t seed = 1;                               // identifiers (uuid, context and buffer ids) and Random derive from it
  const char* profile = "h200";                         // which device: "h200" or "small", see profile.h
  const char* device_name = nullptr;                    // copied, at most 63 characters; null: the profile's
  Schedule schedule = Schedule::Lazy;
  OnUndefined undefined = OnUndefined::Error;
  // Real milliseconds that other threads get to write a waited-for value when nothing queued can run. Then the wait is given up and its
  // context lost with LAUNCH_TIMEOUT; a device would hang.
  std::uint32_t patience_ms = 1000;
  // Called for each misuse that the world can prove. The world's lock is held, so it must not call the driver. May be null.
  void (*on_misuse)(void* observer, const driver::Misuse& misuse) = nullptr;
  // Returns an id of the current call (a journal ticket). It is kept with each operation that the call queues and returned in Misuse. May
  // be null.
  std::uint64_t (*origin)(void* observer) = nullptr;
  void* observer = nullptr;
  // Called once, with the world's lock held, when work is queued that the CPU may wait for without a driver call. True: somebody will call
  // RunUnattended from now on, and calls that only queue leave host functions to it. May be null. See oracle.h.
  bool (*on_awaited)(void* observer) = nullptr;
  // List of registered host kernels, the newest first; more may be added at any time (include/cuaudit/kernel.h). May be null.
  const std::atomic<cuaudit_kernel*>* kernels = nullptr;
  std::atomic<std::uint64_t>* kernel_counts = nullptr;  // kKernelCounts counters, incremented as kernels run; null: the world's own
};

class World;

World* CreateWorld(const WorldOptions& options) noexcept;
void DestroyWorld(World* world) noexcept;
// From here on calls return DEINITIALIZED, like a driver whose process is exiting. Objects stay as they are.
void Shutdown(World* world) noexcept;
// What the caller of RunUnattended keeps from one call to the next.
struct Attendance {
  std::uint64_t calls = ~std::uint64_t{0};
  std::uint64_t since = 0;  // ticket of the first operation not yet queued when the current wait began
  std::uint32_t rounds = 0;
  // Incremented each time something is run, before the program can see the effect. May be null.
  std::atomic<std::uint32_t>* forced = nullptr;
};
// Call this at intervals. If the CPU may be waiting for queued work, and since the last time there was no driver call (or ten times in a
// row calls that did not run it), it runs what can run, as a device would. Returns the number of operations.
std::uint64_t RunUnattended(World* world, Attendance* attendance) noexcept;
// The fault plan refuses the call `id` with these arguments. If it waits for queued work, time passes as during the wait: what can run has
// run when the call returns, so a program that goes on waiting by other means ends. The host does not know it to be done; a misuse that
// would be none if it did is reported with Misuse::refused_wait. Other calls do nothing.
void NoteRefusedCall(World* world, driver::CallId id, const std::uint64_t* arguments) noexcept;
// Ends queued work that nobody will wait for any more, as far as it can run: memory freed in stream order is given back, and user objects
// that launched graphs held are destroyed. No memory of the program is read or written and no host function or kernel is called, because
// the program may have freed what they use; nor are they later, when something else lets the rest run. Values are written to memory of the
// driver. A wait for a value that anything else may have written is over.
void RunHollow(World* world) noexcept;
// Calls `visit` with the argument of each host function and callback that is queued and has not begun. The world's lock is held, so it must
// not call the driver.
void EachHostArgument(World* world, void* self, void (*visit)(void* self, const void* argument)) noexcept;
// Lets a forked child go on with the world, which no driver allows and a fault sweep needs. The parent calls HoldForFork, forks, and calls
// ReleaseAfterFork; the child calls ContinueForked.
// HoldForFork: false if another thread is inside a host function; nothing is held then.
// ContinueForked: the child counts kernels at `kernel_counts` unless that is null. True: somebody attended the world before the fork, and
// nobody does any more.
bool HoldForFork(World* world) noexcept;
// The page that a fork clears, by which the world detects a fork.
const void* WipedByFork(const World* world) noexcept;
void ReleaseAfterFork(World* world) noexcept;
bool ContinueForked(World* world, std::atomic<std::uint64_t>* kernel_counts) noexcept;
// Releases the address space of destroyed worlds, which is otherwise kept, cleared, for the next ones.
void DropSpareWorlds() noexcept;
driver::DriverRef Driver(World* world) noexcept;
// Registers a host kernel for this world alone; it comes before the process's. False when the arena is full.
bool RegisterKernel(World* world, const cuaudit_kernel* kernel) noexcept;
std::uint64_t CountKernels(const World* world, KernelCount what) noexcept;

// Memory of each device as granted.
std::uint64_t DeviceBytes(const World* world) noexcept;

// Number of live objects of a kind. PrimaryContext counts references, ContextStackEntry the entries of all threads.
std::uint64_t LiveCount(const World* world, driver::Kind kind) noexcept;

struct LiveCounts {
  std::uint64_t count[driver::kKindCount];
};
LiveCounts CountAll(const World* world) noexcept;

// A live object. `handle`: the value that calls name it by (of peer access the peer); an address; or the device of a reference to a primary
// context.
struct LiveObject {
  driver::Kind kind;
  std::uint64_t handle;
  std::uint64_t bytes;       // bytes as requested; 0: it has none
  bool freeing;              // a stream-ordered free of it is queued
  std::uint64_t had_by = 0;  // peer access: the context that has it
};
// Lists all live objects except context-stack entries, up to `room`. Returns how many there are.
std::size_t ListLive(const World* world, LiveObject* list, std::size_t room) noexcept;

// What became of a handle that is not an address. The last handle of a slot is known; object.h says for how long.
enum class Fate : std::uint8_t {
  Unknown,  // no handle of this world, or one from long ago
  Alive,
  Destroyed,
  DiedWithContext,  // or with its green context
};
Fate FateOf(const World* world, std::uint64_t handle) noexcept;

}  // namespace cuaudit::sim
