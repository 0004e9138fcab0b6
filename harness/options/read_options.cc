// SPDX-License-Identifier: MIT
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>

#include "harness/options/options.h"
#include "harness/options/toml_options.h"
#include "reports/words/words.h"

namespace cuaudit::harness {
namespace {

constexpr CommandRow kCommands[] = {
    {kDoctor, "doctor", "", "Say what this machine offers: driver, device, drop-in libraries, limits"},
    {kRun, "run", " -- PROGRAM [ARGS]", "Run a program once under audit and list what it acquired and left"},
    {kCycles, "cycles", " -- PROGRAM [ARGS with {n}]", "Compare what is alive after 1 and after 10 cycles, kind by kind and site by site"},
    {kSweep, "sweep", " -- PROGRAM [ARGS]", "Make every driver call of a program fail in turn and judge how it unwinds"},
    {kReplay, "replay", " --fault TEXT -- PROGRAM [ARGS]", "Run one trial again"},
    {kExplain, "explain", " JOURNAL | --rule ID",
     "Print what a recording shows, and judge it; or the records of a trial that --keep left, which is not judged (exit 0); or what a "
     "word of a report means"},
    {kList, "list", " TABLE", "Print a table that cuaudit goes by"},
    {kCompare, "compare", " BASE HEAD",
     "Say which defects of HEAD are new, and which of BASE are fixed or were not looked for: results, reports, archives; BASE may be a "
     "baseline file"},
    {kBaseline, "baseline", " write RESULT [FILE] | show FILE",
     "Write the defects of a result as a small file for the repository, or print one"},
    {kSuppress, "suppress", " FINGERPRINT [--report RESULT] --reason TEXT --owner NAME --until DAY",
     "Accept a defect until a day: adds an entry to suppressions.toml"},
    {kReport, "report", " RESULT...", "Write results that are there already in another format: result directories, JSON reports, archives"},
    {kEnv, "env", " [-- PROGRAM [ARGS]]",
     "Print what makes a shell start programs on the simulated driver, without an audit: eval \"$(cuaudit env --driver=sim)\"; or start "
     "one so"},
    {kAuditCases, "audit", " [CASE...]", "Carry out the sweep and the cycles of each case of cuaudit.toml"},
    {kPlan, "plan", " [-- PROGRAM [ARGS]] | PLAN [SHARD...]",
     "Cut a sweep, or the cases of cuaudit.toml, into shards for many machines; with PLAN: cut its second faults, once all shards are "
     "there. Cases run at the same time unless jobs = 1 or --jobs 1 says otherwise"},
    {kRunShard, "run-shard", " PLAN [I]", "Carry out shard I of a plan; a shard that was killed goes on where it was"},
    {kMerge, "merge", " PLAN [SHARD...]",
     "Write the report that one machine would have written, from all shards of a plan. Cases run at the same time, as in plan"},
    {kSlurm, "slurm", " PLAN", "Print a script that has Slurm carry out a plan: arrays of shards, then their merge"},
    {kInit, "init", " -- PROGRAM [ARGS]", "Write a cuaudit.toml for a program, from what fault-free runs of it show"},
    {kRecord, "record", " -- PROGRAM [ARGS] | --print-environment | --pack FILE",
     "Record the driver calls of a program in production, bounded and cheaply, for explain, cycles and reduce on another machine"},
    {kReduce, "reduce", " FINGERPRINT [RESULT] [-- PROGRAM [ARGS]]",
     "Make an issue kit of a defect: the fewest driver calls that show it as a C program, with a page and a script"},
};

const CommandRow& RowOf(Command command) {
  return *std::find_if(std::begin(kCommands), std::end(kCommands), [&](const CommandRow& row) { return row.command == command; });
}

// CLI11's own validators describe themselves in --help; what they say of a wrong value is not in the words of other messages.
CLI::Validator OneOf(const std::vector<std::string>& choices) {
  return {[choices](std::string& word) {
            if (std::find(choices.begin(), choices.end(), word) != choices.end()) return std::string();
            return "expected " + CLI::detail::join(choices, " or ") + ", not '" + word + "'";
          },
          CLI::IsMember(choices).get_description()};
}

CLI::Validator NumberFrom(std::uint64_t lowest, std::uint64_t highest) {
  return {[lowest, highest](std::string& word) {
            std::uint64_t value = 0;
            if (CLI::detail::lexical_cast(word, value) && value >= lowest && value <= highest) return std::string();
            return "expected a number from " + std::to_string(lowest) + " to " + std::to_string(highest) + ", not '" + word + "'";
          },
          CLI::Range(lowest, highest).get_description()};
}

void AddOptions(CLI::App* app, Command command, Options* options) {
  const Options defaults;
  for (const OptionRow& row : OptionRows()) {
    if ((row.commands & BitsOf(command)) == 0) continue;
    const std::string help = row.help;
    switch (row.sort) {
      case OptionRow::Sort::Choice:
        app->add_option(row.flag, options->*row.text, help)->check(OneOf(SplitCommas(row.operand)))->capture_default_str();
        break;
      case OptionRow::Sort::Text: {
        // "LIST=refuse": what is taken when the flag is not given, unless its help says it.
        const std::string& value = defaults.*row.text;
        const bool is_told = value.empty() || help.find("(default") != std::string::npos;
        app->add_option(row.flag, options->*row.text, help)->option_text(is_told ? row.operand : row.operand + ("=" + value));
        break;
      }
      case OptionRow::Sort::Number:
        app->add_option(row.flag, options->*row.number, help)->check(NumberFrom(row.lowest, row.highest))->capture_default_str();
        break;
      case OptionRow::Sort::Switch:
        app->add_flag(row.flag, options->*row.flagged, help);
        break;
      case OptionRow::Sort::List:
        app->add_option(row.flag, options->*row.list, help)->allow_extra_args(false)->option_text(row.operand);
        break;
    }
  }
}

// Reads "json" or "json=FILE".
Result<Output> ParseOutput(const std::string& text, const Options& options) {
  static constexpr struct {
    std::string_view name;
    Format format;
  } kFormats[] = {{"text", Format::Text},     {"json", Format::Json},     {"junit", Format::Junit},       {"sarif", Format::Sarif},
                  {"github", Format::Github}, {"gitlab", Format::Gitlab}, {"markdown", Format::Markdown}, {"html", Format::Html}};
  const std::size_t equals = text.find('=');
  for (const auto& [name, format] : kFormats) {
    if (text.substr(0, equals) != name) continue;
    if (equals + 1 == text.size()) break;
    Output output;
    output.format = format;
    if (equals != std::string::npos) output.file = text.substr(equals + 1);
    output.findings = options.findings;
    output.source_root = options.source_root;
    output.for_upload = options.sarif == "github";
    return output;
  }
  return Status(Exit::Usage, OptionFlag{"--format"},
                "'" + text + "': expected " + words::NamesInWords(kFormats) + ", or one of these and =FILE");
}

Status AddOutput(const std::string& text, Options* options) {
  Result<Output> output = ParseOutput(text, *options);
  if (!output.ok()) return output.status();
  const bool to_output = output->file.empty();
  if (to_output && options->command == kLifecycle)
    return {Exit::Usage, OptionFlag{"--format"}, "'" + text + "': expected " + text + "=FILE"};
  if (to_output) output->file = options->output;
  for (const Output& other : options->outputs) {
    if (other.file != output->file) continue;
    return {Exit::Usage, OptionFlag{"--format"}, to_output ? "expected at most one without =FILE" : "two results for " + other.file};
  }
  options->outputs.push_back(std::move(*output));
  return {};
}

Status ReadOutputs(Options* options) {
  for (const std::string& text : options->format.empty() ? std::vector<std::string>{"text"} : options->format) {
    Status added = AddOutput(text, options);
    if (!added.ok()) return added;
  }
  const std::pair<const char*, const std::string&> others[] = {{"--trials", options->trials},
                                                               {"--write-lifetime", options->write_lifetime}};
  for (const auto& [flag, file] : others) {
    const auto same = [&path = file](const Output& output) { return !path.empty() && output.file == path; };
    if (std::any_of(options->outputs.begin(), options->outputs.end(), same))
      return {Exit::Usage, OptionFlag{flag}, "two results for " + file};
  }
  const auto has_file = [](const std::string& text) { return text.find('=') != std::string::npos; };
  if (!options->output.empty() && !options->format.empty() && std::all_of(options->format.begin(), options->format.end(), has_file)) {
    return {Exit::Usage, OptionFlag{"--output"}, "expected a --format without =FILE, whose result goes there"};
  }
  const Output& first = options->outputs.front();
  const bool listed = first.format == Format::Text || first.format == Format::Json;
  if (options->command == kList && (options->outputs.size() != 1 || !first.file.empty() || !listed)) {
    return {Exit::Usage, OptionFlag{"--format"}, "list prints text or json to stdout"};
  }
  return {};
}

// Notes which options of a case were given, so that they come before those of cuaudit.toml.
void NoteGiven(const CLI::App& app, Options* options) {
  if (options->command != kAuditCases && options->command != kInit) return;
  for (const OptionRow& row : OptionRows()) {
    if (row.IsKey() && app.count(row.flag) != 0) options->given.emplace_back(row.flag);
  }
}

// What CLI11 says of a command line, in the words of the other messages.
std::string InOurWords(const CLI::ParseError& error) {
  std::string said = error.what();
  std::replace(said.begin(), said.end(), '\n', ' ');
  while (said.ends_with(' ')) said.pop_back();
  const std::size_t colon = std::min(said.find(':'), said.size());
  const std::string behind = said.substr(std::min(colon + 2, said.size()));
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return "not expected: " + (behind.empty() ? "''" : behind);
  // "Could not convert: --host = maybe": all but switches have a check of their own.
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) return behind.substr(0, behind.find(' ')) + ": takes no value";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return said;
  return said.substr(0, colon) + (said.ends_with(" missing") ? ": expected a value" : ": expected at most once");
}

struct Parser {
  Parser();
  Result<Options> Parse(std::span<const std::string> arguments);
  void AddOptionsOf(std::size_t i);

