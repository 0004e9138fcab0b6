// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/world.h"

#include <pthread.h>
#include <sched.h>

#include <new>

#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/executable.h"
#include "faults/sim/memory/physical.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/operation/value_work.h"
#include "faults/sim/oracle/oracle.h"
#include "faults/sim/state/world_state.h"
#include "faults/sim/stream/schedule.h"

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
  world->undefined = options.undefined;
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

// The books one by one, for whoever keeps books of its own and compares.

namespace {

using driver::Kind;

// Requested size of a handle that stands for bytes.
std::uint64_t BytesOf(const Object* object) noexcept {
  return object->tag == Tag::Physical ? static_cast<const Physical*>(object)->size : 0;
}

class List {
 public:
  List(LiveObject* list, std::size_t room) : list_(list), room_(room) {}
  void Add(const LiveObject& object) noexcept {
    if (count_ < room_) list_[count_] = object;
    ++count_;
  }
  std::size_t count() const noexcept { return count_; }

 private:
  LiveObject* list_;
  std::size_t room_;
  std::size_t count_ = 0;
};

}  // namespace

std::size_t ListLive(const World* world, LiveObject* list, std::size_t room) noexcept {
  World& locked = *const_cast<World*>(world);
  List all(list, room);
  pthread_mutex_lock(&locked.lock);
  for (std::size_t slot = 0; slot < locked.handles.used(); ++slot) {
    const Object* const object = locked.handles.At(slot);
    if (object != nullptr && object->counted) all.Add({KindOf(object->tag), object->handle, BytesOf(object), false});
    if (object == nullptr || object->tag != Tag::Context) continue;
    for (const std::uint64_t peer : static_cast<const Context*>(object)->peers) all.Add({Kind::PeerAccess, peer, 0, false, object->handle});
  }
  for (const Range* range = locked.ranges.FirstFrom(0); range != nullptr; range = locked.ranges.FirstFrom(range->base + 1)) {
    if (range->kind != Kind::None) all.Add({range->kind, range->base, range->asked, range->freeing});
  }
  for (const Reservation* at = locked.reservations; at != nullptr; at = at->next) {
    all.Add({Kind::AddressReservation, at->base, at->size, false});
  }
  for (int device = 0; device < locked.device_count; ++device) {
    for (std::uint32_t i = 0; i < locked.devices[device].primary->references; ++i) {
      all.Add({Kind::PrimaryContext, static_cast<std::uint64_t>(device), 0, false});
    }
  }
  pthread_mutex_unlock(&locked.lock);
  return all.count();
}

Fate FateOf(const World* world, std::uint64_t handle) noexcept {
  World& locked = *const_cast<World*>(world);
  pthread_mutex_lock(&locked.lock);
  const HandleTable& handles = locked.handles;
  Fate fate = Fate::Unknown;
  if (handles.Find(handle) != nullptr) {
    fate = Fate::Alive;
  } else if (handles.DiedWithContext(handle) || handles.DiedWithGreen(handle)) {
    fate = Fate::DiedWithContext;
  } else if (handles.IsStale(handle)) {
    fate = Fate::Destroyed;
  }
  pthread_mutex_unlock(&locked.lock);
  return fate;
}

// Work that nobody waits for any more.
//
// On a device it ends all the same. Here the memory and the objects that its functions use may be gone by then, so no code of the program
// is called and no memory of the program is touched. What follows in the queues still happens: memory is freed in stream order, and user
// objects that launched graphs hold are destroyed. The arguments of functions that were not called are what the program had given away with
// them.

namespace {

using Visit = void (*)(void* self, const void* argument);

void VisitArguments(const Work& work, void* self, Visit visit) {
  if (work.type == WorkType::HostFunction) visit(self, work.host.userData);
  if (work.type == WorkType::Callback) visit(self, work.callback.argument);
  if (work.type != WorkType::Launch) return;
  for (const Step& step : work.launch.plan->steps) {
    if (step.type == CU_GRAPH_NODE_TYPE_HOST && step.enabled) visit(self, step.work.host.userData);
  }
}

}  // namespace

void EachHostArgument(World* world, void* self, Visit visit) noexcept {
  if (!UsableHere(*world)) return;
  pthread_mutex_lock(&world->lock);
  for (const Stream* const stream : world->busy_streams) {
    for (const Operation* operation = stream->head; operation != nullptr; operation = operation->next) {
      if (!stream->busy || operation != stream->head) VisitArguments(operation->work, self, visit);
    }
  }
  pthread_mutex_unlock(&world->lock);
}

void RunHollow(World* world) noexcept {
  // The thread that exits may itself hold the lock, when it was interrupted in a call.
  if (!UsableHere(*world) || pthread_mutex_trylock(&world->lock) != 0) return;
  Call call{*world, world->FindThread(ThreadSerial()), nullptr, false};
  if (call.thread == nullptr || call.thread->inside != Inside::Nothing) {
    pthread_mutex_unlock(&world->lock);
    return;
  }
  const auto run = [&] {
    while (RunOne(*world, call.thread)) {
    }
  };
  world->hollow.all = true;
  world->hollow.skipped = false;
  run();
  // What still waits for a value may wait for one that something has not written because it ended hollow.
  world->hollow.passes = world->hollow.skipped;
  if (world->hollow.passes) run();
  world->hollow = {.before = world->next_ticket};
  Leave(call);
}

