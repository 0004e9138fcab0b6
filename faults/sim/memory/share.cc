// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/memory/share.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint32_t kShareMagic = 0x6b68b30bU;
constexpr std::uint32_t kMostShares = 4096;
constexpr std::uint32_t kAlive = 1;

// One entry of the table, in memory of several processes.
struct TableSlot {
  std::atomic<std::uint32_t> life;  // odd while it is shared; a slot's next owner has another one
  std::atomic<std::uint32_t> opens;
  ShareKind kind;
  std::uint32_t group;
  std::uint64_t nonce;
  std::uint64_t offset;
  std::uint64_t size;
};
constexpr std::uint64_t kTableBytes = (kMostShares * sizeof(TableSlot) + kPage - 1) / kPage * kPage;

TableSlot* At(char* table, std::uint32_t slot) { return reinterpret_cast<TableSlot*>(table) + slot; }

std::uint64_t Pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

bool MakeTable(World& world) {
  ShareFile& share = world.share;
  if (share.file >= 0) return true;
  share.file = MakeShareFile(kTableBytes);
  if (share.file < 0) return false;
  share.table = MapShareFile(share.file, kTableBytes, 0);
  if (share.table == nullptr) {
    close(share.file);
    share.file = -1;
    return false;
  }
  share.end = kTableBytes;
  // Tells this world from a later one behind the same numbers; where the table lies differs between processes.
  share.nonce = (reinterpret_cast<std::uintptr_t>(share.table) ^ (world.seed << 48)) * 0x9e3779b97f4a7c15U + world.next_id;
  return true;
}

// The table behind a name, or null.
char* MapTable(const ShareName& name, int* file) {
  if (name.magic != kShareMagic || name.slot >= kMostShares || name.process <= 0 || name.file < 0) return nullptr;
  char path[64];
  (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", name.process, name.file);
  *file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (*file < 0) return nullptr;
  struct stat about;
  char* table = nullptr;
  if (fstat(*file, &about) == 0 && S_ISREG(about.st_mode) && static_cast<std::uint64_t>(about.st_size) >= kTableBytes) {
    table = MapShareFile(*file, kTableBytes, 0);
  }
  if (table == nullptr) close(*file);
  return table;
}

// `ended`: how many times the share has ended since it was named, 0 or 1.
bool Matches(const TableSlot& slot, const ShareName& name, std::uint32_t ended = 0) {
  return (name.life & kAlive) != 0 && slot.life.load(std::memory_order_seq_cst) == name.life + ended && slot.nonce == name.nonce &&
         slot.kind == name.kind && slot.group == name.group && slot.size == name.size;
}

// Memory of a pool is imported although it was freed, as on a device (ipc.pool_memory_freed), until another takes its place in the table.
bool MayOpen(const TableSlot& slot, const ShareName& name) {
  return Matches(slot, name) || (name.kind == ShareKind::PoolMemory && Matches(slot, name, 1));
}

}  // namespace

int MakeShareFile(std::uint64_t bytes) noexcept {
  const int file = memfd_create("cuaudit", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    return -1;
  }
  return file;
}

char* MapShareFile(int file, std::uint64_t bytes, std::uint64_t offset) noexcept {
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
}

void CopyUsed(char* to, const char* from, std::uint64_t bytes) noexcept {
  static constexpr char kNothing[kPage] = {};
  for (std::uint64_t at = 0; at < bytes; at += kPage) {
    const std::size_t part = bytes - at < kPage ? static_cast<std::size_t>(bytes - at) : kPage;
    if (std::memcmp(from + at, kNothing, part) != 0) std::memcpy(to + at, from + at, part);
  }
}

std::uint32_t ShareSlot(World& world, ShareKind kind, std::uint32_t group) noexcept {
  if (!MakeTable(world)) return 0;
  ShareFile& share = world.share;
  std::uint32_t index = 0;
  while (index < share.slots) {
    const TableSlot* const slot = At(share.table, index);
    if ((slot->life.load(std::memory_order_relaxed) & kAlive) == 0 && slot->opens.load(std::memory_order_acquire) == 0) break;
    ++index;
  }
  if (index == kMostShares) return 0;
  if (index == share.slots) ++share.slots;
  TableSlot* const slot = At(share.table, index);
  slot->kind = kind;
  slot->group = group;
  slot->nonce = share.nonce;
  slot->offset = slot->size = 0;
  slot->life.fetch_add(1, std::memory_order_release);
  return index + 1;
}

ShareName NameShare(const World& world, std::uint32_t number) noexcept {
  const TableSlot* const slot = At(world.share.table, number - 1);
  return {kShareMagic, getpid(), world.share.file, number - 1, slot->life.load(std::memory_order_relaxed), slot->kind,
          slot->group, 0,        slot->nonce,      slot->size};
}

