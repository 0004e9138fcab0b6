// SPDX-License-Identifier: MIT
#include "harness/kit/issue_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "faults/journal/recording.h"
#include "harness/kit/parameters.h"
#include "harness/kit/reducer_text.h"
#include "harness/process/shell.h"
#include "reports/defect_words.h"
#include "reports/escape.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kMostFrames = 12;
constexpr std::size_t kMostCode = 160;

std::string Code(const std::string& text) { return report::MarkdownCode(text, kMostCode); }

std::string Plain(std::string text) {
  constexpr std::size_t kMost = 300;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return report::ForMarkdown(text);
}

// "pair_open  blame.c:42  (libnorth.so)", or "libnorth.so+0x1234" where the function has no name.
std::string FrameText(const report::Frame& frame) {
  const std::string module = std::filesystem::path(frame.module).filename().string();
  if (frame.function.empty() && !module.empty()) return CommentText(fmt::format("{}+{:#x}", module, frame.offset));
  std::string text = frame.function.empty() ? "?" : frame.function;
  if (!frame.file.empty()) text += "  " + std::filesystem::path(frame.file).filename().string() + ":" + std::to_string(frame.line);
  return CommentText(text + "  (" + module + ")");
}

void AddStack(const std::string& what, const std::string& call, const std::vector<report::Frame>& stack, std::string* text) {
  if (call.empty() && stack.empty()) return;
  *text += what + " " + Code(call) + ":\n\n";
  std::string lines;
  for (std::size_t i = 0; i < std::min(stack.size(), kMostFrames); ++i) lines += FrameText(stack[i]) + "\n";
  if (stack.size() > kMostFrames) lines += "...\n";
  *text += report::MarkdownFence(lines.empty() ? "unknown\n" : lines, "") + "\n";
}

std::string ProgramName(const report::Run& run) {
  return run.command.empty() ? std::string("the program") : std::filesystem::path(run.command.front()).filename().string();
}

bool Has(const CallList& list, const std::function<bool(const Step&)>& has) {
  return std::any_of(list.stages.begin(), list.stages.end(), [&](const Stage& stage) {
    return std::any_of(stage.steps.begin(), stage.steps.end(), has) || std::any_of(stage.rest.begin(), stage.rest.end(), has) ||
           (stage.failing && has(stage.failing->step));
  });
}

bool Stands(const CallList& list, CallValue::Is is) {
  return Has(list, [&](const Step& step) {
    return std::any_of(step.values.begin(), step.values.end(), [&](const CallValue& value) { return value.is == is; });
  });
}

// A call that is given data of the program.
bool HasData(const Step& step) {
  for (std::size_t i = 0; i < step.values.size(); ++i) {
    if (faults::IsData(driver::BaseOf(step.call), i)) return true;
  }
  return false;
}

std::string Calls(std::size_t count) { return std::to_string(count) + (count == 1 ? " call" : " calls"); }

}  // namespace

KitCommand CommandOf(const WantedDefect& defect, const CallList& list, const std::vector<std::string>& options) {
  KitCommand command;
  command.options = {"--driver=sim"};
  command.options.insert(command.options.end(), options.begin(), options.end());
  if (list.has_faults()) {
    command.command = "replay";
    for (const std::string& fault : FaultsOf(list)) {
      command.options.emplace_back("--fault");
      command.options.push_back(fault);
    }
  } else if (defect.root.rule == Rule::Growth) {
    command.command = "cycles";
    command.arguments = {"{n}"};
  } else {
    command.command = "run";
    command.arguments = {"1"};
  }
  return command;
}

std::string TitleOf(const WantedDefect& defect) {
  const std::string blame = report::BlameOf(defect.run, defect.defect);
  return InWords(defect, defect.wanted) + (blame.empty() ? "" : ": " + blame);
}

std::vector<std::string> HeadingOf(const WantedDefect& defect, const CallList& list) {
  std::vector<std::string> lines = {"reducer.c: " + TitleOf(defect),
                                    Words({Detail::MadeFromCalls, {defect.run.tool_version, ProgramName(defect.run)}})};
  if (list.has_faults()) {
    for (const std::string& fault : FaultsOf(list)) lines.push_back("Fails: " + fault);
  }
  lines.push_back(Words({Detail::NamesOfPlaces}));
  lines.push_back(Words({Detail::HowToBuild, {defect.defect.fingerprint}}));
  return lines;
}

