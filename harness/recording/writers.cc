// SPDX-License-Identifier: MIT
#include "harness/recording/writers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

namespace cuaudit::harness {
namespace {

enum class Maps : std::uint8_t { Has, HasNot, Unknown };

// Overlay file systems name another device than stat does, so there the last part of the path decides.
bool IsMapping(const std::string& line, const struct stat& file, const std::string& name) {
  char permissions[5] = "";
  unsigned major_number = 0;
  unsigned minor_number = 0;
  std::uint64_t inode = 0;
  if (std::sscanf(line.c_str(), "%*x-%*x %4s %*x %x:%x %" SCNu64, permissions, &major_number, &minor_number, &inode) != 4) return false;
  if (permissions[3] != 's' || permissions[1] != 'w' || inode != file.st_ino) return false;
  return makedev(major_number, minor_number) == file.st_dev || line.ends_with("/" + name);
}

Maps LookInto(pid_t process, const struct stat& file, const std::string& name) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  if (!maps) return Maps::Unknown;
  for (std::string line; std::getline(maps, line);) {
    if (IsMapping(line, file, name)) return Maps::Has;
  }
  return maps.bad() ? Maps::Unknown : Maps::HasNot;
}

// Processes of which the recording has a beginning and no end.
std::set<pid_t> Unended(const Recording& recording) {
  std::set<pid_t> processes;
  for (const faults::Record& record : recording.records) {
    const auto process = static_cast<pid_t>(record.pid);
    const bool exit = record.kind == faults::RecordKind::Process && record.call == static_cast<std::uint16_t>(faults::ProcessEvent::Exit);
    if (exit) processes.erase(process);
    else processes.insert(process);
  }
  return processes;
}

}  // namespace

std::optional<pid_t> WriterOf(const std::string& path, const Recording& recording) {
  struct stat file = {};
  if (stat(path.c_str(), &file) != 0) return {};
  std::error_code error;
  const std::string name = std::filesystem::canonical(path, error).filename().string();
  const std::set<pid_t> unended = Unended(recording);
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string entry = at->path().filename().string();
    pid_t process = 0;
    const std::from_chars_result number = std::from_chars(entry.data(), entry.data() + entry.size(), process);
    if (number.ec != std::errc() || number.ptr != entry.data() + entry.size() || process == getpid()) continue;
    const Maps maps = LookInto(process, file, name);
    if (maps == Maps::Has || (maps == Maps::Unknown && access(("/proc/" + entry).c_str(), F_OK) == 0 && unended.contains(process)))
      return process;
  }
  return {};
}

}  // namespace cuaudit::harness
