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
#include <system_error>

#include "harness/process/files.h"
#include "reports/audit_defects.h"
#include "reports/escape.h"
#include "reports/source_root.h"
#include "reports/words/words.h"
#include "reports/writers.h"

namespace cuaudit::harness {

bool WantsColour() {
  const char* const refused = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return isatty(STDOUT_FILENO) != 0 && (refused == nullptr || *refused == '\0') && !dumb;
}

namespace {

Status Deliver(bool written, const std::ostringstream& text, const Output& output) {
  if (!written) return {Exit::Failure, "the report could not be written"};
  return output.file.empty() ? WriteAll(STDOUT_FILENO, text.view(), "stdout") : WriteFile(output.file, text.view(), Exit::Failure);
}

// The folder of the project file, while that file is there, unless the working directory holds it, too: paths of a repository begin at its
// root. A result from elsewhere cannot make other folders known by naming them.
std::string DefaultRoot(const report::Audit& audit) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path project(audit.project);
  if (audit.from_archive || !project.is_absolute() || !fs::is_regular_file(project, error)) return ".";
  const fs::path folder = fs::canonical(project.parent_path(), error);
  const fs::path here = error ? fs::path() : fs::current_path(error);
  if (error) return ".";
  const fs::path below = folder.lexically_relative(here);
  return !below.empty() && *below.begin() != ".." ? "." : folder.string();
}

report::SourceRoot RootOf(const Output& output, const report::Audit& audit) {
  return report::SourceRoot(output.source_root.empty() ? DefaultRoot(audit) : output.source_root);
}

// Each report with the name of its case above it.
bool WriteTexts(const report::Audit& audit, const Output& output, std::ostream& text) {
  for (const report::Case& one : audit.cases) {
    if (const std::string_view what = report::NotRun(one); !what.empty()) {
      text << report::ForTerminal(one.name) << ": " << what << ": " << report::ForTerminal(report::WhyNotRun(one)) << "\n\n";
    }
    for (const report::Run& run : one.runs) {
      if (!one.name.empty()) text << report::ForTerminal(report::NameOf(one, run)) << "\n";
      if (!report::WriteText(run, text, {output.file.empty() && WantsColour(), output.findings})) return false;
      if (!one.name.empty()) text << "\n";
    }
  }
  return text.good();
}

// Steps of one job have a file each, and commands of one step share it.
Status AddStepSummary(const report::Audit& audit) {
  constexpr std::size_t kMostBytes = std::size_t{1000} << 10U;  // GitHub takes 1 MiB of all commands of a step
  const char* const path = std::getenv("GITHUB_STEP_SUMMARY");
  if (path == nullptr || *path == '\0') return {};
  std::ostringstream page;
  if (!report::WriteMarkdown(audit, page, {kMostBytes})) return {Exit::Failure, "GITHUB_STEP_SUMMARY: the page could not be written"};
  const FileDescriptor file(open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (!file.valid()) return {Exit::Failure, std::string("GITHUB_STEP_SUMMARY: ") + path + ": " + SystemWords(errno)};
  return WriteAll(file.get(), page.str(), path);
}

}  // namespace

Status CheckOutputs(const Options& options) {
  Status writable;
  for (const Output& output : options.outputs) {
    if (writable.ok()) writable = CheckOutput(output.file, output.file == options.output ? "--output" : "--format");
  }
  return writable;
}

Status CheckOutput(const std::string& output, std::string_view option) {
  const OptionFlag given{option};
  if (output.empty()) return {};  // stdout
  if (output == "-") return {Exit::Usage, given, "-: expected a file; the result of a --format without =FILE goes to stdout"};
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path path(output);
  if (fs::is_directory(path, error)) return {Exit::Usage, given, output + ": is a directory"};
  const fs::path dir = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(dir, error)) return {Exit::Usage, given, dir.string() + ": no such directory"};
  if (fs::is_socket(path, error)) return {Exit::Usage, given, output + ": is a socket"};
  if (const Status opened = OpenPipe(output); !opened.ok()) return {Exit::Usage, given, opened.message()};
  const bool device = fs::exists(path, error) && !fs::is_regular_file(path, error);
  if (device) return {};
  // A test file is created, because permissions do not tell: root may write everywhere, and /proc still refuses new files.
  std::string probe = (dir / ".cuaudit.XXXXXX").string();
  const int file = mkostemp(probe.data(), O_CLOEXEC);
  if (file < 0) return {Exit::Usage, given, dir.string() + ": cannot create a file here: " + std::strerror(errno)};
  close(file);
  unlink(probe.c_str());
  return {};
}

void SetInterrupted(const Progressed& progressed, report::Run* run) {
  run->outcome = words::Outcome::Interrupted;
  if (progressed.done == 0) run->host = {};  // nothing was judged
  run->interrupted = {words::SignalName(progressed.signal), progressed.done, progressed.planned, progressed.more};
}

Status WriteReport(const report::Run& run, const Output& output) {
  std::ostringstream text;
  if (output.format == Format::Junit) return Deliver(report::WriteJunit(run, text), text, output);
  if (output.format == Format::Json) return Deliver(report::WriteJson(run, text), text, output);
  report::Audit audit;
  audit.generated = run.generated;
  audit.tool_version = run.tool_version;
  audit.cases.emplace_back().runs.push_back(run);
  return WriteAudit(audit, output);
}

Status WriteAudit(const report::Audit& audit, const Output& output) {
  const bool alone = audit.cases.size() == 1 && audit.cases.front().runs.size() == 1;
  std::ostringstream text;
  switch (output.format) {
    case Format::Text:
      return Deliver(WriteTexts(audit, output, text), text, output);
    case Format::Json:
      if (!alone)
        return {Exit::Usage, OptionFlag{"--format"},
                "json holds one report, and this result has several: its folder has a JSON file for each"};
      return Deliver(report::WriteJson(audit.cases.front().runs.front(), text), text, output);
    case Format::Junit:
      return Deliver(report::WriteJunit(audit, text), text, output);
    case Format::Sarif: {
      const auto profile = output.for_upload ? report::SarifProfile::Github : report::SarifProfile::Full;
      return Deliver(report::WriteSarif(audit, RootOf(output, audit), profile, text), text, output);
    }
    case Format::Github: {
      Status written = Deliver(report::WriteGithub(audit, RootOf(output, audit), text), text, output);
      return written.ok() ? AddStepSummary(audit) : written;
    }
    case Format::Gitlab:
      return Deliver(report::WriteGitlab(audit, RootOf(output, audit), text), text, output);
    case Format::Markdown:
      return Deliver(report::WriteMarkdown(audit, text), text, output);
    case Format::Html:
      return Deliver(report::WriteHtml(audit, RootOf(output, audit), text), text, output);
  }
  return {Exit::Failure, "the report could not be written"};
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
