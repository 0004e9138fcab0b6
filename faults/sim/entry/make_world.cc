// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include <new>

#include "faults/sim/context/context.h"
#include "faults/sim/entry/process.h"
#include "faults/sim/entry/table.h"
#include "faults/sim/memory/physical.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/operation/semaphore.h"
#include "faults/sim/state/world_state.h"
#include "faults/sim/world.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kLeastDevice = std::uint64_t{64} << 20;
constexpr std::size_t kMostSlots = std::size_t{1} << 20;
constexpr std::size_t kDescription = (sizeof(Shell) + 63) / 64 * 64;  // lies before the World
constexpr std::uint64_t kSlack = std::uint64_t{64} << 20;

std::atomic<std::uint32_t> next_world{1};

// Halves the size until the system grants it. False: not even a small device.
bool TakeShellFor(std::uint64_t wanted, Shell* shell, std::uint64_t* granted, std::uint64_t* space) noexcept {
  for (std::uint64_t bytes = wanted; bytes >= kLeastDevice; bytes /= 2) {
    *space = (bytes + bytes / 4 + kSlack) / kLeastDevice * kLeastDevice;
    *granted = bytes;
    if (TakeShell(*space, shell)) return true;
  }
  return false;
}

}  // namespace

World* CreateWorld(const WorldOptions& options) noexcept {
  if (options.device_count < 1 || options.device_count > kMaxDevices || options.profile == nullptr) return nullptr;
  const Profile* const profile = FindProfile(options.profile);
  if (profile == nullptr) return nullptr;
  const std::uint64_t most = profile->memory * static_cast<std::uint64_t>(options.device_count);
  Shell shell;
  std::uint64_t granted = 0;
  std::uint64_t space = 0;
  if (!TakeShellFor(options.device_bytes < most ? options.device_bytes : most, &shell, &granted, &space)) return nullptr;
  World* const world = ::new (shell.books + kPage + kDescription) World();
  world->shell = shell;
  world->alive = ::new (shell.books) std::atomic<std::uint32_t>(kAlive);
  world->book_start = shell.books + kPage + kDescription + (sizeof(World) + 63) / 64 * 64;
  const std::size_t slots = shell.book_bytes / 64 < kMostSlots ? shell.book_bytes / 64 : kMostSlots;
  char* const table = shell.books + shell.book_bytes - slots * HandleTable::kSlotBytes;
  world->arena.Adopt(world->book_start, static_cast<std::size_t>(table - world->book_start));
  world->handles.Adopt(table, slots, next_world.fetch_add(1, std::memory_order_relaxed));
  world->lock = PTHREAD_MUTEX_INITIALIZER;  // not pthread_mutex_init: a host probe could take that call for the program's
  pthread_cond_init(&world->turn, nullptr);
  world->device_count = options.device_count;
  world->seed = options.seed;
  world->process_kernels = options.kernels;
  if (options.kernel_counts != nullptr) world->kernel_counts = options.kernel_counts;
  world->random = options.seed;
  world->schedule = options.schedule;
  world->on_misuse = options.on_misuse;
  world->origin = options.origin;
  world->observer = options.observer;
  world->on_awaited = options.on_awaited;
  world->patience_ms = options.patience_ms;
  world->profile = profile;
  const char* const name = options.device_name != nullptr ? options.device_name : profile->device_name;
  for (std::size_t i = 0; i + 1 < sizeof(world->device_name) && name[i] != '\0'; ++i) world->device_name[i] = name[i];
  for (int i = 0; i < world->device_count; ++i) world->devices[i].total = granted / static_cast<std::uint64_t>(world->device_count);
  if (!world->device_memory.Adopt(world->arena, shell.device, shell.device_bytes, space) ||
      !world->host_memory.Adopt(world->arena, shell.host, shell.host, space) || !PrepareDevices(world)) {
    DestroyWorld(world);
    return nullptr;
  }
  return world;
}

void DestroyWorld(World* world) noexcept {
  if (world == nullptr) return;
  for (Reservation* at = world->reservations; at != nullptr; at = at->next) {
    MapRelease(reinterpret_cast<void*>(static_cast<std::uintptr_t>(at->base)), at->size);
  }
  DropShares(*world);
  CloseBackings(*world);
  ClosePools(*world);
  CloseSemaphores(*world);
  pthread_cond_destroy(&world->turn);
  world->alive->store(kDestroyed, std::memory_order_release);
  const Shell shell = world->shell;
  char* const table = world->handles.memory();
  ClearUsed(table, world->handles.used_bytes());
  ClearUsed(shell.device_bytes, world->device_memory.used());
  ClearUsed(shell.host, world->host_memory.used());
  ClearUsed(world->book_start, static_cast<std::size_t>(world->arena.end_of_used() - world->book_start));
  LeaveShell(shell);
}

void DropSpareWorlds() noexcept { DropSpareShells(); }

driver::DriverRef Driver(World* world) noexcept { return {&kTable, world}; }

bool RegisterKernel(World* world, const cuaudit_kernel* kernel) noexcept {
  pthread_mutex_lock(&world->lock);
  const bool added = world->host_kernels.Push(world->arena, kernel);
  pthread_mutex_unlock(&world->lock);
  return added;
}

std::uint64_t CountKernels(const World* world, KernelCount what) noexcept {
  return world->kernel_counts[static_cast<std::size_t>(what)].load(std::memory_order_relaxed);
}

std::uint64_t DeviceBytes(const World* world) noexcept { return world->devices[0].total; }

LiveCounts CountAll(const World* world) noexcept {
  LiveCounts counts{};
  World* const locked = const_cast<World*>(world);
  pthread_mutex_lock(&locked->lock);
  for (std::size_t i = 0; i < driver::kKindCount; ++i) counts.count[i] = world->live[i];
  pthread_mutex_unlock(&locked->lock);
  return counts;
}

std::uint64_t LiveCount(const World* world, driver::Kind kind) noexcept { return CountAll(world).count[static_cast<std::size_t>(kind)]; }

}  // namespace cuaudit::sim