  CLI::App app{"Lifecycle leak audit for GPU code: fails every CUDA driver call in turn and says what was not released.", "cuaudit"};
  std::vector<CLI::App*> commands;  // in the order of kCommands
  // Each command fills its own copy, so that a section of the config file for one command cannot change another.
  std::vector<Options> copies = std::vector<Options>(std::size(kCommands));
  std::uint32_t complete = 0;  // the commands whose options were added
};

Parser::Parser() {
  app.require_subcommand(1);
  app.set_version_flag("--version", "cuaudit " + std::string(ToolVersion()));
  const auto config = std::make_shared<ConfigFile>();
  app.config_formatter(config);
  app.set_config("--config", "", "TOML file with options, one section per command")->check([config](const std::string& path) {
    return config->Read(path);
  });
  for (const CommandRow& row : kCommands) {
    CLI::App* const sub = commands.emplace_back(app.add_subcommand(row.name, row.help));
    sub->fallthrough();
    sub->footer(std::string("cuaudit ") + row.name + " [OPTIONS]" + row.usage);
  }
}

// CLI11 compares each option of a command with all others of it: for all commands, half of the time in which cuaudit starts. So a command
// gets its options when a command line names it, or a config file, which may have a section for any.
void Parser::AddOptionsOf(std::size_t i) {
  const Command command = kCommands[i].command;
  CLI::App* const sub = commands[i];
  if ((complete & command) != 0) return;
  complete |= command;
  Options& copy = copies[i];
  AddOptions(sub, command, &copy);
  if (command == kExplain) sub->add_option("journal", copy.operand, "a journal that record made, or that --keep left behind");
  if (command == kAuditCases) sub->add_option("case", copy.operands, "names of cases (default: all)");
  if (command == kList) {
    sub->add_option("table", copy.operand, "the table")
        ->required()
        ->check(OneOf(std::vector<std::string>(std::begin(kListNames), std::end(kListNames))));
  }
  if (command == kCompare) sub->add_option("result", copy.operands, "the base, then the head");
  if (command == kBaseline) sub->add_option("what", copy.operands, "write or show, then files");
  if (command == kSuppress) sub->add_option("fingerprint", copy.operands, "of a defect, as reports show it");
  if (command == kReduce) sub->add_option("fingerprint", copy.operands, "of the defect; then the result that has it");
  if (command == kReport) sub->add_option("result", copy.operands, "result directories, JSON reports or archives");
  if ((command & (kPlan | kRunShard | kMerge | kSlurm)) != 0) sub->add_option("plan", copy.operands, "a plan, then what belongs to it");
}

// To CLI11 a word "++" ends a command, unless an option takes it for its value. Empty: there is none.
std::string WhyNotPluses(const std::vector<std::string>& words) {
  const auto pluses = std::find(words.begin(), words.end(), "++");
  if (pluses == words.end()) return {};
  const OptionRow* const row = pluses == words.begin() ? nullptr : RowOfFlag(*(pluses - 1));
  if (row == nullptr || row->sort == OptionRow::Sort::Switch) return "not expected: ++";
  return std::string(row->flag) + ": expected a value, not '++'";
}

Result<Options> Parser::Parse(std::span<const std::string> arguments) {
  Options options;
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> ours(arguments.begin(), dashes);
  // An empty variable of a CI job leads here. CLI11 would take the next argument for the value behind '=', and an empty word for none.
  const auto is_switch = [](const std::string& flag) {
    const OptionRow* const row = RowOfFlag(flag);
    return row != nullptr && row->sort == OptionRow::Sort::Switch;
  };
  const auto is_wrong = [&](const std::string& word) {
    if (word.empty()) return &word != &ours.front() && (&word)[-1].starts_with("--") && (&word)[-1] != "--fault";
    const std::size_t equals = word.find('=');
    return word.starts_with("--") && equals != std::string::npos && (equals + 1 == word.size() || is_switch(word.substr(0, equals)));
  };
  if (const auto wrong = std::find_if(ours.begin(), ours.end(), is_wrong); wrong != ours.end()) {
    const std::size_t equals = wrong->find('=');
    const std::string flag = wrong->empty() ? *(wrong - 1) : wrong->substr(0, equals);
    const std::string value = wrong->empty() ? "" : wrong->substr(equals + 1);
    if (is_switch(flag)) return Status(Exit::Usage, flag + ": takes no value, not '" + value + "'");
    return Status(Exit::Usage, wrong->empty() ? flag + ": expected a value, not ''" : *wrong + ": expected a value behind '='");
  }
  const bool configured = std::any_of(ours.begin(), ours.end(), [](const std::string& word) { return word.starts_with("--config"); });
  for (std::size_t i = 0; i < std::size(kCommands); ++i) {
    if (configured || std::find(ours.begin(), ours.end(), kCommands[i].name) != ours.end()) AddOptionsOf(i);
  }
  if (const std::string why = WhyNotPluses(ours); !why.empty()) return Status(Exit::Usage, why);
  std::reverse(ours.begin(), ours.end());  // as CLI11 takes them
  if (dashes != arguments.end()) options.program.assign(dashes + 1, arguments.end());
  std::fill(copies.begin(), copies.end(), Options());
  try {
    app.parse(std::move(ours));
  } catch (const CLI::CallForHelp&) {
    options.done = true;
    options.message = app.help();
    return options;
  } catch (const CLI::CallForVersion& version) {
    options.done = true;
    options.message = std::string(version.what()) + "\n";
    return options;
  } catch (const CLI::ExtrasError& error) {
    return Status(Exit::Usage, InOurWords(error) + " (a program and its arguments stand behind --)");
  } catch (const CLI::ParseError& error) {
    if (app.get_subcommands().empty()) {
      const std::vector<std::string> rest = app.remaining();
      const std::string word = rest.empty() ? "" : rest.front().starts_with('-') ? rest.back() : rest.front();
      const std::string instead = rest.empty() || word.starts_with('-') ? "" : ", not '" + word + "'";
      return Status(Exit::Usage, "expected a command: " + words::NamesInWords(kCommands) + instead);
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
      return Status(Exit::Usage, "list: expected a table: " + CLI::detail::join(kListNames, ", "));
    return Status(Exit::Usage, InOurWords(error));
  }
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (!commands[i]->parsed()) continue;
    std::vector<std::string> program = std::move(options.program);
    options = std::move(copies[i]);
    options.program = std::move(program);
    options.command = kCommands[i].command;
    NoteGiven(*commands[i], &options);
    if ((options.command & (kAuditCases | kMerge)) != 0 && options.base.empty() && commands[i]->count("--fail-on") != 0)
      return Status(Exit::Usage, OptionFlag{"--fail-on"}, "expected --base beside it: what it names is said of a comparison");
  }
  Status usable = CheckOptions(options);
  if (usable.ok()) usable = ReadOutputs(&options);
  return usable.ok() ? Result<Options>(std::move(options)) : usable;
}

// Options in a variable of the environment, whose name the parser has.
Status ParseVariable(const std::string& text, Command command, Options* options, CLI::App* app) {
  app->set_help_flag();
  AddOptions(app, command, options);
  const std::string why = WhyNotPluses(CLI::detail::split_up(text));
  if (!why.empty()) return {Exit::Usage, app->get_name() + ": " + why};
  try {
    app->parse(text, false);
  } catch (const CLI::ParseError& error) {
    return {Exit::Usage, app->get_name() + ": " + InOurWords(error)};
  }
  return {};
}

Status ParseText(const std::string& text, Options* options) {
  const Status wrong(Exit::Usage, "CUAUDIT_SWEEP: expected each quote to be closed");
  for (const char quote : {'\'', '"'}) {
    if (std::count(text.begin(), text.end(), quote) % 2 != 0) return wrong;
  }
  CLI::App app("", "CUAUDIT_SWEEP");
  const bool no_prune = std::exchange(options->no_prune, false);
  Status parsed = ParseVariable(text, kLifecycle, options, &app);
  if (!parsed.ok()) return parsed;
  if (app.count("--prune") != 0 && options->no_prune) return {Exit::Usage, "CUAUDIT_SWEEP: expected --prune or --no-prune, not both"};
  if (app.count("--prune") == 0) options->no_prune = options->no_prune || no_prune;
  return {};
}

}  // namespace

