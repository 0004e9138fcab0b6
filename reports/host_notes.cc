// SPDX-License-Identifier: MIT
#include "reports/host_notes.h"

#include <algorithm>

namespace cuaudit::report {

std::string HostNotes(const Run& run) {
  const auto places = [&run](std::string_view rule) {
    return std::count_if(run.notes.begin(), run.notes.end(), [rule](const Finding& note) { return note.rule == rule; });
  };
  std::string text;
  const auto add = [&text](auto count, const char* what) {
    if (count == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(count);
    if (text.find("host place") == std::string::npos) text += count == 1 ? " host place" : " host places";
    text += what;
  };
  add(places(kHostLeft), " left");
  add(places(kHostMisused), " misused");
  return text.empty() ? text : text + ", judged with --host";
}

}  // namespace cuaudit::report
