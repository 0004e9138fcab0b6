// SPDX-License-Identifier: MIT
#include "harness/options/report_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>

#include "harness/process/files.h"
#include "reports/html/html_writer.h"
#include "reports/json_writer.h"
#include "reports/junit_writer.h"
#include "reports/text_writer.h"

namespace cuaudit::harness {
namespace {

bool WantsColour() {
  const char* const refused = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return isatty(STDOUT_FILENO) != 0 && (refused == nullptr || *refused == '\0') && !dumb;
}

}  // namespace

Status CheckOutput(const std::string& output, std::string_view option) {
  const std::string given = std::string(option) + ": ";
  if (output.empty()) return {};  // stdout
  if (output == "-") return {Exit::Usage, given + "-: expected a file; the result of a --format without =FILE goes to stdout"};
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path path(output);
  if (fs::is_directory(path, error)) return {Exit::Usage, given + output + ": is a directory"};
  const fs::path dir = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(dir, error)) return {Exit::Usage, given + dir.string() + ": no such directory"};
  const bool device = fs::exists(path, error) && !fs::is_regular_file(path, error);
  if (device) return {};
  // A test file is created, because permissions do not tell: root may write everywhere, and /proc still refuses new files.
  std::string probe = (dir / ".cuaudit.XXXXXX").string();
  const int file = mkostemp(probe.data(), O_CLOEXEC);
  if (file < 0) return {Exit::Usage, given + dir.string() + ": cannot create a file here: " + std::strerror(errno)};
  close(file);
  unlink(probe.c_str());
  return {};
}

void SetInterrupted(const Progressed& progressed, report::Run* run) {
  const char* const name = sigabbrev_np(progressed.signal);
  const std::string signal = name == nullptr ? "signal " + std::to_string(progressed.signal) : std::string("SIG") + name;
  run->outcome = words::Outcome::Interrupted;
  if (progressed.done == 0) run->host = {};  // nothing was judged
  run->interrupted = {signal, progressed.done, progressed.planned, progressed.more};
}

Status WriteReport(const report::Run& run, const Output& output) {
  std::ostringstream text;
  bool written = false;
  switch (output.format) {
    case Format::Text:
      written = report::WriteText(run, text, {output.file.empty() && WantsColour(), output.findings});
      break;
    case Format::Json:
      written = report::WriteJson(run, text);
      break;
    case Format::Junit:
      written = report::WriteJunit(run, text);
      break;
    case Format::Html:
      written = report::WriteHtml(run, text);
      break;
  }
  if (!written) return {Exit::Failure, "the report could not be written"};
  return output.file.empty() ? WriteAll(STDOUT_FILENO, text.str(), "stdout") : WriteFile(output.file, text.str(), Exit::Failure);
}

std::string Timestamp() {
  std::time_t now = std::time(nullptr);
  if (const char* const fixed = std::getenv("SOURCE_DATE_EPOCH")) now = static_cast<std::time_t>(std::strtoll(fixed, nullptr, 10));
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace cuaudit::harness