bool UsableHere(World& world) noexcept {
  std::uint32_t mark = world.alive->load(std::memory_order_acquire);
  if (mark == kAlive) [[likely]]
    return true;
  // One thread checks whether the world was initialised before the fork, before any thread can initialise it.
  if (mark == kWiped && world.alive->compare_exchange_strong(mark, kBeginning, std::memory_order_acquire)) {
    if (!world.initialized) world.lock = PTHREAD_MUTEX_INITIALIZER;
    mark = world.initialized ? kRefused : kAlive;
    world.alive->store(mark, std::memory_order_release);
  }
  while (mark == kBeginning) {
    sched_yield();
    mark = world.alive->load(std::memory_order_acquire);
  }
  return mark == kAlive;
}

void Shutdown(World* world) noexcept { world->closed.store(true, std::memory_order_release); }

// A world may go on in a forked child as if nothing had happened.
const void* WipedByFork(const World* world) noexcept { return world->alive; }

bool HoldForFork(World* world) noexcept {
  pthread_mutex_lock(&world->lock);
  if (world->running == 0 && world->waiting_turns == 0) return true;
  pthread_mutex_unlock(&world->lock);
  return false;
}

void ReleaseAfterFork(World* world) noexcept { pthread_mutex_unlock(&world->lock); }

bool ContinueForked(World* world, std::atomic<std::uint64_t>* kernel_counts) noexcept {
  world->alive->store(kAlive, std::memory_order_release);
  if (kernel_counts != nullptr) world->kernel_counts = kernel_counts;
  const bool attended = world->attended;
  pthread_mutex_unlock(&world->lock);
  return attended;
}

namespace {

enum class Inherited : std::uint8_t { Nothing, Finished, Unfinished };

bool NeedsTheParent(const Work& work) { return RunsHostFunctions(work) || work.type == WorkType::Await; }

Inherited StateOf(const World& world, CUstream handle) {
  const Stream* const stream = world.Find<Stream>(handle);
  if (stream == nullptr || stream->capture != nullptr || stream->owner->sticky != CUDA_SUCCESS) return Inherited::Nothing;
  for (const Operation* operation = stream->head; operation != nullptr; operation = operation->next) {
    if (NeedsTheParent(operation->work)) return Inherited::Unfinished;
  }
  return Inherited::Finished;
}

// Finished: never recorded, or reached before the fork. Unfinished: recorded in the child.
Inherited StateOf(const World& world, CUevent handle) {
  const Event* const event = world.Find<Event>(handle);
  if (event == nullptr || event->was_captured) return Inherited::Nothing;
  if (event->inherited) return Inherited::Unfinished;
  return event->marker == nullptr || event->marker->done ? Inherited::Finished : Inherited::Nothing;
}

// Calls `act` in a forked child with the lock held. Where that cannot be: Inherited::Nothing, or false.
template <typename Act>
auto InChild(World& world, Act act) -> decltype(act()) {
  if (!IsForkedChild(world) || pthread_mutex_trylock(&world.lock) != 0) return {};
  const auto answer = act();
  pthread_mutex_unlock(&world.lock);
  return answer;
}

Inherited Look(World& world, CUstream stream) {
  return InChild(world, [&] { return StateOf(world, stream); });
}

CUresult AnswerFor(Inherited state) {
  switch (state) {
    case Inherited::Finished:
      return CUDA_SUCCESS;
    case Inherited::Unfinished:
      return CUDA_ERROR_NOT_READY;
    case Inherited::Nothing:
      break;
  }
  return CUDA_ERROR_NOT_INITIALIZED;
}

}  // namespace

CUresult QueryInherited(World& world, CUstream stream) noexcept { return AnswerFor(Look(world, stream)); }

CUresult SynchronizeInherited(World& world, CUstream stream) noexcept {
  return Look(world, stream) == Inherited::Finished ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult LaunchInherited(World& world, CUstream stream) noexcept {
  return Look(world, stream) == Inherited::Nothing ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

CUresult RecordInherited(World& world, CUevent handle, CUstream stream) noexcept {
  const bool recorded = InChild(world, [&] {
    Event* const event = world.Find<Event>(handle);
    if (event == nullptr || StateOf(world, stream) == Inherited::Nothing) return false;
    event->inherited = true;
    return true;
  });
  return recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult QueryInherited(World& world, CUevent handle) noexcept {
  return AnswerFor(InChild(world, [&] { return StateOf(world, handle); }));
}

CUresult SynchronizeInherited(World& world, CUevent handle) noexcept {
  const Inherited state = InChild(world, [&] { return StateOf(world, handle); });
  return state == Inherited::Nothing ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

CUresult DestroyInherited(Call& call, CUevent handle) noexcept {
  const bool destroyed = InChild(call.world, [&] {
    Event* const event = call.world.Find<Event>(handle);
    if (event == nullptr) return false;
    call.world.Retire(event);  // its record of work is the parent's
    return true;
  });
  return destroyed ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult DestroyInherited(Call& call, CUstream stream) noexcept {
  return Look(call.world, stream) == Inherited::Nothing ? CUDA_ERROR_NOT_INITIALIZED : call.Undefined(CUDA_ERROR_NOT_INITIALIZED);
}

}  // namespace cuaudit::sim
