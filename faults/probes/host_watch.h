// SPDX-License-Identifier: MIT
// host_watch.h: what the host drop-in (libcuaudit_host.so) offers to an audit in its own process. The audit looks the function
// cuaudit_host_watch up by name.
//
//   Owns      the library keeps the journal that is passed to Begin, which must stay for the life of the process.
//   Threads   one audit at a time. Begin, End, the spans and Refuse belong to its thread. What other threads do in a span is counted too.
//   Units     bytes. A block is memory from malloc and similar functions.
//   Errors    Begin returns which kinds it can see, and why it cannot see the others. When more blocks are alive than the table holds,
//             HostNet::lost is set.
//
// Between Begin and End every release is followed, but acquisitions only in a span. In a span mutexes, libraries, descriptors, threads
// and mappings leave records, as in a program's journal. Blocks do not, because a cycle may make millions of them: a table holds each
// block until it is freed. In a span with stacks, each block that outlives the span becomes an Allocate record at the end of the span,
// and each block of an earlier span that is freed becomes a Deallocate record. The Deallocate record has the stack of the allocation, so
// that it can be matched with the acquisition.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace cuaudit::faults {

class Plan;

// Net effect of one span. A block that was allocated and freed in the span is not counted.
struct HostNet {
  std::int64_t kept = 0;  // blocks that were allocated in the span and are still alive
  std::int64_t kept_bytes = 0;
  std::int64_t gone = 0;  // blocks of earlier spans that were freed in the span
  std::int64_t gone_bytes = 0;
  bool lost = false;  // the table was full, so the counts are too low

  std::int64_t blocks() const noexcept { return kept - gone; }
  std::int64_t bytes() const noexcept { return kept_bytes - gone_bytes; }
};

// Why the library does not see a kind.
enum class HostUnseen : std::uint8_t {
  No,       // it does
  NoHooks,  // the sanitizer in this process has no hooks for blocks
  Other,    // functions of the same name, in the program or in another library, come before those of this one
};
struct HostBlind {
  HostUnseen heap = HostUnseen::No;
  HostUnseen mutexes = HostUnseen::No;
  HostUnseen libraries = HostUnseen::No;  // references made by dlopen
};

struct HostWatchCalls {
  std::uint64_t digest;  // HostWatchDigest of the library's build
  // `journal`: the memory of a journal (journal_file.h). Returns false when the library already works for `cuaudit run`.
  bool (*begin)(void* journal, HostBlind* blind) noexcept;
  void (*end)() noexcept;
  void (*start_span)(bool stacks) noexcept;
  HostNet (*end_span)() noexcept;
  // As StackTable::StartAt.
  void (*start_at)(const void* frame) noexcept;
  // From now on the allocations and threads that the program's own modules ask for are counted in the header of that journal, and
  // refused with a record there when the plan says so. A null journal ends this.
  void (*refuse)(void* journal, const Plan* plan) noexcept;
  // The span's block at this address, and what it points to of the span's blocks, will be freed by somebody else: it counts as freed now.
  void (*give_away)(const void* block) noexcept;
};

// Changes with this file's structures, so that a library of another version is refused. `tables`: driver::TableDigest(). Count kVersion up
// when the meaning of a member changes and no size does.
constexpr std::uint64_t HostWatchDigest(std::uint64_t tables) noexcept {
  constexpr std::uint64_t kVersion = 2;
  for (const std::uint64_t part : {kVersion, std::uint64_t{sizeof(HostWatchCalls)}, std::uint64_t{sizeof(HostBlind)}}) {
    tables = (tables ^ part) * 0x100000001b3U;  // FNV-1a
  }
  return tables;
}

// extern "C" const HostWatchCalls* cuaudit_host_watch();
inline constexpr char kHostWatchName[] = "cuaudit_host_watch";

}  // namespace cuaudit::faults