std::string IssueText(const WantedDefect& defect, const Reduction& reduction, const KitCommand& command, const KitCheck& check) {
  const report::Finding& root = defect.root;
  std::string text = "# " + Plain(TitleOf(defect)) + "\n\n";
  text += Words({Detail::FoundBy,
                 {Plain(defect.run.tool_version), Code(ProgramName(defect.run)),
                  defect.run.driver.kind == report::DriverKind::Genuine ? "driver " : "simulated driver, ",
                  Plain(defect.run.driver.version), Code(defect.defect.fingerprint)}}) +
          "\n\n";
  text += "## Expected\n\n" + Words({defect.faults.empty() ? Detail::ExpectedRelease : Detail::ExpectedUnwinding}) + "\n\n";
  text += "## Observed\n\n";
  const std::vector<std::string> of_reducer = FaultsOf(reduction.list);
  for (std::size_t i = 0; i < defect.faults.size(); ++i) {
    Details fails = {{Detail::FailsInProgram, {Code(defect.faults[i])}}};
    if (i < of_reducer.size()) fails.push_back({Detail::FailsInReducer, {Code(of_reducer[i])}});
    text += "- " + Words(fails) + "\n";
  }
  for (const Wrong& one : defect.wanted) {
    text += "- " + Code(std::string(words::Name(RuleInReport(defect, one)))) + ": " + std::to_string(one.count) +
            (one.kind == driver::Kind::None ? "" : " " + Code(std::string(driver::Name(one.kind)))) + "\n";
  }
  const std::string blame = report::BlameOf(defect.run, defect.defect);
  if (!blame.empty()) text += "- " + Plain(blame) + "\n";
  if (defect.defect.trials > 1) {
    const std::string amount = report::AmountOf(defect.run, defect.defect);
    const std::string most = Plain(amount.empty() ? InWords(defect, defect.wanted) : amount);
    text += "- " + Words({Detail::OneOfTrials, {std::to_string(defect.defect.trials), most}}) + "\n";
  }
  text += "\n## Where\n\n";
  AddStack("Acquired by", root.acquired.call, root.acquired.stack, &text);
  AddStack("Seen at", root.where, root.where_stack, &text);
  if (root.fault) AddStack("Fails:", root.fault->call, root.fault->stack, &text);
  for (const report::Fault& fault : root.then) AddStack("Then fails:", fault.call, fault.stack, &text);
  const bool puts_back = root.rule == Rule::SettingNotRestored;
  AddStack(puts_back ? "Put back, when nothing fails, by" : "Released, when nothing fails, by", defect.defect.released.call,
           defect.defect.released.stack, &text);
  text += "## Run it\n\n";
  text += report::MarkdownFence("CUDA_HOME=/usr/local/cuda sh run.sh\n", "sh");
  text += "\n" + Words({Detail::WhatRunDoes, {command.command}}) + "\n\n";
  const std::vector<std::string> sizes = {Calls(reduction.before), Calls(CountCalls(reduction.list)), std::to_string(reduction.looks)};
  text += "## Size\n\n" + Words({Detail::SizeOfReducer, sizes}) + "\n\n";
  text += "## Checked\n\n";
  text += Words({check.same ? Detail::SameInReducer : Detail::NotConfirmed, {Plain(check.missing)}}) + "\n";
  Details notes;
  for (const std::string& one : defect.left_out) notes.push_back({Detail::NotInReducer, {Plain(one)}});
  for (const std::string& one : reduction.unlike) notes.push_back({Detail::FailsOnlyThere, {Code(one)}});
  if (Stands(reduction.list, CallValue::Is::Structure)) notes.push_back({Detail::OwnStructures});
  if (Stands(reduction.list, CallValue::Is::Image)) notes.push_back({Detail::OwnKernel});
  if (Has(reduction.list, HasData)) notes.push_back({Detail::NoData});
  if (Has(reduction.list, [](const Step& step) { return WaitsForValue(driver::BaseOf(step.call)); })) notes.push_back({Detail::OtherWait});
  if (!notes.empty()) text += "\n";
  for (const words::DetailPart& note : notes) text += "- " + Words(note) + "\n";
  return text;
}

std::string RunScript(const KitCommand& command) {
  std::string line = command.command;
  for (const std::string& option : command.options) line += " " + ShellQuote(option);
  line += " -- ./reducer";
  for (const std::string& argument : command.arguments) line += " " + ShellQuote(argument);
  return "#!/bin/sh\n"
         "# Compiles reducer.c and audits it on the simulated driver. Exit status 1: the defect shows.\n"
         "#   CUDA_HOME   the CUDA toolkit, for cuda.h; /usr/local/cuda when it is not set\n"
         "#   CUAUDIT     the tool; cuaudit in PATH when it is not set\n"
         "set -eu\n"
         "cd \"$(dirname \"$0\")\"\n"
         "cuaudit=$(command -v \"${CUAUDIT:-cuaudit}\")\n"
         "libraries=$(dirname \"$cuaudit\")/../lib/cuaudit\n"
         "${CC:-cc} -g reducer.c -o reducer -I\"${CUDA_HOME:-/usr/local/cuda}/include\" -L\"$libraries\" -lcuda\n"
         "exec \"$cuaudit\" " +
         line + "\n";
}

}  // namespace cuaudit::harness
