// SPDX-License-Identifier: MIT
#include "harness/cli/driver_choice.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "faults/driver/foreign_runtime.h"
#include "faults/driver/genuine_driver.h"

namespace cuaudit::harness {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuntimes[] = {"libcudart.so.12", "libcudart.so.13"};
constexpr const char* kDeviceNodes[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"};

}  // namespace

Result<Machine> LookAround(const std::string& real_driver) {
  std::error_code error;
  const fs::path tool = fs::read_symlink("/proc/self/exe", error);
  if (error) return Status(Exit::Failure, "/proc/self/exe: " + error.message());
  Machine machine;
  machine.drop_in_dir = (tool.parent_path().parent_path() / "lib" / "cuaudit").string();
  const std::string drop_in = machine.drop_in_dir + "/libcuda.so.1";
  machine.drop_in = fs::is_regular_file(drop_in, error);
  const auto is_there = [&](HostProbes probes) {
    return fs::is_regular_file(machine.drop_in_dir + "/" + std::string(LibraryOf(probes)), error);
  };
  machine.host_drop_in = is_there(HostProbes::Basic) && is_there(HostProbes::Heap);
  const std::string cudart = machine.drop_in_dir + "/cudart";
  for (const char* const soname : kRuntimes) {
    const std::string file = cudart + "/" + soname;
    if (fs::is_regular_file(file, error)) machine.cudart_dir = cudart;
    else machine.cudart_missing.push_back(file);
  }
  if (!real_driver.empty()) {
    const fs::path wished = fs::canonical(real_driver, error);
    if (error || !fs::is_regular_file(wished, error)) return Status(Exit::Usage, OptionFlag{"--real-driver"}, real_driver + ": not found");
    if (machine.drop_in && fs::equivalent(wished, drop_in, error)) {
      return Status(Exit::Usage, OptionFlag{"--real-driver"}, real_driver + ": is cuaudit's own drop-in library");
    }
    machine.genuine_driver = wished.string();
  } else {
    char path[PATH_MAX];
    if (driver::FindGenuineDriver(machine.drop_in ? drop_in.c_str() : nullptr, path, sizeof(path))) machine.genuine_driver = path;
  }
  if (machine.genuine_driver.find(';') != std::string::npos) {
    return Status(Exit::Usage, machine.genuine_driver + ": a driver may have no ';' in its path");
  }
  for (const char* const node : kDeviceNodes) {
    if (fs::exists(node, error)) machine.device_nodes.emplace_back(node);
  }
  return machine;
}

std::string OwnRuntime(const Machine& machine, const std::string& soname) {
  std::error_code error;
  const std::string wanted = "libcudart.so." + std::to_string(driver::RuntimeFileOf(soname).major);
  for (const char* const own : kRuntimes) {
    const std::string file = machine.cudart_dir + "/" + own;
    if (wanted == own && !machine.cudart_dir.empty() && fs::is_regular_file(file, error)) return file;
  }
  return {};
}

Result<ChosenDriver> ChooseDriver(const std::string& wish, const Machine& machine) {
  if (wish == "sim") return ChosenDriver{DriverKind::Simulated, "as asked"};
  std::string missing;
  if (machine.genuine_driver.empty()) {
    missing = "no genuine libcuda.so.1 found";
  } else if (machine.device_nodes.empty()) {
    missing = "no device node (/dev/nvidiactl, /dev/nvidia0 or /dev/dxg)";
  }
  if (missing.empty()) return ChosenDriver{DriverKind::Genuine, machine.genuine_driver + ", " + machine.device_nodes.front()};
  if (wish == "real") return Status(Exit::Environment, "--driver=real: " + missing);
  return ChosenDriver{DriverKind::Simulated, missing};
}

Status CheckNoAuditHere() {
  if ((";" + VariableOf("CUAUDIT_OPTIONS")).find(";journal=") == std::string::npos) return {};
  return {Exit::Usage, "an audit is under way here: CUAUDIT_OPTIONS has its orders, and other ones would end it unseen"};
}

namespace {

constexpr std::uint32_t kMostGroups = 1024;

// Takes the ids of "id:0,slots:1;id:2,slots:1"; false: the text has another form.
bool AddIds(std::string_view text, std::string* devices) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::string_view one = text.substr(0, end);
    const std::size_t comma = one.find(",slots:");
    if (!one.starts_with("id:") || comma == std::string_view::npos || comma == 3) return false;
    const std::string_view id = one.substr(3, comma - 3);
    if (id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string_view::npos) return false;
    const bool known = ("," + *devices + ",").find("," + std::string(id) + ",") != std::string::npos;
    if (!known) *devices += (devices->empty() ? "" : ",") + std::string(id);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

}  // namespace

Result<std::string> ReservedGpus() {
  std::string devices;
  const char* const count = std::getenv("CTEST_RESOURCE_GROUP_COUNT");
  if (count == nullptr) return devices;
  std::uint32_t groups = 0;
  const std::string_view digits(count);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), groups);
  if (digits.empty() || read.ec != std::errc() || read.ptr != digits.data() + digits.size() || groups > kMostGroups) {
    return Status(Exit::Usage,
                  "CTEST_RESOURCE_GROUP_COUNT: '" + std::string(count) + "': expected a number up to " + std::to_string(kMostGroups));
  }
  for (std::uint32_t group = 0; group < groups; ++group) {
    const std::string name = "CTEST_RESOURCE_GROUP_" + std::to_string(group) + "_GPUS";
    const char* const gpus = std::getenv(name.c_str());
    if (gpus != nullptr && !AddIds(gpus, &devices)) {
      return Status(Exit::Usage, name + ": '" + std::string(gpus) + "': expected id:ID,slots:N, with ';' between several");
    }
  }
  return devices;
}

}  // namespace cuaudit::harness
