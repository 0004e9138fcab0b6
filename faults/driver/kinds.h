// SPDX-License-Identifier: MIT
// kinds.h: the resource kinds of kinds.def as enumerations with names. KindFromName answers None for an unknown name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuaudit::driver {

enum class Kind : std::uint8_t {
#define CUAUDIT_KIND(name, json, family, dies_with) name,
#include "faults/driver/kinds.def"
#undef CUAUDIT_KIND
};

// Handles are compared within one family. The same number in two families names two objects.
enum class Family : std::uint8_t {
  None,
  Context,
  PrimaryContext,
  ContextStackEntry,
  Stream,
  Event,
  Pointer,
  HostPointer,
  HostRegistration,
  MemoryPool,
  AddressReservation,
  PhysicalMemory,
  Mapping,
  Array,
  MipmappedArray,
  TextureObject,
  SurfaceObject,
  TextureReference,
  Module,
  Library,
  LinkState,
  Graph,
  GraphNode,
  ExecutableGraph,
  UserObject,
  ExternalMemory,
  ExternalSemaphore,
  GreenContext,
  GraphicsResource,
  EglStream,
  Callback,
  HostHeap,
  DlopenReference,
  Mutex,
  FileDescriptor,
  Thread,
  HostMapping,
  Block,       // a block of the program's own pool, reported by the program (cuaudit/mark.h, cuaudit/block.h)
  PeerAccess,  // named by two contexts: the one that has access, and the one whose memory it may use
};

enum class DiesWith : std::uint8_t { Process, Context, Parent };

struct KindRow {
  std::string_view json_name;
  Family family;
  DiesWith dies_with;
};

inline constexpr KindRow kKinds[] = {
#define CUAUDIT_KIND(name, json, family, dies_with) {json, Family::family, DiesWith::dies_with},
#include "faults/driver/kinds.def"
#undef CUAUDIT_KIND
};
inline constexpr std::size_t kKindCount = sizeof(kKinds) / sizeof(kKinds[0]);

constexpr std::string_view Name(Kind kind) { return kKinds[static_cast<std::size_t>(kind)].json_name; }
constexpr Family FamilyOf(Kind kind) { return kKinds[static_cast<std::size_t>(kind)].family; }
constexpr DiesWith DiesWithOf(Kind kind) { return kKinds[static_cast<std::size_t>(kind)].dies_with; }

constexpr Kind KindFromName(std::string_view name) {
  for (std::size_t i = 0; i < kKindCount; ++i) {
    if (kKinds[i].json_name == name) return static_cast<Kind>(i);
  }
  return Kind::None;
}

}  // namespace cuaudit::driver
