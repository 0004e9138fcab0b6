// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/world.h"

#include <sys/mman.h>

#include <new>

#include "faults/sim/context.h"
#include "faults/sim/table.h"
#include "faults/sim/world_state.h"

namespace cuaudit::sim {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kLeastDevice = std::uint64_t{64} << 20;
constexpr std::uint64_t kSlack = std::uint64_t{64} << 20;

std::atomic<std::uint64_t> next_serial{1};
std::atomic<std::uint32_t> next_world{1};
thread_local std::uint64_t thread_serial = 0;

// Books first: without them there is no world; then the memory, smaller and smaller until the system agrees.
bool MapMemory(World* world, std::uint64_t wanted) noexcept {
  for (std::uint64_t bytes = wanted; bytes >= kLeastDevice; bytes /= 2) {
    const std::uint64_t space = (bytes + bytes / 4 + kSlack) / kLeastDevice * kLeastDevice;
    if (!world->device_memory.Map(world->arena, space, true)) continue;
    if (world->host_memory.Map(world->arena, space, false)) {
      for (int i = 0; i < world->device_count; ++i) world->devices[i].total = bytes / static_cast<std::uint64_t>(world->device_count);
      return true;
    }
    world->device_memory.Unmap();
  }
  return false;
}

}  // namespace

std::uint64_t ThreadSerial() noexcept {
  if (thread_serial == 0) thread_serial = next_serial.fetch_add(1, std::memory_order_relaxed);
  return thread_serial;
}

Thread* World::AddThread(std::uint64_t serial) noexcept {
  Thread* const thread = arena.New<Thread>();
  if (thread == nullptr) return nullptr;
  thread->serial = serial;
  thread->next = threads[serial % kThreadBuckets];
  threads[serial % kThreadBuckets] = thread;
  return thread;
}

World* CreateWorld(const WorldOptions& options) noexcept {
  if (options.device_count < 1 || options.device_count > kMaxDevices || options.device_name == nullptr) return nullptr;
  std::size_t bytes = std::size_t{1} << 30;
  char* base = nullptr;
  while (base == nullptr && bytes >= (std::size_t{4} << 20)) {
    base = MapReserve(bytes, true);
    if (base == nullptr) bytes /= 4;
  }
  if (base == nullptr) return nullptr;
  // The first page holds nothing but the mark that a fork wipes.
  std::uint32_t* const alive = ::new (base) std::uint32_t(1);
  madvise(base, kPage, MADV_WIPEONFORK);
  World* const world = ::new (base + kPage) World();
  world->mapping = base;
  world->mapping_bytes = bytes;
  world->alive = alive;
  const std::size_t head = kPage + (sizeof(World) + kPage - 1) / kPage * kPage;
  world->arena.Adopt(base + head, bytes - head);
  world->lock = PTHREAD_MUTEX_INITIALIZER;  // no call that a host probe could take for the program's
  pthread_cond_init(&world->turn, nullptr);
  world->device_count = options.device_count;
  world->seed = options.seed;
  for (std::size_t i = 0; i + 1 < sizeof(world->device_name) && options.device_name[i] != '\0'; ++i) {
    world->device_name[i] = options.device_name[i];
  }
  const std::size_t slots = bytes / 64 < (std::size_t{1} << 20) ? bytes / 64 : std::size_t{1} << 20;
  const std::uint32_t number = next_world.fetch_add(1, std::memory_order_relaxed);
  if (!world->handles.Adopt(world->arena, slots, number) || !MapMemory(world, options.device_bytes) || !PrepareDevices(world)) {
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
  world->device_memory.Unmap();
  world->host_memory.Unmap();
  pthread_cond_destroy(&world->turn);
  MapRelease(world->mapping, world->mapping_bytes);
}

driver::DriverRef Driver(World* world) noexcept { return {&kTable, world}; }

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
