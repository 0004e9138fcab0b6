// SPDX-License-Identifier: MIT
#include <cuda.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "harness/cli/commands.h"
#include "harness/cli/driver_choice.h"
#include "harness/cli/session.h"
#include "harness/process/files.h"

namespace cuaudit::harness {
namespace {

std::string Limit(int resource) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

// kernel.yama.ptrace_scope decides whether a debugger can attach to a hung trial.
std::string PtraceScope() {
  const Result<std::string> text = ReadFile("/proc/sys/kernel/yama/ptrace_scope");
  if (!text.ok()) return "not restricted";
  return "kernel.yama.ptrace_scope " + text->substr(0, text->find('\n'));
}

std::string TemporarySpace() {
  const char* const variable = std::getenv("TMPDIR");
  const std::string dir = variable != nullptr && *variable != '\0' ? variable : "/tmp";
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(dir, error);
  if (error) return dir + ": " + error.message();
  return fmt::format("{}: {} MiB free{}", dir, space.available >> 20U, access(dir.c_str(), W_OK) == 0 ? "" : ", not writable");
}

std::string Joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : ", ") + word;
  return line.empty() ? "none" : line;
}

std::string OwnRuntimeInWords(const Machine& machine) {
  if (CUDA_VERSION < 13000) {
    return fmt::format("no own one: cuaudit was built with the headers of CUDA {}.{}, and its runtime needs those of 13",
                       CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
  }
  std::string words;
  if (!machine.cudart_dir.empty()) words = "own, for programs of the shared runtime on the simulated driver: " + machine.cudart_dir;
  if (machine.cudart_missing.empty()) return words;
  return words + (words.empty() ? "no own one: " : "; ") + Joined(machine.cudart_missing) +
         " missing: ./scripts/audit builds it (the target cuaudit_complete)";
}

}  // namespace

Exit DoctorCommand(const Options& options) {
  const Result<Machine> machine = LookAround(options.real_driver);
  if (!machine.ok()) return Refuse(machine.status());
  const Result<ChosenDriver> chosen = ChooseDriver(options.driver, *machine);
  std::string page;
  const auto row = [&page](std::string_view what, const std::string& value) { page += fmt::format("{:<16}{}\n", what, value); };
  row("cuaudit", std::string(ToolVersion()));
  row("headers", fmt::format("CUDA {}.{}, {} entry points", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, driver::kCallCount));
  row("drop-in", machine->drop_in_dir + (machine->drop_in ? "" : ": libcuda.so.1 is missing"));
  row("host drop-in", machine->host_drop_in
                          ? "found"
                          : "libcuaudit_host.so or libcuaudit_host_basic.so is missing: cuaudit-sim has no audits, cuaudit has");
  row("CUDA runtime", OwnRuntimeInWords(*machine));
  row("genuine driver", machine->genuine_driver.empty() ? "none" : machine->genuine_driver);
  row("device nodes", Joined(machine->device_nodes));
  row("--driver=" + options.driver,
      !chosen.ok() ? chosen.status().message()
                   : std::string(chosen->driver == DriverChoice::Genuine ? "real" : "simulated") + " (" + chosen->why + ")");
  row("ptrace", PtraceScope());
  row("limits", "open files " + Limit(RLIMIT_NOFILE) + ", processes " + Limit(RLIMIT_NPROC) + ", file bytes " + Limit(RLIMIT_FSIZE));
  row("work directory", TemporarySpace());
  const Exit printed = Print(page);
  if (printed != Exit::Clean) return printed;
  return machine->drop_in && machine->host_drop_in && chosen.ok() ? Exit::Clean : Exit::Environment;
}

}  // namespace cuaudit::harness
