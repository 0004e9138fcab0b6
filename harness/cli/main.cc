// SPDX-License-Identifier: MIT
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"

namespace cuaudit::harness {
namespace {

Exit Dispatch(const Options& options) {
  switch (options.command) {
    case kDoctor:
      return DoctorCommand(options);
    case kRun:
      return RunCommand(options);
    case kCycles:
      return CyclesCommand(options);
    case kSweep:
      return SweepCommand(options);
    case kReplay:
      return ReplayCommand(options);
    case kExplain:
      return ExplainCommand(options);
    case kList:
      return ListCommand(options);
  }
  return Exit::Failure;
}

Exit Main(const std::vector<std::string>& arguments) {
  const Result<Options> options = ParseOptions(arguments);
  if (!options.ok()) {
    Say(options.status().message());
    return options.status().exit();
  }
  if (options->done) return Print(options->message);
  return Dispatch(*options);
}

}  // namespace
}  // namespace cuaudit::harness

int main(int argc, char** argv) {
  using namespace cuaudit::harness;
  try {
    return static_cast<int>(Main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc)));
  } catch (const std::exception& error) {
    // Nothing of ours throws; the standard library may, when memory is out.
    Say(std::string("failed: ") + error.what());
    return static_cast<int>(Exit::Failure);
  }
}
