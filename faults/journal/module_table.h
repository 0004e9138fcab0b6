// SPDX-License-Identifier: MIT
// module_table.h: turns a code address into (module, load-relative offset), and keeps the modules in the journal.
//
//   Owns      a snapshot of the loaded objects, refreshed when the loader says that something was loaded or unloaded.
//   Threads   safe; a refresh is made by one thread while others use the old snapshot.
//   Units     bytes.
//   Errors    an address in no known object is encoded with module kNoModule; a full table raises kModulesDropped.
//   Faults    makes no driver calls; allocates nothing.
//   Source    dl_iterate_phdr; in a forked child _dl_find_object, which takes no lock (glibc 2.35; with an older one, what the child itself
//             loads has no module); build ids from PT_NOTE (NT_GNU_BUILD_ID).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/journal/journal.h"
#include "faults/journal/page_guard.h"

struct dl_phdr_info;

namespace cuaudit::faults {

class ModuleTable {
 public:
  void Attach(Journal* journal) noexcept { journal_ = journal; }
  // Looks whether objects were loaded or unloaded since the last call; cheap when not.
  void Refresh() noexcept;
  // Module index and offset as layout.h encodes frames, for `count` addresses of one moment.
  void Encode(const std::uintptr_t* addresses, std::size_t count, std::uint64_t* frames) noexcept;
  // In a forked child: what vanished threads were doing is undone, and the snapshot stays as it is. Walking the loader's list takes a
  // lock that a thread of the parent may have held, and fork does not give that one back. What the child loads is looked up by address.
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
  // The range that the address lies in; null: none.
  static const Range* Find(const Snapshot& snapshot, std::uintptr_t address) noexcept;
  std::uint64_t EncodeFrozen(const Snapshot& snapshot, std::uintptr_t address) noexcept;
  // The object at that base is the one that the row names.
  bool IsStill(std::uint32_t module, const dl_phdr_info& info, const std::uint8_t* build_id, std::size_t bytes) const noexcept;
  std::uint32_t Intern(const char* path, const std::uint8_t* build_id, std::size_t bytes) noexcept;
  static int Visit(dl_phdr_info* info, std::size_t size, void* state) noexcept;

  Journal* journal_ = nullptr;
  PageGuard<kMaxModules * sizeof(ModuleRow)> pages_;
  Snapshot snapshot_[2];
  std::atomic<unsigned> current_{0};
  std::atomic<int> readers_[2] = {};  // a snapshot that somebody reads is not overwritten
  std::atomic<bool> frozen_{false};
  std::atomic<bool> refreshing_{false};
  std::atomic<unsigned long long> seen_{0};  // loads plus unloads at the last refresh
};

}  // namespace cuaudit::faults
