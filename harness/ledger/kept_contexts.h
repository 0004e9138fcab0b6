// SPDX-License-Identifier: MIT
// kept_contexts.h: the contexts that a run keeps, what a genuine driver holds for them, and what ends with them; what lies under a mapping
// or a registration that is kept.
//
//   Owns      nothing; all of it points into the ledger.
//   Source    seen on an H200: two events and both ends of a pipe for each context, opened past the wrappers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "faults/driver/kinds.h"
#include "faults/journal/layout.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

struct KeptContexts {
  std::uint32_t pid = 0;
  std::size_t count = 0;            // distinct contexts: all references of one primary context are one
  const Object* context = nullptr;  // one of them, preferably one whose release was refused
};

// Of the created and primary contexts those that are `kept`, in the order in which the processes first acquired anything.
[[nodiscard]] std::vector<KeptContexts> KeptContextsOf(const Ledger& ledger, const std::function<bool(const Object&)>& kept);

// Number of event and pipe descriptors that the driver of this run opens for that many contexts. The simulated driver opens none.
[[nodiscard]] std::uint64_t DescriptorsOf(const faults::JournalHeader& header, std::size_t contexts);

// Descriptors, threads and mappings that the driver holds for itself: objects that MarkDriverOwned
// (harness/verdict/host/driver_owned.h) has marked.
using DriversOwn = std::map<driver::Kind, std::uint64_t>;
[[nodiscard]] DriversOwn HeldByDriver(const Ledger& ledger, std::uint32_t pid);
// What it holds beyond what it holds after another run. What the simulated driver holds is known, and is of no context.
[[nodiscard]] DriversOwn HeldMore(const faults::JournalHeader& header, DriversOwn held, const DriversOwn& before);
// "2 descriptors, 1 thread"; empty for nothing.
[[nodiscard]] std::string InWords(const DriversOwn& own);

// Contexts that the program made itself and could not destroy, because the plan refused that; and what they would have taken along.
//
// What the program leaves to the end of its own context is not lost (relied_on_context). When the plan refuses that end, it is left for the
// same reason as the context: no program can do better at that point.
class UndestroyedContexts {
 public:
  explicit UndestroyedContexts(const Ledger& ledger);
  // The refused destruction that would have taken the live object along; null for none.
  [[nodiscard]] const Site* EndOf(const Object& object) const;

 private:
  std::map<std::pair<std::uint32_t, std::uint64_t>, const Object*> contexts_;  // by process and handle
};

// Ranges and host memory that a program rightly keeps, because what is mapped or registered on them could not be released: a driver
// declines to free a range that is still mapped, and host memory that is still registered must not go back to the allocator, because the
// driver reads the pages that were there (README.md, section "What stands on what").
class KeptFoundations {
 public:
  explicit KeptFoundations(const Ledger& ledger);
  // The failed release of what stands on the live object; null for none.
  [[nodiscard]] const Site* HeldBy(const Object& object) const;

 private:
  std::vector<const Object*> held_;  // mappings and registrations that the program was told are still there
};

}  // namespace cuaudit::harness
