// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/memory/physical.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/order/history.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kTrailerMagic = 0x6c61636973796870U;

// Follows the bytes in the file.
struct Trailer {
  std::uint64_t magic;
  std::uint64_t size;
  CUmemAllocationProp properties;
};
static_assert(sizeof(Trailer) <= kPage);

std::uint64_t InodeOf(int file) {
  struct stat about;
  return fstat(file, &about) == 0 ? about.st_ino : 0;
}

bool Remember(World& world, Backing* backing) { return world.file_backings.Push(world.arena, backing); }

// A file with room for the bytes, described; -1: refused.
int MakeFile(std::uint64_t size, const CUmemAllocationProp& properties) {
  const int file = MakeShareFile(size + kPage);
  const Trailer trailer{kTrailerMagic, size, properties};
  if (file >= 0 && pwrite(file, &trailer, sizeof(trailer), static_cast<off_t>(size)) != static_cast<ssize_t>(sizeof(trailer))) {
    close(file);
    return -1;
  }
  return file;
}

// Moves the bytes to a file; whoever maps them sees them there.
bool MoveToFile(World& world, Backing* backing, const CUmemAllocationProp& properties) {
  if (backing->file >= 0) return true;
  const int file = MakeFile(backing->size, properties);
  char* const bytes = file < 0 ? nullptr : MapShareFile(file, backing->size, 0);
  if (bytes == nullptr || !Remember(world, backing)) {
    MapRelease(bytes, backing->size);
    if (file >= 0) close(file);
    return false;
  }
  CopyUsed(bytes, backing->bytes, backing->size);
  for (Range* range = world.ranges.FirstFrom(0); range != nullptr; range = world.ranges.FirstFrom(range->base + range->size)) {
    if (range->physical != nullptr && range->physical->backing == backing) range->bytes = bytes;
  }
  world.device_memory.Free(world.arena, backing->block);
  backing->block = nullptr;
  backing->bytes = bytes;
  backing->file = file;
  backing->inode = InodeOf(file);
  return true;
}

}  // namespace

Backing* MakeBacking(World& world, const CUmemAllocationProp& properties, std::uint64_t size) noexcept {
  Backing* const backing = world.arena.New<Backing>();
  if (backing == nullptr) return nullptr;
  backing->size = size;
  if (IsOnHost(properties)) {
    backing->file = MakeFile(size, properties);
    if (backing->file >= 0) backing->bytes = MapShareFile(backing->file, size, 0);
    backing->inode = InodeOf(backing->file);
    if (backing->bytes != nullptr && Remember(world, backing)) return backing;
    DropBacking(world, backing);
    return nullptr;
  }
  if (Charge(world, properties.location.id, size)) {
    backing->charged_device = properties.location.id;
    backing->block = world.device_memory.Allocate(world.arena, size);
    if (backing->block != nullptr) {
      backing->bytes = world.device_memory.Bytes(backing->block->base);
      // Its file is there from the start, so an export opens one descriptor.
      const bool exportable = (static_cast<unsigned>(properties.requestedHandleTypes) & kFd) != 0;
      if (!exportable || MoveToFile(world, backing, properties)) return backing;
    }
  }
  DropBacking(world, backing);
  return nullptr;
}

Backing* ImportBacking(World& world, int file, CUmemAllocationProp* properties) noexcept {
  struct stat about;
  Trailer trailer{};
  if (file < 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size <= static_cast<off_t>(kPage)) return nullptr;
  const std::uint64_t size = static_cast<std::uint64_t>(about.st_size) - kPage;
  if (pread(file, &trailer, sizeof(trailer), static_cast<off_t>(size)) != static_cast<ssize_t>(sizeof(trailer))) return nullptr;
  if (trailer.magic != kTrailerMagic || trailer.size != size) return nullptr;
  *properties = trailer.properties;
  for (Backing* const known : world.file_backings) {
    if (known->inode != about.st_ino) continue;
    ++known->references;
    return known;
  }
  Backing* const backing = world.arena.New<Backing>();
  if (backing == nullptr) return nullptr;
  backing->size = size;
  backing->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (backing->file >= 0) backing->bytes = MapShareFile(backing->file, size, 0);
  backing->inode = about.st_ino;
  if (backing->bytes != nullptr && Remember(world, backing)) return backing;
  DropBacking(world, backing);
  return nullptr;
}

int ExportBacking(World& world, Backing* backing, const CUmemAllocationProp& properties) noexcept {
  return MoveToFile(world, backing, properties) ? fcntl(backing->file, F_DUPFD_CLOEXEC, 0) : -1;
}

void DropBacking(World& world, Backing* backing) noexcept {
  if (--backing->references != 0) return;
  if (backing->charged_device >= 0) Discharge(world, backing->charged_device, backing->size);
  if (backing->block != nullptr) world.device_memory.Free(world.arena, backing->block);
  if (backing->file >= 0) {
    MapRelease(backing->bytes, backing->size);
    close(backing->file);
    world.file_backings.EraseValue(backing);
  }
  FreeHistory(world, backing->history);
  world.arena.Delete(backing);
}

void CloseBackings(World& world) noexcept {
  for (const Backing* const backing : world.file_backings) {
    MapRelease(backing->bytes, backing->size);
    close(backing->file);
  }
}

Physical* MakePhysical(World& world, Backing* backing, const CUmemAllocationProp& properties) noexcept {
  Physical* const physical = world.Make<Physical>(nullptr);
  if (physical == nullptr) {
    DropBacking(world, backing);
    return nullptr;
  }
  physical->backing = backing;
  physical->properties = properties;
  physical->size = backing->size;
  return physical;
}

void DropPhysical(World& world, Physical* physical) noexcept {
  if (physical->references != 0 || physical->mappings != 0) return;
  DropBacking(world, physical->backing);
  if (!physical->released) world.Retire(physical);
  world.arena.Delete(physical);
}

void DropBindings(World& world, Range* range) noexcept {
  for (std::size_t i = world.bindings.size(); i-- > 0;) {
    Binding* const binding = world.bindings[i];
    if (binding->range != range) continue;
    --binding->physical->mappings;
    DropPhysical(world, binding->physical);
    world.bindings.Erase(i);
    world.arena.Delete(binding);
  }
}

}  // namespace cuaudit::sim
