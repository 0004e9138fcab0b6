// SPDX-License-Identifier: MIT
#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
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
    case kLifecycle:  // no command of its own: CUAUDIT_SWEEP
      break;
  }
  return Exit::Failure;
}

// `name`: argv[0]. With a slash it is a path that leads here again, without one the shell found it by PATH.
Exit Main(std::string_view name, const std::vector<std::string>& arguments) {
  Result<Options> options = ParseOptions(arguments);
  if (!options.ok()) {
    Say(options.status().message());
    return options.status().exit();
  }
  if (options->done) return Print(options->message);
  if (name.find('/') != std::string_view::npos) options->tool = name;
  return Dispatch(*options);
}

// A standard stream that was closed would be the number of the next file opened, and messages would land in it. With a stand-in that
// cannot be written, saying something fails as it should.
void OccupyStandardStreams() {
  for (int stream = 0; stream <= 2; ++stream) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) (void)open("/dev/null", O_RDONLY);
  }
}

}  // namespace
}  // namespace cuaudit::harness

int main(int argc, char** argv) {
  using namespace cuaudit::harness;
  OccupyStandardStreams();
  // A reader that went away is a failed write, told and cleaned up after like any other. Programs get the default back.
  std::signal(SIGPIPE, SIG_IGN);
  // So is one beyond the limit on file sizes, which names its file.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return static_cast<int>(Main(argc > 0 ? argv[0] : "", std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc)));
  } catch (const std::exception& error) {
    // Nothing of ours throws; the standard library may, when memory is out.
    Say(std::string("failed: ") + error.what());
    return static_cast<int>(Exit::Failure);
  }
}
