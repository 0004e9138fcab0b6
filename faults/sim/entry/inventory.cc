// SPDX-License-Identifier: MIT
// The books one by one, for whoever keeps books of its own and compares.
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {
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

}  // namespace cuaudit::sim
