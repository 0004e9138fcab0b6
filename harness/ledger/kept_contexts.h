// SPDX-License-Identifier: MIT
// kept_contexts.h: the contexts that a run keeps, by process, and how many descriptors a genuine driver holds open for them.
//
//   Owns      nothing; a KeptContexts points into the ledger.
//   Source    seen on an H200: two events and both ends of a pipe for each context, opened past the wrappers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

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

}  // namespace cuaudit::harness
