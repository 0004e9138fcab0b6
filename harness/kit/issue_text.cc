// SPDX-License-Identifier: MIT
#include "harness/kit/issue_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "faults/journal/recording.h"
#include "harness/kit/reducer_text.h"
#include "harness/process/shell.h"
#include "reports/defect_words.h"
#include "reports/escape.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kMostFrames = 12;
constexpr std::size_t kMostCode = 160;
constexpr std::string_view kNotConfirmed = "**Not confirmed.**";

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

bool Waits(const Step& step) {
  const driver::BaseId base = driver::BaseOf(step.call);
  return base == driver::BaseId::StreamWaitValue32 || base == driver::BaseId::StreamWaitValue64;
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
  std::vector<std::string> lines = {"reducer.c: " + TitleOf(defect), "Made by cuaudit " + defect.run.tool_version +
                                                                         " from the driver calls of " + ProgramName(defect.run) + "."};
  if (list.has_faults()) {
    for (const std::string& fault : FaultsOf(list)) lines.push_back("Fails: " + fault);
  }
  lines.push_back("The comments name the places in the program that made the calls. Errors of other calls are not looked at.");
  lines.push_back("Build: cc reducer.c -o reducer -lcuda, with -I and -L for the CUDA toolkit; run.sh does it. Defect " +
                  defect.defect.fingerprint);
  return lines;
}

std::string IssueText(const WantedDefect& defect, const Reduction& reduction, const KitCommand& command, const KitCheck& check) {
  const report::Finding& root = defect.root;
  std::string text = "# " + Plain(TitleOf(defect)) + "\n\n";
  text += "Found by cuaudit " + Plain(defect.run.tool_version) + " in " + Code(ProgramName(defect.run)) + ", " +
          (defect.run.driver.kind == report::DriverKind::Genuine ? "driver " : "simulated driver, ") + "CUDA " +
          Plain(defect.run.driver.version) + ". Fingerprint " + Code(defect.defect.fingerprint) + ".\n\n";
  text += "## Expected\n\n";
  if (defect.faults.empty()) text += "Each object that is acquired is released once, and not used afterwards.\n\n";
  else text += "When the call fails, the program gives back what it holds and nothing else: no more is left than without the failure.\n\n";
  text += "## Observed\n\n";
  const std::vector<std::string> of_reducer = FaultsOf(reduction.list);
  for (std::size_t i = 0; i < defect.faults.size(); ++i) {
    text += "- fails: " + Code(defect.faults[i]) + " of the program";
    if (i < of_reducer.size()) text += ", which is " + Code(of_reducer[i]) + " of the reducer";
    text += "\n";
  }
  for (const Wrong& one : defect.wanted) {
    text += "- " + Code(std::string(words::Name(RuleInReport(defect, one)))) + ": " + std::to_string(one.count) + " " +
            Code(std::string(driver::Name(one.kind))) + "\n";
  }
  const std::string blame = report::BlameOf(defect.run, defect.defect);
  if (!blame.empty()) text += "- " + Plain(blame) + "\n";
  if (defect.defect.trials > 1) {
    text += "- " + std::to_string(defect.defect.trials) +
            " trials of the audit show the defect; this is one of them. The most that is wrong in one of them: " +
            Plain(report::AmountOf(defect.run, defect.defect)) + "\n";
  }
  text += "\n## Where\n\n";
  AddStack("Acquired by", root.acquired.call, root.acquired.stack, &text);
  AddStack("Seen at", root.where, root.where_stack, &text);
  if (root.fault) AddStack("Fails:", root.fault->call, root.fault->stack, &text);
  for (const report::Fault& fault : root.then) AddStack("Then fails:", fault.call, fault.stack, &text);
  AddStack("Released, when nothing fails, by", defect.defect.released.call, defect.defect.released.stack, &text);
  text += "## Run it\n\n";
  text += report::MarkdownFence("CUDA_HOME=/usr/local/cuda sh run.sh\n", "sh");
  text += "\nIt compiles [reducer.c](reducer.c) and starts `cuaudit " + command.command +
          "` on the simulated driver: no GPU is needed. Exit status 1 means that the defect shows.\n\n";
  text += "## Size\n\n";
  text += "The recorded trial makes " + Calls(reduction.before) +
          " of the driver, those that follow without the failure included. The reducer makes " + Calls(CountCalls(reduction.list)) + "; " +
          std::to_string(reduction.looks) + " shorter lists of calls were tried.\n\n";
  text += "## Checked\n\n";
  if (check.same)
    text += "Compiled and audited on the simulated driver, the reducer shows the same rules, kinds, failing calls and counts.\n";
  else text += std::string(kNotConfirmed) + " " + Plain(check.missing) + "\n";
  std::vector<std::string> notes;
  for (const std::string& one : defect.left_out) notes.push_back("Not in the reducer: " + Plain(one) + ".");
  for (const std::string& one : reduction.unlike) {
    notes.push_back(Code(one) + " fails in the reducer and did not in the program: the journal does not hold all that it was given.");
  }
  if (Stands(reduction.list, CallValue::Is::Structure))
    notes.emplace_back("Structures have values of cuaudit's own, because a journal does not hold what is in them.");
  if (Stands(reduction.list, CallValue::Is::Image)) notes.emplace_back("One empty kernel stands for the program's modules.");
  if (Has(reduction.list, HasData)) {
    notes.emplace_back("Numbers that the program writes to memory, waits for or gives a kernel are 0 in the reducer: they are its data.");
  }
  if (Has(reduction.list, Waits)) {
    notes.emplace_back("A wait of the reducer ends when the memory has at least 0. The program waits for another value, which may matter.");
  }
  if (!notes.empty()) text += "\n";
  for (const std::string& note : notes) text += "- " + note + "\n";
  return text;
}

bool IsUnconfirmedPage(std::string_view page, std::string_view fingerprint) {
  return page.find(" Fingerprint " + Code(std::string(fingerprint)) + ".\n") != std::string_view::npos &&
         page.find("\n" + std::string(kNotConfirmed) + " ") != std::string_view::npos;
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
