// SPDX-License-Identifier: MIT
#include "reports/result_guid.h"

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "reports/audit_defects.h"
#include "reports/message.h"

namespace cuaudit::report {
namespace {

// FNV-1a of 64 bits, from another seed for each half of the identifier.
void Hash(std::string_view text, std::uint64_t* hash) {
  constexpr std::uint64_t kPrime = 1099511628211U;
  for (const char c : text) *hash = (*hash ^ static_cast<unsigned char>(c)) * kPrime;
  *hash = (*hash ^ 0x100U) * kPrime;  // no byte: "ab", "c" is not "a", "bc"
}

}  // namespace

std::set<ResultKey> ResultKeysOf(const Audit& audit) {
  std::set<ResultKey> keys;
  for (const Case& one : audit.cases) {
    for (const Run& run : one.runs) {
      const std::string mode(Name(run.mode));
      if (Proves(run)) keys.emplace(one.name, mode, "");
      for (const Defect& defect : run.defects) keys.emplace(one.name, mode, defect.fingerprint);
    }
  }
  return keys;
}

std::string GuidOf(const std::set<ResultKey>& keys) {
  std::uint64_t high = 14695981039346656037U;
  std::uint64_t low = 0x9e3779b97f4a7c15U;
  for (const auto& [name, mode, fingerprint] : keys) {
    for (const std::string& part : {name, mode, fingerprint}) {
      Hash(part, &high);
      Hash(part, &low);
    }
  }
  char text[100];
  const auto bits = [](std::uint64_t value, unsigned shift, std::uint64_t mask) {
    return static_cast<unsigned long long>((value >> shift) & mask);
  };
  std::snprintf(text, sizeof(text), "%08llx-%04llx-5%03llx-%04llx-%012llx", bits(high, 32, 0xffffffff), bits(high, 16, 0xffff),
                bits(high, 0, 0xfff), bits(low, 48, 0x3fff) | 0x8000U, bits(low, 0, 0xffffffffffff));
  return text;
}

}  // namespace cuaudit::report
