// SPDX-License-Identifier: MIT
#include "faults/plan/fault.h"

#include <stddef.h>
#include <string.h>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"

namespace cuaudit::faults {
namespace {

constexpr std::string_view kPhases[] = {"any", "init", "work", "teardown", "unwind"};

struct HowRow {
  std::string_view name;
  How how;
};
constexpr HowRow kHows[] = {
    {"refuse", How::Refuse}, {"refuse+garbage", How::RefuseGarbage}, {"after", How::After}, {"persist", How::Persist},
    {"sticky", How::Sticky},
};
// A list of ways is separated by commas, so there "burst:3" is written instead. "burst" alone is the shortest one.
constexpr std::string_view kBurst = "refuse,burst=";
constexpr std::string_view kBurstWord = "burst:";
constexpr std::string_view kBurstAlone = "burst";
constexpr std::uint32_t kShortestBurst = 2;

std::string_view NameOf(How how) noexcept {
  for (const HowRow& row : kHows) {
    if (row.how == how) return row.name;
  }
  return kBurst;
}

// Parses a number from 1 to 4,294,967,295 without sign or leading zero; 0 for any other text.
std::uint32_t ParseCount(std::string_view text) noexcept {
  if (text.empty() || text.size() > 10 || text.front() == '0') return 0;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return 0;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value <= 0xffffffffU ? static_cast<std::uint32_t>(value) : 0;
}

constexpr CUresult kHostCode = CUDA_ERROR_OUT_OF_MEMORY;  // stands in for the CUresult that a host fault does not have

constexpr std::string_view kSite = "site=";
constexpr std::size_t kSiteDigits = 16;

// Parses exactly 16 lower-case hexadecimal digits that are not all 0.
bool ParseSite(std::string_view text, std::uint64_t* site) noexcept {
  if (text.size() != kSiteDigits) return false;
  *site = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return false;
    *site = *site << 4U | static_cast<std::uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return *site != 0;
}

// A text of at most `capacity` bytes, the terminating zero included. What goes beyond is counted and not written. By hand, because a plan
// of ten million trials has as many of these texts, and snprintf would be most of its cost.
class FaultText {
 public:
  FaultText(char* text, std::size_t capacity) noexcept : text_(text), capacity_(capacity) {}

  void Put(std::string_view part) noexcept {
    for (const char c : part) {
      if (length_ < capacity_) text_[length_] = c;
      ++length_;
    }
  }
  void PutNumber(std::uint32_t number) noexcept {
    char digits[10];
    std::size_t first = sizeof(digits);
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    Put({digits + first, sizeof(digits) - first});
  }
  void PutSite(std::uint64_t site) noexcept {
    constexpr char kDigits[] = "0123456789abcdef";
    for (std::size_t shift = 4 * kSiteDigits; shift != 0; shift -= 4) Put({kDigits + (site >> (shift - 4) & 15U), 1});
  }
  std::size_t End() noexcept {
    if (capacity_ != 0) text_[length_ < capacity_ ? length_ : capacity_ - 1] = '\0';
    return length_;
  }

