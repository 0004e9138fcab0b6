// SPDX-License-Identifier: MIT
// options.h: the command line as a value.
//
//   Threads   one thread.
//   Units     in the names and the help texts of options.def.
//   Errors    ParseOptions answers a Status with one line. --help and --version answer their text with `done` set.
//   Source    options.def; CLI11 reads flags.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/process/status.h"

namespace cuaudit::harness {

enum Command : std::uint32_t {
  kDoctor = 1,
  kRun = 2,
  kCycles = 4,
  kSweep = 8,
  kReplay = 16,
  kExplain = 32,
  kList = 64,
  kLifecycle = 128,
  kAuditCases = 256,
  kInit = 512,
  kCompare = 1024,
  kBaseline = 2048,
  kSuppress = 4096,
  kReport = 8192,
  kEnv = 16384,
  kPlan = 32768,
  kRunShard = 65536,
  kMerge = 131072,
  kSlurm = 262144,
  kReduce = 524288,
  kRecord = 1048576
};
inline constexpr std::uint32_t kAudit = kRun | kCycles | kSweep | kReplay;
// No command: the option is a key of a case in cuaudit.toml, and a flag of the commands that read or write that file.
inline constexpr std::uint32_t kCase = std::uint32_t{1} << 31U;
// A command has the rows of options.def that have one of these bits.
constexpr std::uint32_t BitsOf(Command command) {
  return command == kAuditCases || command == kInit || command == kPlan ? std::uint32_t{command} | kCase : std::uint32_t{command};
}
enum class Echo : std::uint8_t { kQuiet, kEcho };

enum class Format : std::uint8_t { Text, Json, Junit, Sarif, Github, Gitlab, Markdown, Html };

// One form of the result, and where the result goes.
struct Output {
  Format format = Format::Text;
  std::string file;              // empty: stdout
  bool findings = false;         // --findings
  std::string source_root = {};  // --source-root; empty: the working directory
  bool for_upload = false;       // --sarif=github
};

struct Options {
#define CUAUDIT_CHOICE(field, flag, default_value, choices, commands, echo, help) std::string field = default_value;
#define CUAUDIT_TEXT(field, flag, default_value, operand, commands, echo, help) std::string field = default_value;
#define CUAUDIT_NUMBER(field, flag, default_value, lowest, highest, commands, echo, help) std::uint64_t field = default_value;
#define CUAUDIT_SWITCH(field, flag, commands, echo, help) bool field = false;
#define CUAUDIT_LIST(field, flag, operand, commands, echo, help) std::vector<std::string> field;
#include "harness/options/options.def"

  Command command = kDoctor;
  std::string tool = "cuaudit";       // name of the tool in reproduce lines
  std::string operand;                // explain: the journal; list: the table
  std::vector<std::string> operands;  // of a command that takes several, in their order
  std::vector<std::string> program;   // words after "--"
  std::vector<std::string> given;     // audit, init: the flags of kCase that were given
  std::vector<Output> outputs;        // from --format and --output; at most one goes to stdout
  bool done = false;                  // only `message` was wanted
  std::string message;
};

// `arguments` does not include the tool's own name. The tables of accepted flags are built once for all calls.
Result<Options> ParseOptions(std::span<const std::string> arguments);

// `text` holds the options of a lifecycle in the form of a command line: "--depth 1 --format json=audit.json". Other options stay as they
// are.
Status ParseLifecycleOptions(const std::string& text, Options* options);

// The options of cuaudit.toml that the environment variable CUAUDIT_AUDIT gives, in the form of a command line: "--depth 1 --jobs 2".
inline constexpr const char* kAuditVariable = "CUAUDIT_AUDIT";
Result<Options> ParseAuditVariable();

// Whether the options go together.
Status CheckOptions(const Options& options);

// The flags that `command` needs to do the same again: its rows marked kEcho whose value is not the default.
std::vector<std::string> EchoOptions(const Options& options, Command command);

// "a,b" becomes a and b. Empty words are kept, so that they can be refused.
std::vector<std::string> SplitCommas(std::string_view list);

struct CommandRow {
  Command command;
  const char* name;
  const char* usage;  // the words after the options
  const char* help;
};
std::span<const CommandRow> Commands();

// The tables that `cuaudit list` can print.
inline constexpr std::string_view kListNames[] = {"calls",   "kinds",   "settings", "outcomes", "verdicts", "rules",   "missed",
                                                  "reasons", "changes", "hows",     "probes",   "commands", "options", "tables"};

std::string_view CommandName(Command command);
std::string_view ToolVersion();

}  // namespace cuaudit::harness
