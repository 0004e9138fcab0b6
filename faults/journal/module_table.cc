// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/journal/module_table.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#ifdef DLFO_STRUCT_HAS_EH_DBASE
#pragma weak _dl_find_object
#endif

namespace cuaudit::faults {
namespace {

constexpr std::size_t Align4(std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; }

struct BuildId {
  const std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
};

BuildId FindBuildId(const dl_phdr_info& info) noexcept {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const char* note = reinterpret_cast<const char*>(info.dlpi_addr + header.p_vaddr);
    std::size_t left = header.p_memsz;
    while (left >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) row;
      memcpy(&row, note, sizeof(row));
      const std::size_t length = sizeof(row) + Align4(row.n_namesz) + Align4(row.n_descsz);
      if (length > left) break;
      if (row.n_type == NT_GNU_BUILD_ID && row.n_namesz == 4 && memcmp(note + sizeof(row), "GNU", 4) == 0) {
        return {reinterpret_cast<const std::uint8_t*>(note) + sizeof(row) + 4, row.n_descsz};
      }
      note += length;
      left -= length;
    }
  }
  return {};
}

std::uint64_t Frame(std::uint64_t module, std::uintptr_t offset) noexcept { return module << 48 | (offset & 0xffffffffffffU); }

// Finds the object that is loaded at the address, with the program headers in its first page. False: there is none, or this glibc has no
// _dl_find_object.
bool FindLoaded([[maybe_unused]] std::uintptr_t address, [[maybe_unused]] dl_phdr_info* info) noexcept {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  dl_find_object found;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of code
  if (&_dl_find_object == nullptr || _dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return false;
  *info = {};
  info->dlpi_addr = found.dlfo_link_map->l_addr;
  info->dlpi_name = found.dlfo_link_map->l_name;
  ElfW(Ehdr) header;
  memcpy(&header, found.dlfo_map_start, sizeof(header));
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return true;
  // Linkers put the program headers into the first page, but a tool that rewrites files may have put them anywhere.
  constexpr std::size_t kLeastPage = 4096;
  if (header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phoff > kLeastPage ||
      header.e_phnum * sizeof(ElfW(Phdr)) > kLeastPage - header.e_phoff)
    return true;
  info->dlpi_phdr = reinterpret_cast<const ElfW(Phdr)*>(static_cast<const char*>(found.dlfo_map_start) + header.e_phoff);
  info->dlpi_phnum = header.e_phnum;
  return true;
#else
  return false;
#endif
}

// Shortens a path that does not fit to its end, because the file name matters most.
const char* KeptEnd(const char* path) noexcept {
  const std::size_t length = strlen(path);
  constexpr std::size_t kRoom = sizeof(ModuleRow::path) - 1;
  return length > kRoom ? path + (length - kRoom) : path;
}

struct ModuleWalk {
  ModuleTable* table;
  ModuleTable::Snapshot* snapshot;
  python::Interpreter* python;
  unsigned long long seen;  // the loader's counters at the last refresh
  unsigned long long now = 0;
  bool first = true;
  bool unchanged = false;
};

}  // namespace

int ModuleTable::Visit(dl_phdr_info* info, std::size_t, void* state) noexcept {
  ModuleWalk& walk = *static_cast<ModuleWalk*>(state);
  if (walk.first) {
    walk.first = false;
    walk.now = info->dlpi_adds + info->dlpi_subs;
    if (walk.now == walk.seen) {
      walk.unchanged = true;
      return 1;
    }
  }
  char executable[PATH_MAX];
  const char* path = info->dlpi_name;
  if (path == nullptr || path[0] == '\0') {
    if (walk.snapshot->count != 0) return 0;  // only the program itself, which is visited first, has a file but no name
    // The kernel has no /proc/self/exe of a process whose first thread has ended, and a sandbox has no /proc at all.
    const ssize_t length = readlink("/proc/thread-self/exe", executable, sizeof(executable) - 1);
    executable[length < 0 ? 0 : length] = '\0';
    path = length > 0 ? executable : reinterpret_cast<const char*>(getauxval(AT_EXECFN));  // NOLINT(performance-no-int-to-ptr)
    if (path == nullptr) return 0;
  }
  if (walk.python != nullptr) walk.python->See(*info);
  const BuildId id = FindBuildId(*info);
  const std::uint32_t module = walk.table->Intern(path, id.bytes, id.size, info->dlpi_addr);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    if (walk.snapshot->count == kMaxRanges) {
      walk.table->journal_->header().flags.fetch_or(kModulesDropped, std::memory_order_relaxed);
      continue;
    }
    const std::uintptr_t start = info->dlpi_addr + header.p_vaddr;
    Snapshot& snapshot = *walk.snapshot;
    std::size_t at = snapshot.count++;
    for (; at > 0 && snapshot.range[at - 1].start > start; --at) snapshot.range[at] = snapshot.range[at - 1];
    snapshot.range[at] = {start, start + header.p_memsz, info->dlpi_addr, module};
  }
  return 0;
}

void ModuleTable::Refresh(python::Interpreter* python) noexcept {
  if (frozen_.load(std::memory_order_relaxed)) return;
  bool idle = false;
  if (!refreshing_.compare_exchange_strong(idle, true, std::memory_order_acquire)) return;
  const unsigned next = 1 - current_.load(std::memory_order_relaxed);
  if (readers_[next].load(std::memory_order_seq_cst) != 0) {  // the older snapshot still has readers: the next call tries again
    refreshing_.store(false, std::memory_order_release);
    return;
  }
  snapshot_[next].count = 0;
  ModuleWalk walk{this, &snapshot_[next], python, seen_.load(std::memory_order_relaxed)};
  dl_iterate_phdr(&ModuleTable::Visit, &walk);
  if (!walk.unchanged) {
    seen_.store(walk.now, std::memory_order_relaxed);
    current_.store(next, std::memory_order_seq_cst);
  }
  refreshing_.store(false, std::memory_order_release);
}

