// SPDX-License-Identifier: MIT
// fault.h: one fault as a value, and its text form. Parsing and formatting are inverse to each other.
//
//     cuStreamCreateWithPriority#1@init=OUT_OF_MEMORY,refuse
//     call------------------------ n phase code---------- how     phase may be left out; how defaults to refuse
//     malloc#3=host_oom                                           the third allocation by the program's own modules returns no memory
//     pthread_create#2=EAGAIN                                     the second thread that these modules start is refused
//
//     cuMemAlloc@site=8c1f0be3a5d29e47#2=OUT_OF_MEMORY,refuse    the second call from that call stack (faults/journal/stack_key.h)
//     cuMemFree@site=6b07d1ff12ac9e30#+1=INVALID_CONTEXT,refuse   the first call from that stack after the previous fault, on its thread
//
// ParseFault reports the first character that is wrong and what it expected there. It refuses a code that is not legal for the call
// (effects.h) and a `how` that makes no sense for it.
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
  HostOom,        // a host allocation is refused; "malloc#3=host_oom" is the whole fault
  HostThread,     // no thread is started; "pthread_create#2=EAGAIN" is the whole fault
};

// A request of the program's own modules to the host, which is no driver call. Each row has one way to fail, and a name that also stands
// for similar functions ("malloc" for calloc and operator new).
struct HostFaultRow {
  std::string_view name;
  std::string_view error;   // text after the '=' in the text form
  std::string_view option;  // word for --how
  std::string_view code;    // error in reports
  const char* expected;     // ParseError::expected for a text with another error
  const char* what;         // name of what is refused
  driver::BaseId base;
  How how;
};
inline constexpr driver::BaseId kHostAllocation = static_cast<driver::BaseId>(0xffff);
inline constexpr driver::BaseId kHostThread = static_cast<driver::BaseId>(0xfffe);
inline constexpr HostFaultRow kHostFaults[] = {
    {"malloc", "host_oom", "host_oom", "OUT_OF_MEMORY", "host_oom, the only way in which malloc fails", "an allocation of the host",
     kHostAllocation, How::HostOom},
    {"pthread_create", "EAGAIN", "host_thread", "EAGAIN", "EAGAIN, the only way in which pthread_create fails", "a thread of the host",
     kHostThread, How::HostThread},
};
// Null for a driver call.
constexpr const HostFaultRow* HostFaultOf(driver::BaseId base) noexcept {
  for (const HostFaultRow& row : kHostFaults) {
    if (row.base == base) return &row;
  }
  return nullptr;
}
// The row whose fault has this text form, or null.
constexpr const HostFaultRow* HostFaultOf(std::string_view text) noexcept {
  for (const HostFaultRow& row : kHostFaults) {
    if (std::string_view(text.data(), text.find('#') == std::string_view::npos ? 0 : text.find('#')) == row.name) return &row;
  }
  return nullptr;
}
// The row for a word of --how, or null.
constexpr const HostFaultRow* HostFaultAsked(std::string_view option) noexcept {
  for (const HostFaultRow& row : kHostFaults) {
    if (row.option == option) return &row;
  }
  return nullptr;
}

struct Fault {
  driver::BaseId base{};
  std::uint32_t occurrence = 1;  // counted from 1; only calls in `phase` count unless it is Any, and from `site` unless it is 0
  Phase phase = Phase::Any;
  CUresult code = CUDA_SUCCESS;
  How how = How::Refuse;
  std::uint32_t burst = 1;  // only for How::Burst
  std::uint64_t site = 0;   // 0: any
  bool follows = false;     // counts only calls after the previous fault, by the thread in which that one fired

  friend bool operator==(const Fault&, const Fault&) = default;
};

// Checks a fault whose bytes came from a file: false when ParseFault cannot produce it.
bool IsWellFormed(const Fault& fault) noexcept;

inline constexpr std::size_t kMaxFaultText = 192;

struct ParseError {
  std::size_t column = 0;          // counted from 1
  const char* expected = nullptr;  // null: no error
};

// ParseError::expected for a fault without an error, such as "cuMemAlloc#2". All other fields of the fault are then set.
inline constexpr char kExpectsCode[] = "=CODE, the error to inject";

[[nodiscard]] ParseError ParseFault(std::string_view text, Fault* fault) noexcept;

// Writes the text form and a terminating zero; returns the length of the text. A `capacity` of kMaxFaultText always suffices.
std::size_t FormatFault(const Fault& fault, char* text, std::size_t capacity) noexcept;

// The words of a fault, as reports have them, taken from its text without checking it. A missing word is empty.
struct FaultWords {
  std::string_view call;   // "cuMemFree", "malloc"
  std::string_view where;  // "@site=6b07d1ff12ac9e30#+1"
  std::string_view code;   // "INVALID_CONTEXT"; of a host fault HostFaultRow::code
  std::string_view how;    // "refuse,burst=3"; of a host fault HostFaultRow::option
};
constexpr FaultWords WordsOf(std::string_view text) noexcept {
  const std::string_view call = text.substr(0, text.find_first_of("@#="));
  const std::size_t occurrence = text.find('#');  // behind the '=' of a site
  const std::size_t equals = text.find('=', occurrence == std::string_view::npos ? 0 : occurrence);
  if (equals == std::string_view::npos) return {call, text.substr(call.size()), {}, {}};
  const std::string_view where = text.substr(call.size(), equals - call.size());
  if (const HostFaultRow* const host = HostFaultOf(text)) return {call, where, host->code, host->option};
  const std::string_view answer = text.substr(equals + 1);
  const std::size_t comma = answer.find(',');
  return {call, where, answer.substr(0, comma), comma == std::string_view::npos ? std::string_view() : answer.substr(comma + 1)};
}

std::string_view Name(Phase phase) noexcept;  // "any", "init", "work", "teardown", "unwind"
bool PhaseFromName(std::string_view name, Phase* phase) noexcept;

}  // namespace cuaudit::faults
