// SPDX-License-Identifier: MIT
// ledger.h: the pure fold of a journal into live objects and violations.
//
//   Owns      its objects and violations; borrows the records only while folding. Stack ids stay the journal's.
//   Threads   a value; no shared state.
//   Units     bytes; tickets of the journal's clock.
//   Errors    never fails: a record that makes no sense becomes a violation or is counted in `unfinished_calls`.
//   Faults    makes no driver calls.
//   Source    ours; effects from faults/driver/effects.def.
//
// Rules of the fold. An acquisition counts when its call returned CUDA_SUCCESS from the driver (kForwarded; for `after` the object
// exists although the caller saw an error, and the record keeps the driver's own result in no other way: such an acquisition is the
// injected call's, never the program's). A release that the plan refused leaves the object alive and marks it release_refused; so does
// a later release that the driver declines because of it.
// A release forwarded with how=after counts as released. Identity is (pid, family, handle, generation). Each process has an account of
// its own; what its parent held at fork is inherited: the child may release it silently and never leaks it.
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
  Orphaned,        // its context died first
  ReleaseRefused,  // alive, but its release was attempted and refused by the plan, or by the driver after that
};

// Where an object came from or a violation happened: enough to match the same place in another run of the program.
struct Site {
  faults::RecordKind record_kind = faults::RecordKind::Empty;
  std::uint16_t call = 0;   // driver::CallId or faults::HostCall, by record_kind
  std::uint32_t stack = 0;  // StackTable id of the journal
  std::uint64_t begin = 0;  // ticket of the record
  friend bool operator==(const Site&, const Site&) = default;
};

[[nodiscard]] inline Site SiteOf(const faults::Record& record) noexcept { return {record.kind, record.call, record.stack, record.begin}; }

struct Object {
  driver::Kind kind{};
  State state = State::Live;
  std::uint32_t pid = 0;
  std::uint32_t generation = 0;  // how often this handle value was acquired before, per process and family
  std::uint64_t handle = 0;
  std::uint64_t bytes = 0;
  std::uint64_t context = 0;     // the context it lives in, 0 for kinds that outlive contexts
  std::uint64_t parent = 0;      // pool, graph or library it was made from; the loaded object that opened a library; 0 for none
  std::uint64_t references = 1;  // caller-owned, for counted kinds
  std::uint32_t cycle = 0;
  bool library_kept = false;  // the C library, or an interpreter, keeps it for itself
  // A host block of a loaded library or of a thread, which have rows of their own (faults::kPartOfOther); or what a helper took that never
  // calls the driver (harness/verdict/driver_owned.h).
  bool part_of_other = false;
  bool event_or_pipe = false;  // a descriptor that nobody saw opened
  bool driver_owned = false;   // a host resource that the driver itself took (harness/verdict/driver_owned.h); Fold leaves it false
  Site acquired;
  Site released;  // the releasing, orphaning or refused call
  Site retried;   // of a released object the refused call after which it was released again; record_kind Empty for all others
  // Its release was carried out and told to have failed (`after`): a program that tries again or goes on using it believes what it was
  // told.
  bool told_alive = false;
  bool died_with_context = false;  // of one whose release was refused: its context went later, so nobody can release it any more

  friend bool operator==(const Object&, const Object&) = default;
};

// A heap block, descriptor, thread or other thing of the host, not of the driver.
[[nodiscard]] inline bool IsHost(const Object& object) { return object.acquired.record_kind == faults::RecordKind::Host; }

struct Violation {
  Rule rule{};
  driver::Kind kind{};
  std::uint32_t pid = 0;
  std::uint64_t handle = 0;
  Site where;
  std::int64_t object = -1;  // index into Ledger::objects when the handle was once known
  Site other{};              // what it collides with; record_kind Empty when there is nothing
  std::uint64_t bytes = 0;   // of a proved misuse; 0: the object's own

  friend bool operator==(const Violation&, const Violation&) = default;
};

struct Ledger {
  std::vector<Object> objects;  // in order of acquisition
  std::vector<Violation> violations;
  std::uint64_t unmodelled_calls = 0;  // answered CUDA_ERROR_NOT_SUPPORTED because the simulated driver does not know them
  std::uint64_t unfinished_calls = 0;  // entered, never returned
  std::uint64_t host_seen = 0;         // process images that made driver calls and in which the host probes looked
  std::uint64_t host_unseen = 0;       // and in which they did not
  Facts facts;                         // of the records that were folded

  friend bool operator==(const Ledger&, const Ledger&) = default;
};

// Pure: the same records give the same ledger. Records may come in slot order; the fold sorts by ticket.
[[nodiscard]] Ledger Fold(std::span<const faults::Record> records);

// The same without facts, for callers who ask for objects and violations only and ask often.
[[nodiscard]] Ledger FoldObjects(std::span<const faults::Record> records);

}  // namespace cuaudit::harness
