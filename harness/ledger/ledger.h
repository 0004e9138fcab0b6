// SPDX-License-Identifier: MIT
// ledger.h: folds a journal into live objects and violations.
//
//   Owns      its objects and violations. Borrows the records only while folding. Stack ids are those of the journal.
//   Units     bytes; tickets of the journal's clock.
//   Errors    never fails: a record that makes no sense becomes a violation or is counted in `unfinished_calls`.
//
// Rules of the fold:
// - An acquisition counts when the driver carried the call out and returned CUDA_SUCCESS.
// - An acquisition under `after` (the driver succeeds, the caller sees an error) makes an object that nobody owes.
// - A release that the plan refused leaves the object alive and marks it release_refused. A later release that the driver declines because
//   of the refusal does the same.
// - A release under `after` counts as released.
// - An object is identified by process, family, handle and generation.
// - Each process has its own account. A child process may release what its parent held at the fork, and never leaks it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/driver/kinds.h"
#include "faults/journal/record.h"
#include "harness/ledger/facts.h"
#include "harness/ledger/rules.h"

namespace cuaudit::harness {

enum class State : std::uint8_t {
  Live,
  Released,
  Orphaned,        // its context ended first
  ReleaseRefused,  // alive; a release was tried and refused by the plan, or by the driver because of such a refusal
};

// Where an object was acquired or a violation happened. A site can be compared with the sites of another run of the program.
struct Site {
  faults::RecordKind record_kind = faults::RecordKind::Empty;
  std::uint16_t call = 0;   // driver::CallId or faults::HostCall, depending on record_kind
  std::uint32_t stack = 0;  // id in the journal's StackTable
  std::uint64_t begin = 0;  // ticket of the record
  friend bool operator==(const Site&, const Site&) = default;
};

[[nodiscard]] inline Site SiteOf(const faults::Record& record) noexcept { return {record.kind, record.call, record.stack, record.begin}; }

// Of a driver call.
constexpr driver::CallId CallOf(const faults::Record& record) { return static_cast<driver::CallId>(record.call); }
constexpr driver::BaseId BaseOf(const faults::Record& record) { return driver::BaseOf(CallOf(record)); }
constexpr driver::BaseId BaseOf(const Site& site) { return driver::BaseOf(static_cast<driver::CallId>(site.call)); }

struct Object {
  driver::Kind kind{};
  State state = State::Live;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;         // the thread that acquired it
  std::uint32_t generation = 0;  // number of earlier objects with this handle value in the process and family
  std::uint64_t handle = 0;
  std::uint64_t bytes = 0;
  std::uint64_t context = 0;  // the context that the object belongs to; 0 for kinds that outlive contexts
  // The pool, graph or library it was made from, or the loaded object that opened a library; of peer access the context whose memory may be
  // used; 0 for none.
  std::uint64_t parent = 0;
  std::uint64_t references = 1;  // references of the caller, for counted kinds
  std::uint32_t cycle = 0;
  bool library_kept = false;  // the C library or an interpreter keeps it on purpose
  // A host block of a loaded library or of a thread, which have rows of their own (faults::kPartOfOther). Also set for host resources of a
  // helper process that never calls the driver, and for all of them when the probes stopped early (harness/verdict/host/driver_owned.h).
  bool part_of_other = false;
  bool event_or_pipe = false;  // a descriptor that a census found and that is an event or a pipe
  bool driver_owned = false;   // the driver itself took this host resource (harness/verdict/host/driver_owned.h); Fold leaves it false
  Site acquired = {};
  // The call that released or orphaned it, or whose release was refused. Of an object that ended unseen, because its handle was handed out
  // again, only the ticket of that.
  Site released = {};
  Site retried = {};   // for a released object, the earlier refused release; otherwise record_kind is Empty
  Site declined = {};  // for an orphaned object, an earlier release that the driver declined; otherwise record_kind is Empty
  // The object ended, but the program was told that its release failed. A second release or a later use is therefore no violation.
  bool told_alive = false;
  bool release_denied = false;     // told so by the plan (`after`); a driver says it of a release that comes too late
  bool died_with_context = false;  // its release was refused, and its context ended later, so no release is possible any more
  // For an orphaned object: the process created and destroyed the context itself, and created it in the same cycle as the object.
  bool own_context = false;
  // Peer access that ended with the context whose memory could be used, whoever made that. Nothing is lost.
  bool ended_with_peer = false;

  friend bool operator==(const Object&, const Object&) = default;
};

// True for heap blocks, descriptors, threads and other resources of the host.
[[nodiscard]] inline bool IsHost(const Object& object) { return object.acquired.record_kind == faults::RecordKind::Host; }

// True for a released mutex that was never destroyed: it was initialised again, or its memory was freed.
[[nodiscard]] inline bool NeverDestroyed(const Object& object) {
  const bool was_freed = object.released.record_kind == faults::RecordKind::Host &&
                         object.released.call == static_cast<std::uint16_t>(faults::HostCall::MutexFreed);
  return object.kind == driver::Kind::Mutex && (was_freed || object.released.record_kind == faults::RecordKind::Empty);
}

// True for a kind of object that is acquired several times under one handle and must be released as often: the ledger has an object for
// each reference. User objects are left out, because one call takes or gives back several of their references.
[[nodiscard]] constexpr bool IsReferenceCounted(driver::Kind kind) {
  return kind == driver::Kind::PrimaryContext || kind == driver::Kind::PhysicalMemory || kind == driver::Kind::DlopenReference;
}

struct Violation {
  Rule rule{};
  driver::Kind kind{};
  std::uint32_t pid = 0;
  std::uint64_t handle = 0;
  Site where;
  std::int64_t object = -1;   // index into Ledger::objects; -1 when the handle was never known
  Site other{};               // the call that it collides with; record_kind is Empty when there is none
  std::uint64_t bytes = 0;    // of a proved misuse; 0: use the object's own size
  bool refused_wait = false;  // a proved misuse that exists only because the plan refused a wait
  // An earlier release under this handle was carried out and said to have failed. The program may try it again, and the handle may be
  // another object's by then: one of the two is released once too often.
  bool believed = false;

  friend bool operator==(const Violation&, const Violation&) = default;
};

// A release of a counted reference and the acquisition that it was settled with (harness/sweep/run/rehearsal.h).
struct SettledReference {
  Site acquired;
  Site released;
  bool sure = false;  // the call stacks told

  friend bool operator==(const SettledReference&, const SettledReference&) = default;
};

struct Ledger {
  std::vector<Object> objects;  // in order of acquisition
  std::vector<Violation> violations;
  std::uint64_t unmodelled_calls = 0;  // answered CUDA_ERROR_NOT_SUPPORTED because the simulated driver has no model of them
  std::uint64_t unfinished_calls = 0;  // calls that never returned
  std::uint64_t host_seen = 0;         // process images that made driver calls and were watched by the host probes
  std::uint64_t host_unseen = 0;       // process images that made driver calls and were not watched
  // Of a fault-free run in which one handle was held from several places at once. Fold leaves it empty.
  std::vector<SettledReference> settled;
  Facts facts;  // of the folded records

  friend bool operator==(const Ledger&, const Ledger&) = default;
};

// The same records always give the same ledger. Records may come in any order; the fold sorts them by ticket.
[[nodiscard]] Ledger Fold(std::span<const faults::Record> records);

// Fold without facts, for callers that need only objects and violations and call often.
[[nodiscard]] Ledger FoldObjects(std::span<const faults::Record> records);

}  // namespace cuaudit::harness
