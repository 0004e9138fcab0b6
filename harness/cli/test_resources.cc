// SPDX-License-Identifier: MIT
#include "harness/cli/test_resources.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace cuaudit::harness {
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
