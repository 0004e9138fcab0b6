// SPDX-License-Identifier: MIT
#include "harness/kit/parameters.h"

#include <string_view>
#include <vector>

namespace cuaudit::harness {
namespace {

constexpr std::string_view kDeclared[] = {
#define CUAUDIT_PARAMS(id, parameters, arguments) #parameters,
#include "driver_params.inc"
#undef CUAUDIT_PARAMS
};
// The rows of driver_params.inc, so that they need not stand in the order of CallId.
constexpr driver::CallId kRows[] = {
#define CUAUDIT_PARAMS(id, parameters, arguments) driver::CallId::id,
#include "driver_params.inc"
#undef CUAUDIT_PARAMS
};
static_assert(sizeof(kRows) / sizeof(kRows[0]) == sizeof(kDeclared) / sizeof(kDeclared[0]));

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool IsNameLetter(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "CUarray * pHandle"
ParameterText Parse(std::string_view declared) {
  declared = Trimmed(declared);
  std::size_t at = declared.size();
  while (at > 0 && IsNameLetter(declared[at - 1])) --at;
  return {std::string(Trimmed(declared.substr(0, at))), std::string(declared.substr(at))};
}

std::vector<ParameterText> ParseAll(std::string_view declared) {
  std::vector<ParameterText> parameters;
  declared = declared.substr(1, declared.size() - 2);
  while (!Trimmed(declared).empty() && Trimmed(declared) != "void") {
    const std::size_t comma = declared.find(',');
    parameters.push_back(Parse(declared.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    declared.remove_prefix(comma + 1);
  }
  return parameters;
}

}  // namespace

std::string ParameterText::pointee() const {
  std::string_view text = type;
  if (constant()) text.remove_prefix(6);
  if (!text.empty() && text.back() == '*') text.remove_suffix(1);
  return std::string(Trimmed(text));
}

std::span<const ParameterText> ParametersOf(driver::CallId call) {
  static const auto* const all = [] {
    auto* const table = new std::vector<std::vector<ParameterText>>(driver::kCallCount);
    for (std::size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); ++i) (*table)[driver::Index(kRows[i])] = ParseAll(kDeclared[i]);
    return table;
  }();
  return (*all)[driver::Index(call)];
}

std::string DeclaredParameters(driver::CallId call) {
  std::string text;
  for (const ParameterText& one : ParametersOf(call)) {
    text += (text.empty() ? "" : ", ") + one.type + (one.pointer() ? "" : " ") + one.name;
  }
  return text.empty() ? "void" : text;
}

}  // namespace cuaudit::harness
