// SPDX-License-Identifier: MIT
// The command line of the tool, one argument a line, and the file of --config: with a first byte that is odd, everything behind the first
// empty line is such a file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/options/options.h"
#include "include/cuaudit/fuzz_input.h"
#include "suites/fuzz/require.h"

namespace cuaudit::fuzz {
namespace {

// A file with given content that is on no disk. Without memory the process ends, because that says nothing about the target.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view text) : file_(memfd_create("input", MFD_CLOEXEC)) {
    Require(file_ >= 0 && write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "there is room for a file");
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

using namespace cuaudit::harness;

void Try(const std::vector<std::string>& arguments) {
  const Result<Options> options = ParseOptions(arguments);
  if (!options.ok()) {
    Require(options.status().exit() == Exit::Usage && !options.status().message().empty(), "what is wrong is said");
    Require(options.status().message().find('\n') == std::string::npos, "in one line", options.status().message());
    return;
  }
  if (options->done || options->command == kList || options->command == kExplain || options->command == kDoctor) return;
  if (options->command == kReduce || !options->operands.empty()) return;  // no line of a report repeats them
  std::vector<std::string> echoed{std::string(CommandName(options->command))};
  for (std::string& flag : EchoOptions(*options, options->command)) echoed.push_back(std::move(flag));
  for (const std::string& fault : options->fault) {
    if (options->command == kReplay) echoed.push_back("--fault=" + fault);
  }
  echoed.emplace_back("--");
  echoed.insert(echoed.end(), options->program.begin(), options->program.end());
  const Result<Options> again = ParseOptions(echoed);
  Require(again.ok(), "what a reproduce line repeats can be read", again.status().message());
  Require(EchoOptions(*again, again->command) == EchoOptions(*options, options->command), "and means the same");
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cuaudit::FuzzInput input(data, size);
  const bool with_file = input.Below(2) == 1;
  std::string_view text = input.Rest();
  std::vector<std::string> arguments;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (with_file && line.empty()) break;
    // Files that the input names are nobody's business here, and no argument holds a zero.
    if (line.starts_with("--config") || line.find('\0') != std::string_view::npos) continue;
    arguments.emplace_back(line);
  }
  if (!with_file) {
    cuaudit::fuzz::Try(arguments);
    return 0;
  }
  const cuaudit::fuzz::MemoryFile config(text);
  arguments.insert(arguments.begin(), "--config=" + config.path());
  cuaudit::fuzz::Try(arguments);
  return 0;
}