bool ShareRange(World& world, Range* range, ShareKind kind, std::uint32_t group) noexcept {
  if (range->share != 0) return true;
  const std::uint32_t number = ShareSlot(world, kind, group);
  if (number == 0) return false;
  ShareFile& share = world.share;
  TableSlot* const slot = At(share.table, number - 1);
  const std::uint64_t bytes = Pages(range->size);
  char* mapped = nullptr;
  if (ftruncate(share.file, static_cast<off_t>(share.end + bytes)) == 0) mapped = MapShareFile(share.file, bytes, share.end);
  if (mapped == nullptr || !share.ranges.Push(world.arena, range)) {
    MapRelease(mapped, bytes);
    slot->life.fetch_add(1, std::memory_order_release);
    return false;
  }
  CopyUsed(mapped, range->bytes, range->size);
  slot->offset = share.end;
  slot->size = range->size;
  share.end += bytes;
  range->bytes = mapped;
  range->share = number;
  return true;
}

void EndShare(World& world, std::uint32_t number) noexcept {
  if (number == 0) return;
  TableSlot* const slot = At(world.share.table, number - 1);
  slot->life.fetch_add(1, std::memory_order_seq_cst);
  // Nobody has it open, and nobody can open it any more: its bytes go back at once.
  if (slot->opens.load(std::memory_order_seq_cst) != 0 || slot->size == 0) return;
  (void)fallocate(world.share.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(slot->offset),
                  static_cast<off_t>(Pages(slot->size)));
}

void EndShare(World& world, Range* range) noexcept {
  if (range->share == 0) return;
  MapRelease(range->bytes, Pages(range->size));
  world.share.ranges.EraseValue(range);
  EndShare(world, range->share);
  range->share = 0;
}

bool IsOwnShare(const ShareName& name) noexcept { return name.magic == kShareMagic && name.process == getpid(); }

bool IsShareAlive(const ShareName& name) noexcept {
  int file = -1;
  char* const table = MapTable(name, &file);
  if (table == nullptr) return false;
  const bool alive = Matches(*At(table, name.slot), name);
  MapRelease(table, kTableBytes);
  close(file);
  return alive;
}

Import* FindImport(World& world, const ShareName& name) noexcept {
  for (Import* const import : world.share.imports) {
    if (std::memcmp(&import->name, &name, sizeof(name)) == 0) return import;
  }
  return nullptr;
}

Import* OpenShare(World& world, const ShareName& name) noexcept {
  int file = -1;
  char* const table = MapTable(name, &file);
  if (table == nullptr) return nullptr;
  TableSlot* const slot = At(table, name.slot);
  // Counted first: an owner that ends it between here and the check leaves the bytes alone.
  slot->opens.fetch_add(1, std::memory_order_seq_cst);
  Import* import = nullptr;
  char* bytes = nullptr;
  if (MayOpen(*slot, name) && name.size != 0) {
    bytes = MapShareFile(file, Pages(name.size), slot->offset);
    import = bytes == nullptr ? nullptr : world.arena.New<Import>();
  }
  close(file);
  if (import == nullptr || !world.share.imports.Push(world.arena, import)) {
    if (import != nullptr) world.arena.Delete(import);
    MapRelease(bytes, Pages(name.size));
    slot->opens.fetch_sub(1, std::memory_order_acq_rel);
    MapRelease(table, kTableBytes);
    return nullptr;
  }
  *import = {name, bytes, table, 0, nullptr};
  return import;
}

void CloseShare(World& world, Import* import) noexcept {
  At(import->table, import->name.slot)->opens.fetch_sub(1, std::memory_order_acq_rel);
  MapRelease(import->bytes, Pages(import->name.size));
  MapRelease(import->table, kTableBytes);
  world.share.imports.EraseValue(import);
  world.arena.Delete(import);
}

void DropShares(World& world) noexcept {
  ShareFile& share = world.share;
  const bool own = *world.alive != 0;  // a forked child leaves its parent's table alone
  for (const Import* const import : share.imports) {
    if (own) At(import->table, import->name.slot)->opens.fetch_sub(1, std::memory_order_acq_rel);
    MapRelease(import->bytes, Pages(import->name.size));
    MapRelease(import->table, kTableBytes);
  }
  for (const Range* const range : share.ranges) MapRelease(range->bytes, Pages(range->size));
  if (share.file < 0) return;
  for (std::uint32_t i = 0; own && i < share.slots; ++i) {
    std::atomic<std::uint32_t>& life = At(share.table, i)->life;
    if ((life.load(std::memory_order_relaxed) & kAlive) != 0) life.fetch_add(1, std::memory_order_acq_rel);
  }
  MapRelease(share.table, kTableBytes);
  close(share.file);
}

}  // namespace cuaudit::sim