void ModuleTable::Encode(const std::uintptr_t* addresses, std::size_t count, std::uint64_t* frames, bool by_address) noexcept {
  unsigned at = current_.load(std::memory_order_seq_cst);
  for (;;) {
    readers_[at].fetch_add(1, std::memory_order_seq_cst);
    const unsigned now = current_.load(std::memory_order_seq_cst);
    if (now == at) break;
    readers_[at].fetch_sub(1, std::memory_order_seq_cst);
    at = now;
  }
  const bool frozen = by_address || frozen_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    if (frozen) {
      frames[i] = EncodeFrozen(snapshot_[at], addresses[i]);
      continue;
    }
    const Range* const range = Find(snapshot_[at], addresses[i]);
    frames[i] = range == nullptr ? Frame(kNoModule, addresses[i]) : Frame(range->module, addresses[i] - range->base);
  }
  readers_[at].fetch_sub(1, std::memory_order_seq_cst);
}

void ModuleTable::AfterFork() noexcept {
  frozen_.store(true, std::memory_order_relaxed);
  for (std::atomic<int>& readers : readers_) readers.store(0, std::memory_order_relaxed);
  refreshing_.store(false, std::memory_order_relaxed);
}

const ModuleTable::Range* ModuleTable::Find(const Snapshot& snapshot, std::uintptr_t address) noexcept {
  std::size_t low = 0;
  std::size_t high = snapshot.count;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (snapshot.range[middle].start <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 || address > snapshot.range[low - 1].end ? nullptr : &snapshot.range[low - 1];
}

std::uint64_t ModuleTable::EncodeFrozen(const Snapshot& snapshot, std::uintptr_t address) noexcept {
  const Range* const range = Find(snapshot, address);
  dl_phdr_info info;
  if (!FindLoaded(address, &info)) return range == nullptr ? Frame(kNoModule, address) : Frame(range->module, address - range->base);
  const BuildId id = FindBuildId(info);
  // A library that was loaded since the snapshot may lie where an unloaded one lay.
  if (range != nullptr && range->base == info.dlpi_addr && IsStill(range->module, info, id.bytes, id.size)) {
    return Frame(range->module, address - range->base);
  }
  return Frame(Intern(info.dlpi_name, id.bytes, id.size, info.dlpi_addr), address - info.dlpi_addr);
}

bool ModuleTable::IsStill(std::uint32_t module, const dl_phdr_info& info, const std::uint8_t* build_id, std::size_t bytes) const noexcept {
  if (module >= kMaxModules || info.dlpi_name == nullptr || info.dlpi_name[0] == '\0') return true;  // full table; the program itself
  const ModuleRow& row = journal_->modules()[module];
  const std::size_t id_bytes = bytes < sizeof(row.build_id) ? bytes : sizeof(row.build_id);
  const bool same_path = strncmp(row.path, KeptEnd(info.dlpi_name), sizeof(row.path) - 1) == 0;
  // Without the program headers the build id is unknown, too.
  if (info.dlpi_phdr == nullptr) return same_path;
  return same_path && row.build_id_bytes == id_bytes && (id_bytes == 0 || memcmp(row.build_id, build_id, id_bytes) == 0);
}

std::uint32_t ModuleTable::Intern(const char* path, const std::uint8_t* build_id, std::size_t bytes, std::uintptr_t base) noexcept {
  ModuleRow* rows = journal_->modules();
  const std::size_t id_bytes = bytes < sizeof(rows->build_id) ? bytes : sizeof(rows->build_id);
  const std::size_t room = sizeof(rows->path) - 1;
  const char* const kept = KeptEnd(path);
  for (std::uint32_t i = 0; i < kMaxModules; ++i) {
    if (!pages_.Ensure(reinterpret_cast<char*>(rows), i * sizeof(ModuleRow), sizeof(ModuleRow))) {
      journal_->header().flags.fetch_or(kNoSpace, std::memory_order_relaxed);
      break;
    }
    ModuleRow& row = rows[i];
    std::uint32_t state = row.state.load(std::memory_order_acquire);
    if (state == 0 && row.state.compare_exchange_strong(state, 1, std::memory_order_acq_rel)) {
      strncpy(row.path, kept, room);
      if (id_bytes != 0) memcpy(row.build_id, build_id, id_bytes);
      row.build_id_bytes = static_cast<std::uint32_t>(id_bytes);
      row.base.store(base, std::memory_order_relaxed);
      row.state.store(2, std::memory_order_release);
      journal_->header().next_module.fetch_add(1, std::memory_order_relaxed);
      return i;
    }
    // Another process may be writing the row. An object that is in the table twice is harmless; waiting for a killed writer is not.
    if (state != 2) continue;
    if (row.build_id_bytes == id_bytes && memcmp(row.build_id, build_id, id_bytes) == 0 && strncmp(row.path, kept, room) == 0) {
      row.base.store(base, std::memory_order_relaxed);
      return i;
    }
  }
  journal_->header().flags.fetch_or(kModulesDropped, std::memory_order_relaxed);
  return kNoModule;
}

}  // namespace cuaudit::faults
