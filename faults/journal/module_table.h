// SPDX-License-Identifier: MIT
// module_table.h: turns a code address into (module, offset from its load address), and keeps the modules in the journal.
//
//   Owns      a snapshot of the loaded objects, refreshed when the loader's counters show that an object was loaded or unloaded.
//   Threads   safe. One thread refreshes while others use the old snapshot.
//   Errors    an address in no known object gets module kNoModule. A full table raises kModulesDropped.
//   Faults    allocates nothing and makes no driver call.
//   Source    dl_iterate_phdr; in a forked child _dl_find_object, which takes no lock (since glibc 2.35; with an older glibc an object that
//             the child itself loads has no module). Build ids come from PT_NOTE (NT_GNU_BUILD_ID).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/journal/journal.h"
#include "faults/python/interpreter.h"

struct dl_phdr_info;

namespace cuaudit::faults {

class ModuleTable {
 public:
  void Attach(Journal* journal) noexcept { journal_ = journal; }
  // Renews the snapshot when objects were loaded or unloaded since the last call; cheap when none were. Shows all objects to `python`.
  void Refresh(python::Interpreter* python = nullptr) noexcept;
  // Encodes `count` addresses, all taken at one moment, as frames (layout.h). With `by_address` objects that were loaded since the last
  // Refresh are looked up by address, as in a forked child.
  void Encode(const std::uintptr_t* addresses, std::size_t count, std::uint64_t* frames, bool by_address = false) noexcept;
  // Called in a forked child. Undoes what threads that do not exist in the child were doing, and freezes the snapshot: walking the
  // loader's list takes a lock that a thread of the parent may have held at the fork. Objects that the child loads are looked up by
  // address.
  void AfterFork() noexcept;

  struct Range {
    std::uintptr_t start = 0;
    std::uintptr_t end = 0;
    std::uintptr_t base = 0;
    std::uint32_t module = 0;
  };
  static constexpr std::size_t kMaxRanges = 2048;
  struct Snapshot {
    std::size_t count = 0;
    Range range[kMaxRanges];
  };

 private:
  // The range that contains the address, or null.
  static const Range* Find(const Snapshot& snapshot, std::uintptr_t address) noexcept;
  std::uint64_t EncodeFrozen(const Snapshot& snapshot, std::uintptr_t address) noexcept;
  // True when the object described by `info` is the one in the table at `module`.
  bool IsStill(std::uint32_t module, const dl_phdr_info& info, const std::uint8_t* build_id, std::size_t bytes) const noexcept;
  std::uint32_t Intern(const char* path, const std::uint8_t* build_id, std::size_t bytes, std::uintptr_t base) noexcept;
  static int Visit(dl_phdr_info* info, std::size_t size, void* state) noexcept;

  Journal* journal_ = nullptr;
  PageGuard<kMaxModules * sizeof(ModuleRow)> pages_;
  Snapshot snapshot_[2];
  std::atomic<unsigned> current_{0};
  std::atomic<int> readers_[2] = {};  // a snapshot that has readers is not overwritten
  std::atomic<bool> frozen_{false};
  std::atomic<bool> refreshing_{false};
  std::atomic<unsigned long long> seen_{0};  // loads plus unloads at the last refresh
};

}  // namespace cuaudit::faults
