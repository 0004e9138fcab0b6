// SPDX-License-Identifier: MIT
// plan_file.h: the plan of a sweep as a text file: a header with a digest, the settings of the sweep, then one fault per line in the order
// of the trials. The line of a fault has the SiteKey of the planned call, because with several threads the n-th call may come from another
// place in each run.
//
//     cuaudit-plan 3 subject=5f0c7dedc3e711b3 faults=2 digest=0123456789abcdef
//     # --deadline-ms = 10000
//     cuInit#1=NOT_INITIALIZED,refuse site=8c1f0be3a5d29e47
//     cuStreamCreate#1=OUT_OF_MEMORY,refuse site=02d47e1b96c0fa35
//
//   Errors    one line: file, line number, what was expected there. A file that does not fit its digest is refused as a whole.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/plan/fault.h"
#include "harness/process/status.h"

namespace cuaudit::harness {

// What a sweep was begun with, by the name that messages give it: "--deadline-ms" -> "10000". A value that begins with '#' is a digest,
// which messages do not show. Neither has a line break, and a name has no " = ".
using Settings = std::map<std::string, std::string>;

// "--depth was 2 and is 1, --host was false and is true". Of many differences the first three and how many more there are; empty: none.
std::string Differences(const Settings& before, const Settings& now);

struct PlanFile {
  std::uint64_t subject = 0;  // hash of command, relevant options and fault-free trace
  Settings settings;
  std::vector<std::string> faults;
  std::vector<std::uint64_t> sites;  // one per fault; 0: unknown

  std::uint64_t Digest() const;
  friend bool operator==(const PlanFile&, const PlanFile&) = default;
};

std::string FormatPlan(const PlanFile& plan);

// `name` is the file's name in messages.
Result<PlanFile> ParsePlan(std::string_view text, const std::string& name);

// 64-bit FNV-1a, continued from `hash`.
inline constexpr std::uint64_t kHashSeed = 0xcbf29ce484222325U;
std::uint64_t HashText(std::string_view text, std::uint64_t hash = kHashSeed);
std::uint64_t HashNumber(std::uint64_t number, std::uint64_t hash);

std::string Hex(std::uint64_t value);  // 16 digits

// The fault with this text; none for a text that is no fault.
std::optional<faults::Fault> ParsedFault(std::string_view text);

// True for a fault addressed by call stack instead of by count: "cuMemAlloc@site=...#2=...".
bool IsBySite(std::string_view text);

}  // namespace cuaudit::harness