 private:
  char* const text_;
  const std::size_t capacity_;
  std::size_t length_ = 0;
};

const char* ParseHow(std::string_view text, Fault* fault) noexcept {
  for (const HowRow& row : kHows) {
    if (text == row.name) {
      fault->how = row.how;
      return nullptr;
    }
  }
  if (text == kBurstAlone) {
    fault->how = How::Burst;
    fault->burst = kShortestBurst;
    return nullptr;
  }
  for (const std::string_view burst : {kBurst, kBurstWord}) {
    if (text.size() < burst.size() || std::string_view(text.data(), burst.size()) != burst) continue;
    fault->how = How::Burst;
    text.remove_prefix(burst.size());
    fault->burst = ParseCount(text);
    return fault->burst == 0 ? "refuse,burst=K with a count K from 1" : nullptr;
  }
  return "one of refuse, refuse+garbage, after, persist, burst, refuse,burst=K, sticky";
}

}  // namespace

bool IsWellFormed(const Fault& fault) noexcept {
  // The fields are read as integers: a byte other than 0 or 1 is not a valid bool, and not every number is a valid CUresult.
  unsigned char follows = 0;
  int code = 0;
  static_assert(sizeof(fault.code) == sizeof(code));
  memcpy(&follows, reinterpret_cast<const char*>(&fault) + offsetof(Fault, follows), sizeof(follows));
  memcpy(&code, reinterpret_cast<const char*>(&fault) + offsetof(Fault, code), sizeof(code));
  if (follows > 1 || fault.phase > Phase::Unwind || fault.occurrence == 0) return false;
  if (fault.how == How::Burst ? fault.burst == 0 : fault.burst != 1) return false;
  if (const HostFaultRow* const host = HostFaultOf(fault.base)) {
    return fault.how == host->how && code == kHostCode && fault.site == 0 && follows == 0;
  }
  if (driver::Index(fault.base) >= driver::kBaseCount || fault.how > How::Sticky || code <= 0 || code > CUDA_ERROR_UNKNOWN) return false;
  const bool sticky = driver::IsSticky(fault.code);
  return sticky || (fault.how != How::Sticky && driver::IsLegalCode(fault.base, fault.code));
}

ParseError ParseFault(std::string_view text, Fault* fault) noexcept {
  *fault = Fault();
  const auto column = [&](std::string_view part) { return static_cast<std::size_t>(part.data() - text.data()) + 1; };
  const std::size_t hash = text.find('#');
  const std::size_t stop = hash == std::string_view::npos ? text.find_first_of("@=,") : hash;
  std::string_view name(text.data(), stop == std::string_view::npos ? text.size() : stop);
  const std::size_t sited = hash == std::string_view::npos ? std::string_view::npos : name.find('@');
  if (sited != std::string_view::npos) {
    const std::string_view site(name.data() + sited + 1, name.size() - sited - 1);
    const bool keyed = site.size() > kSite.size() && std::string_view(site.data(), kSite.size()) == kSite;
    if (!keyed || !ParseSite(std::string_view(site.data() + kSite.size(), site.size() - kSite.size()), &fault->site)) {
      return {sited + 1, "#N, or @site=HEX#N with 16 digits"};
    }
    name = std::string_view(name.data(), sited);
  }
  const std::size_t base = driver::FindBase(name);
  const HostFaultRow* host = nullptr;
  for (const HostFaultRow& row : kHostFaults) {
    if (row.name == name) host = &row;
  }
  if (base == driver::kBaseCount && host == nullptr) {
    return {1, "a driver entry point without version suffix, such as cuMemAlloc, or malloc or pthread_create"};
  }
  fault->base = host != nullptr ? host->base : static_cast<driver::BaseId>(base);
  if (hash == std::string_view::npos || (host != nullptr && sited != std::string_view::npos)) {
    return {name.size() + 1, "#N, which call of it counted from 1"};
  }

  const std::string_view rest(text.data() + hash + 1, text.size() - hash - 1);
  const std::size_t equals = rest.find('=');
  const std::string_view where(rest.data(), equals == std::string_view::npos ? rest.size() : equals);
  const std::size_t at = where.find('@');
  const std::string_view count(where.data(), at == std::string_view::npos ? where.size() : at);
  fault->follows = host == nullptr && !count.empty() && count.front() == '+';
  fault->occurrence = ParseCount(fault->follows ? std::string_view(count.data() + 1, count.size() - 1) : count);
  if (fault->occurrence == 0) return {column(count), "a count from 1"};
  if (at != std::string_view::npos) {
    const std::string_view phase(where.data() + at + 1, where.size() - at - 1);
    if (!PhaseFromName(phase, &fault->phase) || fault->phase == Phase::Any) {
      return {column(phase), "a phase: init, work, teardown or unwind"};
    }
  }
  if (equals == std::string_view::npos) return {text.size() + 1, kExpectsCode};

  const std::string_view what(rest.data() + equals + 1, rest.size() - equals - 1);
  if (host != nullptr) {
    if (what != host->error) return {column(what), host->expected};
    fault->code = kHostCode;
    fault->how = host->how;
    return {};
  }
  const std::size_t comma = what.find(',');
  const std::string_view code(what.data(), comma == std::string_view::npos ? what.size() : comma);
  if (!driver::ResultFromName(code, &fault->code) || fault->code == CUDA_SUCCESS) {
    return {column(code), "a CUDA error, such as OUT_OF_MEMORY"};
  }
  if (!driver::IsLegalCode(fault->base, fault->code) && !driver::IsSticky(fault->code)) {
    return {column(code), "an error that this call is documented to answer (cuaudit list calls)"};
  }
  if (comma != std::string_view::npos) {
    const std::string_view how(what.data() + comma + 1, what.size() - comma - 1);
    if (const char* expected = ParseHow(how, fault)) return {column(how), expected};
  }
  if (fault->how == How::Sticky && !driver::IsSticky(fault->code)) {
    return {column(code), "an error that loses the context, such as ILLEGAL_ADDRESS or LAUNCH_FAILED"};
  }
  return {};
}

std::size_t FormatFault(const Fault& fault, char* text, std::size_t capacity) noexcept {
  FaultText out(text, capacity);
  const HostFaultRow* const host = HostFaultOf(fault.base);
  out.Put(host != nullptr ? host->name : driver::Name(fault.base));
  if (host == nullptr && fault.site != 0) {
    out.Put("@site=");
    out.PutSite(fault.site);
  }
  out.Put(host == nullptr && fault.follows ? "#+" : "#");
  out.PutNumber(fault.occurrence);
  if (fault.phase != Phase::Any) {
    out.Put("@");
    out.Put(Name(fault.phase));
  }
  out.Put("=");
  if (host != nullptr) {
    out.Put(host->error);
  } else {
    out.Put(driver::ShortResultName(fault.code));
    out.Put(",");
    out.Put(NameOf(fault.how));
    if (fault.how == How::Burst) out.PutNumber(fault.burst);
  }
  return out.End();
}

std::string_view Name(Phase phase) noexcept { return kPhases[static_cast<std::size_t>(phase)]; }

bool PhaseFromName(std::string_view name, Phase* phase) noexcept {
  for (std::size_t i = 0; i < sizeof(kPhases) / sizeof(kPhases[0]); ++i) {
    if (kPhases[i] == name) {
      *phase = static_cast<Phase>(i);
      return true;
    }
  }
  return false;
}

}  // namespace cuaudit::faults
