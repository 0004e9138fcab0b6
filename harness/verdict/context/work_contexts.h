// SPDX-License-Identifier: MIT
// work_contexts.h: the contexts in which a run works.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

// Of each call of the run (facts().calls): the context that was current; 0: none, or nobody knows.
[[nodiscard]] std::vector<std::uint64_t> CurrentContexts(const Evidence& run);

// In which contexts calls work: that of the stream or event that they name, or else the current one.
//
//   Owns      the current context of each call. Borrows the run.
class WorkContexts {
 public:
  explicit WorkContexts(const Evidence& run) : run_(run), current_(CurrentContexts(run)) {}
  // True when the two calls are known to work in different contexts.
  [[nodiscard]] bool Differ(const faults::Record& one, const faults::Record& other) const;

 private:
  std::uint64_t Of(const faults::Record& call) const;  // 0: unknown

  const Evidence& run_;
  std::vector<std::uint64_t> current_;
};

}  // namespace cuaudit::harness
