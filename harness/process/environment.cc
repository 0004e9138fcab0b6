// SPDX-License-Identifier: MIT
#include "harness/process/environment.h"

#include <unistd.h>

#include <cstddef>

namespace cuaudit::harness {
namespace {

constexpr std::string_view kLibraryPath = "LD_LIBRARY_PATH=";
constexpr std::string_view kPreload = "LD_PRELOAD=";
constexpr std::string_view kOptions = "CUAUDIT_OPTIONS=";

std::string Joined(std::string_view prefix, std::string_view ours, std::string_view theirs) {
  std::string line(prefix);
  line += ours;
  if (!theirs.empty()) line.append(":").append(theirs);
  return line;
}

}  // namespace

std::string_view Name(DriverChoice driver) noexcept {
  switch (driver) {
    case DriverChoice::Simulated:
      return "sim";
    case DriverChoice::Genuine:
      return "real";
  }
  return {};
}

std::string_view LibraryOf(HostProbes probes) noexcept {
  switch (probes) {
    case HostProbes::None:
      return {};
    case HostProbes::Basic:
      return "libcuaudit_host_basic.so";
    case HostProbes::Heap:
      return "libcuaudit_host.so";
  }
  return {};
}

std::string OptionsText(const LaunchOptions& options, const std::string& journal, std::span<const std::string> faults) {
  std::string text = "journal=" + journal;
  text.append(";driver=").append(Name(options.driver));
  if (options.driver == DriverChoice::Genuine && !options.real_driver.empty()) text += ";real_driver=" + options.real_driver;
  text += options.pinned_scope ? ";scope=pinned" : ";scope=process";
  constexpr std::string_view kProbes[] = {"none", "basic", "heap"};
  text.append(";host=").append(kProbes[static_cast<std::size_t>(options.host_probes)]);
  if (!options.world.empty()) text += ";" + options.world;
  for (const std::string& fault : faults) text += ";fault=" + fault;
  return text;
}

std::vector<std::string> MakeEnvironment(const LaunchOptions& options, const std::string& asan_library, const std::string& options_text,
                                         std::span<const std::string> base) {
  std::vector<std::string> lines;
  std::string_view library_path;
  std::string_view preload;
  for (const std::string& line : base) {
    const std::string_view view = line;
    if (view.starts_with(kLibraryPath)) {
      library_path = view.substr(kLibraryPath.size());
    } else if (view.starts_with(kPreload)) {
      preload = view.substr(kPreload.size());
    } else if (!view.starts_with(kOptions)) {
      lines.push_back(line);
    }
  }
  std::string libraries;
  if (!asan_library.empty()) libraries = asan_library + ":";
  // The loader initialises the last preload first. So the driver drop-in is ready before the host probes begin to watch it.
  const std::string_view probes = LibraryOf(options.host_probes);
  if (!probes.empty()) libraries.append(options.drop_in_dir).append("/").append(probes).append(":");
  libraries += options.drop_in_dir + "/libcuda.so.1";
  std::string directories = options.drop_in_dir;
  if (options.driver == DriverChoice::Simulated) {
    if (!options.cudart.empty()) libraries += ":" + options.cudart;
    if (!options.cudart_dir.empty()) directories += ":" + options.cudart_dir;
  }
  lines.push_back(Joined(kLibraryPath, directories, library_path));
  lines.push_back(Joined(kPreload, libraries, preload));
  lines.push_back(std::string(kOptions) + options_text);
  return lines;
}

Status CheckDropInPath(const std::string& drop_in_dir) {
  if (drop_in_dir.find_first_of(" :;") == std::string::npos) return {};
  return {Exit::Environment, "'" + drop_in_dir + "': the loader takes no library from a directory with a space, ':' or ';' in its path: " +
                                 "install cuaudit elsewhere"};
}

Result<std::vector<std::string>> CurrentEnvironment() {
  std::vector<std::string> lines;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) {
    const std::string_view view = *line;
    if (view.starts_with(kOptions) && view.size() > kOptions.size()) {
      return Status(Exit::Usage,
                    "CUAUDIT_OPTIONS is set in the environment: unset it (eval \"$(cuaudit env --off)\" does), cuaudit sets it for the "
                    "program it starts");
    }
    lines.emplace_back(view);
  }
  return lines;
}

}  // namespace cuaudit::harness
