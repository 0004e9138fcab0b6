// SPDX-License-Identifier: MIT
#include "harness/lifecycle/command_line.h"

#include <mutex>
#include <string_view>
#include <vector>

#include "harness/process/files.h"
#include "harness/process/shell_quote.h"

namespace cuaudit::harness {
namespace {

std::mutex guard;

std::string& TestFilter() {
  static std::string filter;
  return filter;
}

// Options that choose tests, repeats or outputs. The reproduce line sets its own.
bool ChoosesTests(std::string_view word) {
  constexpr std::string_view kFlags[] = {"--gtest_filter", "--gtest_repeat", "--gtest_shuffle", "--gtest_output", "--gtest_color"};
  for (const std::string_view flag : kFlags) {
    if (word.starts_with(flag)) return true;
  }
  return false;
}

}  // namespace

void SetTestFilter(const std::string& filter) {
  const std::lock_guard<std::mutex> lock(guard);
  TestFilter() = filter;
}

std::vector<std::string> CommandWords() {
  const Result<std::string> bytes = ReadFile("/proc/self/cmdline");
  std::vector<std::string> words;
  if (bytes.ok()) {
    for (std::size_t at = 0; at < bytes->size();) {
      const std::size_t end = bytes->find('\0', at);
      words.push_back(bytes->substr(at, end - at));
      if (end == std::string::npos) break;
      at = end + 1;
    }
  }
  if (words.empty()) words.emplace_back("./test");
  return words;
}

std::string CommandLine() {
  const std::vector<std::string> words = CommandWords();
  const std::lock_guard<std::mutex> lock(guard);
  std::string line = ShellQuote(words.front());
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (TestFilter().empty() || !ChoosesTests(words[i])) line.append(" ").append(ShellQuote(words[i]));
  }
  if (!TestFilter().empty()) line.append(" ").append(ShellQuote("--gtest_filter=" + TestFilter()));
  return line;
}

}  // namespace cuaudit::harness
