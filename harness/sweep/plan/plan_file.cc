// SPDX-License-Identifier: MIT
#include "harness/sweep/plan/plan_file.h"

#include <algorithm>
#include <charconv>

namespace cuaudit::harness {
namespace {

constexpr std::string_view kFirstLine = "cuaudit-plan 3 subject=HEX faults=N digest=HEX";
constexpr std::string_view kSite = " site=";
constexpr std::string_view kSetting = "# ";
constexpr std::string_view kIs = " = ";

// Takes `key=`, the number after it and a following space off the front of `text`, and answers the number.
std::optional<std::uint64_t> Take(std::string_view* text, std::string_view key, int base) {
  if (!text->starts_with(key)) return std::nullopt;
  text->remove_prefix(key.size());
  std::uint64_t value = 0;
  const std::from_chars_result parsed = std::from_chars(text->data(), text->data() + text->size(), value, base);
  const std::size_t digits = static_cast<std::size_t>(parsed.ptr - text->data());
  if (parsed.ec != std::errc() || (base == 16 && digits != 16)) return std::nullopt;
  text->remove_prefix(digits);
  if (text->starts_with(' ')) text->remove_prefix(1);
  return value;
}

Status Malformed(const std::string& name, std::size_t line, const std::string& expected) {
  return {Exit::Usage, name + ":" + std::to_string(line) + ": expected " + expected};
}

}  // namespace

std::uint64_t HashText(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return (hash ^ 0xffU) * 0x100000001b3U;
}

std::uint64_t HashNumber(std::uint64_t number, std::uint64_t hash) {
  for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((number >> shift) & 0xffU)) * 0x100000001b3U;
  return hash;
}

std::string Hex(std::uint64_t value) {
  std::string digits(16, '0');
  for (std::size_t i = 16; i > 0; --i, value >>= 4U) digits[i - 1] = "0123456789abcdef"[value & 15U];
  return digits;
}

std::optional<faults::Fault> ParsedFault(std::string_view text) {
  faults::Fault fault;
  return faults::ParseFault(text, &fault).expected == nullptr ? std::optional(fault) : std::nullopt;
}

bool IsBySite(std::string_view text) {
  const std::optional<faults::Fault> fault = ParsedFault(text);
  return fault && fault->site != 0;
}

std::string Differences(const Settings& before, const Settings& now) {
  constexpr std::size_t kNamed = 3;
  Settings all = before;
  all.insert(now.begin(), now.end());
  std::string text;
  std::size_t count = 0;
  for (const auto& [name, value] : all) {
    const auto was = before.find(name);
    const auto is = now.find(name);
    const bool in_both = was != before.end() && is != now.end();
    if ((in_both && was->second == is->second) || ++count > kNamed) continue;
    text += (text.empty() ? "" : ", ") + name;
    text += !in_both || value.starts_with('#') ? " differs" : " was " + was->second + " and is " + is->second;
  }
  return count <= kNamed ? text : text + " and " + std::to_string(count - kNamed) + " more";
}

std::uint64_t PlanFile::Digest() const {
  std::uint64_t hash = HashNumber(subject, kHashSeed);
  for (const auto& [name, value] : settings) hash = HashText(value, HashText(name, hash));
  for (const std::string& fault : faults) hash = HashText(fault, hash);
  for (const std::uint64_t site : sites) hash = HashNumber(site, hash);
  return hash;
}

std::string FormatPlan(const PlanFile& plan) {
  std::string text = "cuaudit-plan 3 subject=" + Hex(plan.subject) + " faults=" + std::to_string(plan.faults.size()) +
                     " digest=" + Hex(plan.Digest()) + "\n";
  for (const auto& [name, value] : plan.settings) text.append(kSetting).append(name).append(kIs).append(value).append("\n");
  for (std::size_t i = 0; i < plan.faults.size(); ++i) text += plan.faults[i] + std::string(kSite) + Hex(plan.sites[i]) + "\n";
  return text;
}

Result<PlanFile> ParsePlan(std::string_view text, const std::string& name) {
  const std::string first(kFirstLine);
  std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return Malformed(name, 1, first);
  std::string_view header = text.substr(0, end);
  constexpr std::string_view kMagic = "cuaudit-plan 3 ";
  if (!header.starts_with(kMagic)) return Malformed(name, 1, first);
  header.remove_prefix(kMagic.size());
  const std::optional<std::uint64_t> subject = Take(&header, "subject=", 16);
  const std::optional<std::uint64_t> count = subject.has_value() ? Take(&header, "faults=", 10) : std::nullopt;
  const std::optional<std::uint64_t> digest = count.has_value() ? Take(&header, "digest=", 16) : std::nullopt;
  if (!digest.has_value() || !header.empty()) return Malformed(name, 1, first);

  PlanFile plan;
  plan.subject = *subject;
  text.remove_prefix(end + 1);
  std::size_t line = 2;
  for (; !text.empty(); ++line) {
    end = text.find('\n');
    if (end == std::string_view::npos) return Malformed(name, line, "a line that ends: the file is cut");
    if (plan.faults.empty() && text.starts_with(kSetting)) {
      const std::string_view setting = text.substr(kSetting.size(), end - kSetting.size());
      const std::size_t is = setting.find(kIs);
      if (is == std::string_view::npos) return Malformed(name, line, "'# NAME = VALUE'");
      plan.settings.emplace(setting.substr(0, is), setting.substr(is + kIs.size()));
      text.remove_prefix(end + 1);
      continue;
    }
    const std::size_t site_at = std::min(text.substr(0, end).find(kSite), end);
    const std::string_view fault_text = text.substr(0, site_at);
    faults::Fault fault;
    const faults::ParseError error = faults::ParseFault(fault_text, &fault);
    if (error.expected != nullptr) {
      return Status(Exit::Usage,
                    name + ":" + std::to_string(line) + ":" + std::to_string(error.column) + ": expected " + std::string(error.expected));
    }
    std::string_view site_text = text.substr(site_at, end - site_at);
    const std::optional<std::uint64_t> site = Take(&site_text, kSite, 16);
    if (!site.has_value() || !site_text.empty()) return Malformed(name, line, "' site=HEX' after the fault");
    plan.faults.emplace_back(fault_text);
    plan.sites.push_back(*site);
    text.remove_prefix(end + 1);
  }
  if (plan.faults.size() != *count) {
    return Malformed(name, line, std::to_string(*count) + " faults, found " + std::to_string(plan.faults.size()));
  }
  if (plan.Digest() != *digest) return Malformed(name, 1, "digest=" + Hex(plan.Digest()) + " for these lines: the plan was changed");
  return plan;
}

}  // namespace cuaudit::harness