Result<Options> ParseOptions(std::span<const std::string> arguments) {
  static Parser parser;
  return parser.Parse(arguments);
}

Status ParseLifecycleOptions(const std::string& text, Options* options) {
  options->command = kLifecycle;
  // Parsing is skipped for an empty text: blocks that the parser frees would stay in the C library's caches and hide heap bytes that a
  // lifecycle then takes from them.
  Status parsed = text.empty() ? Status() : ParseText(text, options);
  if (!parsed.ok()) return parsed;
  options->outputs.clear();
  for (const std::string& one : options->format) {
    Status added = AddOutput(one, options);
    if (!added.ok()) return added;
  }
  return {};
}

Result<Options> ParseAuditVariable() {
  Options options;
  options.command = kInit;  // has the options of a case and few others
  const char* const text = std::getenv(kAuditVariable);
  if (text == nullptr || *text == '\0') return options;
  CLI::App app("", kAuditVariable);
  Status parsed = ParseVariable(text, static_cast<Command>(kCase), &options, &app);
  if (!parsed.ok()) return parsed;
  NoteGiven(app, &options);
  return options;
}

std::span<const CommandRow> Commands() { return kCommands; }

std::string_view CommandName(Command command) { return RowOf(command).name; }

std::string_view ToolVersion() { return CUAUDIT_VERSION; }

}  // namespace cuaudit::harness
