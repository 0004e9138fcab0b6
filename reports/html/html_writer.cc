// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "reports/html/page_parts.h"
#include "reports/writers.h"

namespace cuaudit::report {
namespace {

using html::Asset;

void Write(Asset asset, std::ostream& out) {
  for (const std::string_view part : asset) out << part;
}

// Growth is plotted by a library that a page without growth need not carry.
bool HasPlots(const Audit& audit) {
  return std::any_of(audit.cases.begin(), audit.cases.end(), [](const Case& one) {
    return std::any_of(one.runs.begin(), one.runs.end(), [](const Run& run) { return !run.cycle_rows.empty(); });
  });
}

}  // namespace

bool WriteHtml(const Audit& audit, const SourceRoot& root, std::ostream& out) {
  const bool plots = HasPlots(audit);
  std::string page;
  for (const std::string_view part : html::kPageHtml) page += part;
  std::string_view rest = page;
  // Writes the page up to a marker. Each marker stands in page.html once, in this order.
  const auto up_to = [&](std::string_view marker) {
    const std::size_t at = rest.find(marker);
    out << rest.substr(0, at);
    rest.remove_prefix(std::min(at, rest.size() - marker.size()) + marker.size());
  };
  up_to("@STYLE@");
  if (plots) Write(html::kPlotStyle, out);
  Write(html::kPageStyle, out);
  up_to("@DATA@");
  out << html::PageData(audit, audit.from_archive ? nullptr : &root);
  up_to("@LIBRARY@");
  if (plots) {
    out << "<script>";
    Write(html::kPlotScript, out);
    out << "</script>\n";
  }
  up_to("@SCRIPT@");
  Write(html::kPageScript, out);
  out << rest;
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
