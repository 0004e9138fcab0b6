// SPDX-License-Identifier: MIT
#include "reports/host_notes.h"

#include <algorithm>

namespace cuaudit::report {

std::string HostNotes(const Run& run) {
  const auto places = [&run](Rule rule) {
    return std::count_if(run.notes.begin(), run.notes.end(), [rule](const Finding& note) { return note.rule == rule; });
  };
  std::string text;
  const auto add = [&text](auto count, const char* what) {
    if (count == 0) return;
    const char* const of = !text.empty() ? "" : count == 1 ? " host place" : " host places";
    text += (text.empty() ? "" : ", ") + std::to_string(count) + of + what;
  };
  add(places(Rule::HostLeft), " left");
  add(places(Rule::HostMisused), " misused");
  return text.empty() ? text : text + ", judged with --host";
}

}  // namespace cuaudit::report
