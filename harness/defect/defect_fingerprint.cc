// SPDX-License-Identifier: MIT
#include "harness/defect/defect_fingerprint.h"

#include <algorithm>
#include <cstdio>

#include "harness/defect/activation.h"
#include "harness/defect/blame.h"

namespace cuaudit::harness {
namespace {

constexpr std::uint64_t kSeed = 0xcbf29ce484222325U;

// FNV-1a, with a zero byte behind each text so that "ab", "c" and "a", "bc" differ.
std::uint64_t Hash(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return (hash ^ 0xffU) * 0x100000001b3U;
}

// The file name without the version behind ".so".
std::string_view PlainModule(std::string_view module) {
  const std::size_t so = module.find(".so.");
  return so == std::string_view::npos ? module : module.substr(0, so + 3);
}

std::uint64_t HashFunction(const report::Frame& frame, std::uint64_t hash) {
  return Hash(PlainName(frame.function), Hash(PlainModule(frame.module), hash));
}

}  // namespace

std::string_view PlainName(std::string_view function) {
  // The parameters begin at the first parenthesis outside of template arguments that does not belong to "(anonymous namespace)" or to
  // "operator()".
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char c = function[i];
    if (c == '<') ++depth;
    if (c == '>' && (i == 0 || function[i - 1] != '-')) depth = std::max(0, depth - 1);
    if (depth == 0 && c == '(' && i != 0 && !function.substr(i).starts_with("(anonymous namespace)")) {
      if (!function.substr(0, i).ends_with("operator") && function[i - 1] != ' ') return function.substr(0, i);
    }
  }
  // Copies that GCC makes of a C function: "f.part.0", "f.isra.0", "f.constprop.0", "f.cold".
  for (const std::string_view copy : {".part.", ".isra.", ".constprop.", ".cold", ".llvm.", ".lto_priv."}) {
    function = function.substr(0, function.find(copy));
  }
  return function;
}

std::uint64_t FunctionKey(const report::Frame& frame) {
  const std::uint64_t hash = Hash(frame.function, Hash(frame.module, kSeed));
  return frame.function.empty() ? (hash ^ (frame.start != 0 ? frame.start : frame.offset)) * 0x100000001b3U : hash;
}

std::uint64_t WayKey(const report::Acquired& place, const std::optional<report::Blame>& blame) {
  std::uint64_t hash = Hash(place.call, kSeed);
  for (const report::Frame& frame : place.stack) {
    const std::uint64_t at = frame.line != 0 ? static_cast<std::uint64_t>(frame.line) : frame.offset;
    hash = (Hash(frame.function, Hash(frame.module, hash)) ^ at) * 0x100000001b3U;
    if (blame && SameFunction(frame, blame->function)) break;
  }
  return hash;
}

std::string DefectFingerprint(const report::Finding& root, const std::optional<report::Blame>& blame) {
  const bool lost = root.rule == report::Rule::Orphaned;  // the same loss as a leak
  std::uint64_t hash = Hash(words::Name(lost ? report::Rule::Leak : root.rule), kSeed);
  hash = Hash(root.acquired.call, Hash(root.kind, hash));
  const std::vector<report::Frame>& stack = root.acquired.stack.empty() ? root.where_stack : root.acquired.stack;
  const auto program = std::find_if(stack.begin(), stack.end(), IsProgram);
  if (program != stack.end()) hash = HashFunction(*program, hash);
  if (root.rule != report::Rule::LeftAtExit) hash = Hash(root.where, hash);
  if (blame) hash = HashFunction(blame->function, hash);
  char text[32];
  std::snprintf(text, sizeof(text), "v2-%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace cuaudit::harness
