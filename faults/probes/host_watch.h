// SPDX-License-Identifier: MIT
// host_watch.h: what the host drop-in (libcuaudit_host.so) offers to an audit in its own process, asked for by name: cuaudit_host_watch.
//
//   Owns      nothing; the library keeps the journal that Begin is given, which must stay for the life of the process.
//   Threads   one audit at a time; Begin, End, the spans and Refuse belong to its thread. What other threads do in a span is counted too.
//   Units     bytes; blocks are malloc's and its likes'.
//   Errors    Begin answers what it can see and, of the rest, why not. More blocks alive at once than are followed: HostNet::lost.
//   Faults    makes no driver calls.
//   Source    ours; the library is faults/interpose.
//
// Between Begin and End whatever goes is followed; what comes is followed in a span only. In a span mutexes, libraries, descriptors,
// threads and mappings leave records as in a program's journal. Blocks do not: a cycle may make millions of them. They are held in a
// table until they are freed, and in a span with stacks each block that outlives it becomes an Allocate record at its end, and each block
// of an earlier span that is freed a Deallocate record. That one carries the stack of the allocation: what goes is set against what came.
#pragma once

#include <cstdint>

namespace cuaudit::faults {

class Plan;

// Of one span. A block that came and went leaves no trace.
struct HostNet {
  std::int64_t kept = 0;  // blocks that came and are still here
  std::int64_t kept_bytes = 0;
  std::int64_t gone = 0;  // blocks of earlier spans that went
  std::int64_t gone_bytes = 0;
  bool lost = false;  // the table was full

  std::int64_t blocks() const noexcept { return kept - gone; }
  std::int64_t bytes() const noexcept { return kept_bytes - gone_bytes; }
};

// Null where the kind is seen, otherwise why it is not.
struct HostBlind {
  const char* heap = nullptr;
  const char* mutexes = nullptr;
  const char* libraries = nullptr;  // references by dlopen
};

struct HostWatchCalls {
  std::uint64_t digest;  // driver::TableDigest() of the build
  // `journal`: the memory of a journal (memory_journal.h). False when the library is at work for cuaudit run already.
  bool (*begin)(void* journal, HostBlind* blind) noexcept;
  void (*end)() noexcept;
  void (*start_span)(bool stacks) noexcept;
  HostNet (*end_span)() noexcept;
  // As StackTable::StartAt.
  void (*start_at)(const void* frame) noexcept;
  // From now on the n-th allocation or thread that the program's own modules ask for is counted in the header of that journal, and refused
  // where the plan says so, with a record there. Null: no longer.
  void (*refuse)(void* journal, const Plan* plan) noexcept;
};

// extern "C" const HostWatchCalls* cuaudit_host_watch();
inline constexpr char kHostWatchName[] = "cuaudit_host_watch";

}  // namespace cuaudit::faults
