// SPDX-License-Identifier: MIT
// fault.h: one fault as a value, and its text form, which round-trips.
//
//     cuStreamCreateWithPriority#1@init=OUT_OF_MEMORY,refuse
//     call------------------------ n phase code---------- how     phase may be left out; how defaults to refuse
//     malloc#3=host_oom                                           the third allocation by the program's own modules answers no memory
//
//     cuMemAlloc@site=8c1f0be3a5d29e47#2=OUT_OF_MEMORY,refuse    the second call from that call stack (faults/journal/stack_key.h)
//
//   Owns      nothing; plain values.
//   Threads   safe everywhere; no state.
//   Errors    ParseFault names the first character that is wrong and what was expected there. A code that is not legal for the
//             call (effects.h) is refused, and so is a `how` that makes no sense for it.
//   Faults    makes no driver calls.
//   Source    ours; the vocabulary is the design's.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "faults/driver/call_id.h"
#include "faults/journal/record.h"

namespace cuaudit::faults {

enum class How : std::uint8_t {
  Refuse,         // not forwarded; outputs untouched                              "refuse"
  RefuseGarbage,  // not forwarded; outputs overwritten                            "refuse+garbage"
  After,          // forwarded, then an error is returned; a released object is gone "after"
  Persist,        // refused from the n-th call on                                 "persist"
  Burst,          // refused `burst` times in a row from the n-th call on          "refuse,burst=3"
  Sticky,         // the context is lost: this and every later call fails          "sticky"
  HostOom,        // of malloc: a host allocation is refused; "malloc#3=host_oom" is the whole fault
};

// Stands for the allocations of the program's own modules, which are no driver call: "malloc#3=host_oom" is the third of them.
inline constexpr driver::BaseId kHostAllocation = static_cast<driver::BaseId>(0xffff);
inline constexpr std::string_view kHostAllocationName = "malloc";
inline constexpr std::string_view kHostOom = "host_oom";

struct Fault {
  driver::BaseId base{};
  std::uint32_t occurrence = 1;  // counted from 1, within `phase` when that is not Any, from `site` when that is not 0
  Phase phase = Phase::Any;
  CUresult code = CUDA_SUCCESS;
  How how = How::Refuse;
  std::uint32_t burst = 1;  // only for How::Burst
  std::uint64_t site = 0;   // 0: any

  friend bool operator==(const Fault&, const Fault&) = default;
};

inline constexpr std::size_t kMaxFaultText = 192;

struct ParseError {
  std::size_t column = 0;          // counted from 1
  const char* expected = nullptr;  // null: no error
};

[[nodiscard]] ParseError ParseFault(std::string_view text, Fault* fault) noexcept;

// Writes the text form and a terminating zero; answers its length. `capacity` of kMaxFaultText always suffices.
std::size_t FormatFault(const Fault& fault, char* text, std::size_t capacity) noexcept;

std::string_view Name(Phase phase) noexcept;  // "any", "init", "work", "teardown", "unwind"
bool PhaseFromName(std::string_view name, Phase* phase) noexcept;

}  // namespace cuaudit::faults
