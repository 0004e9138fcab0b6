// SPDX-License-Identifier: MIT
// reference_pairs.h: which release of a counted reference belongs to which acquisition, told from call stacks.
//
//   Owns      nothing. Borrows the stacks.
//   Errors    never fails. Where the stacks do not tell, the pairs stay as they are.
//
// A driver counts references and does not say which of them a release ends. A loss is blamed on the right function only when the release
// is settled with the acquisition that the program means. The strongest sign that applies decides:
//   1. The fault-free run pairs the same acquisition with a release of the same functions.
//   2. The call of a function in which the acquisition was made made the release, too. The innermost such call counts.
//   3. Both were made by the same function itself, or the functions that were called have words of their names in common: Decoder::Open
//      and Decoder::Close, encoder_open and encoder_close.
//   4. A function that has failed and returned gave back itself what it meant to give back.
//   5. The fault-free run pairs them so, but only because nothing else told.
// Of equals, the pairs that are given remain, and else the newest acquisition is released first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/defect/blame.h"

namespace cuaudit::harness {

struct ReferenceTaken {
  const Stack& stack;
  std::uint64_t place = 0;  // equal for acquisitions from one place
  std::uint64_t when = 0;
};

struct ReferenceGiven {
  const Stack& stack;
  std::uint64_t place = 0;
  std::uint64_t when = 0;
  std::size_t taken = 0;  // index of the acquisition that it is paired with so far
};

// A pair of the fault-free run.
struct KnownPair {
  std::uint64_t place = 0;  // of the acquisition
  const Stack& given;
  bool sure = false;  // the stacks told
};

struct ReferencePair {
  std::size_t taken = 0;
  bool sure = false;  // no acquisition from another place had equal signs
};

// A call that a fault made fail.
struct FailedCall {
  const Stack& stack;
  std::uint64_t when = 0;
};

// The references to one handle in the order of their acquisition, and the releases of those that were released. Answers a pair for each
// release. Never changes how many references remain.
std::vector<ReferencePair> PairReferences(std::span<const ReferenceTaken> taken, std::span<const ReferenceGiven> given,
                                          std::span<const KnownPair> known = {}, std::span<const FailedCall> failed = {});

}  // namespace cuaudit::harness
