// SPDX-License-Identifier: MIT
// Asks every question of a driver and prints name<TAB>answer, or compares the answers with what is expected.
//   cuaudit_contract [--driver sim|gate|dropin|real] [--library PATH] [--check] [--expect FILE]... [--ask NAME] [--devices N] [--jobs N]
//   [--match WORD,...] [--handles] [--partner ROLE] [--undefined error|crash]
//   --match    asks only the questions whose names begin with one of the words
//   --handles  asks nothing of a driver: names entry points that are handed an object and that none.* or elsewhere.* questions miss
//   --partner  answers as the second process of a question: see partner.h
//   --devices  how many devices sim has, 1 unless said
//   --undefined  what sim and gate do where the genuine driver dies, error unless said; dropin is told by CUAUDIT_OPTIONS as well
//   --jobs     how many of the questions that get a process of their own are asked at a time, 1 unless said
//   --check    compares with the answers beside the questions     --expect   with recorded ones; of several files the first one that
//              has the question
//   dropin     the drop-in library at PATH, with the simulated driver behind it
// For all but real the accepted differences of differences.def apply; with --undefined crash the rows Crashes do not.
// Exit: 0 as expected, 1 differences, 2 usage, 3 no driver.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "faults/driver/genuine_driver.h"
#include "suites/contract/ask.h"
#include "suites/contract/comparison.h"
#include "suites/contract/partner.h"
#include "suites/contract/question.h"

namespace cuaudit::contract {
namespace {

struct Options {
  std::string driver = "sim";
  int devices = 1;
  int jobs = 1;
  sim::OnUndefined undefined = sim::OnUndefined::Error;
  bool check = false;
  bool handles = false;
  std::string library = "libcuda.so.1";
  std::vector<std::string> expect;
  std::string ask;
  std::vector<std::string> match;  // empty: all
  std::string partner;
};

bool Parse(int count, char** words, Options* options) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--check" || word == "--handles") {
      (word == "--check" ? options->check : options->handles) = true;
      continue;
    }
    if (i + 1 == count) return false;
    const std::string value = words[++i];
    if (word == "--driver" && (value == "sim" || value == "gate" || value == "dropin" || value == "real")) {
      options->driver = value;
    } else if (word == "--library") {
      options->library = value;
    } else if (word == "--expect") {
      options->expect.push_back(value);
    } else if (word == "--ask") {
      options->ask = value;
    } else if (word == "--match" && !value.empty()) {
      for (std::size_t from = 0; from <= value.size();) {
        const std::size_t comma = std::min(value.find(',', from), value.size());
        options->match.push_back(value.substr(from, comma - from));
        from = comma + 1;
      }
    } else if (word == "--devices" && value.size() == 1 && value[0] >= '1' && value[0] <= '8') {
      options->devices = value[0] - '0';
    } else if (word == "--jobs" && !value.empty() && value.size() <= 2 && value[0] != '0' &&
               value.find_first_not_of("0123456789") == std::string::npos) {
      options->jobs = std::stoi(value);
    } else if (word == "--undefined" && (value == "error" || value == "crash")) {
      options->undefined = value == "crash" ? sim::OnUndefined::Crash : sim::OnUndefined::Error;
    } else if (word == "--partner") {
      options->partner = value;
    } else {
      return false;
    }
  }
  return true;
}

bool IsLibrary(const Options& options) { return options.driver == "real" || options.driver == "dropin"; }

bool MayDie(const Options& options) { return IsLibrary(options) || options.undefined == sim::OnUndefined::Crash; }

bool IsMatched(const std::string& name, const Options& options) {
  return options.match.empty() ||
         std::any_of(options.match.begin(), options.match.end(), [&](const std::string& word) { return name.starts_with(word); });
}

// A world within this process does not end with it.
bool IsAsked(const Question& question, const Options& options) {
  return (question.manner != Manner::Exits || IsLibrary(options)) && IsMatched(question.name, options);
}

bool OpenDriver(const Options& options, driver::GenuineDriver* genuine) {
  if (!IsLibrary(options)) return true;
  const char* const trouble = driver::OpenGenuineDriver(options.library.c_str(), genuine);
  if (trouble != nullptr) std::fprintf(stderr, "cuaudit_contract: %s: %s\n", options.library.c_str(), trouble);
  return trouble == nullptr;
}

std::string Ask(const Options& options, const Question& question, driver::GenuineDriver* genuine) {
  if (options.driver == "sim") return AskSimulated(question, options.undefined, options.devices);
  return options.driver == "gate" ? AskGated(question, options.undefined) : Answer(question, driver::Driver(genuine));
}

int AnswerPartner(const Options& options) {
  static driver::GenuineDriver genuine;
  const std::vector<Question> question = FindPartnerQuestion(options.partner);
  if (question.empty()) return 2;
  if (!OpenDriver(options, &genuine)) return 3;
  PartnerAnswer(Ask(options, question.front(), &genuine));
  return 0;
}

void Say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// The answers of the questions that get a process of their own, in the order of `questions`; printed as they come when `print`.
std::vector<std::string> AskChildren(const std::vector<const Question*>& questions, const Options& options, bool print) {
  std::vector<std::string> answers(questions.size());
  std::atomic<std::size_t> next{0};
  std::mutex printing;
  const auto ask = [&] {
    for (std::size_t i = next++; i < questions.size(); i = next++) {
      answers[i] = AskChild(*questions[i], options.driver, options.library, options.undefined);
      const std::lock_guard<std::mutex> lock(printing);
      if (print) Say(questions[i]->name + '\t' + answers[i] + '\n');
    }
  };
  std::vector<std::thread> threads(std::min(questions.size(), static_cast<std::size_t>(options.jobs)));
  for (std::thread& thread : threads) thread = std::thread(ask);
  for (std::thread& thread : threads) thread.join();
  return answers;
}

// Prints every answer of this process word by word when `print`: a driver that dies or hangs is caught at its call.
bool AskAll(const std::vector<Question>& questions, const Options& options, bool print, Answers* answers) {
  static driver::GenuineDriver genuine;
  if (!OpenDriver(options, &genuine)) return false;
  std::vector<const Question*> apart;
  for (const Question& question : questions) {
    if (options.ask.empty() && question.manner != Manner::Plain && MayDie(options) && IsAsked(question, options))
      apart.push_back(&question);
  }
  // First, while this process has no context.
  const std::vector<std::string> told = AskChildren(apart, options, print);
  auto next = told.begin();
  for (const Question& question : questions) {
    if (!IsAsked(question, options)) continue;
    const bool is_apart = options.ask.empty() && question.manner != Manner::Plain && MayDie(options);
    const bool is_told_by_words = print && !is_apart;
    if (is_told_by_words) {
      Say(question.name + '\t');
      SayWordsTo(stdout);
    }
    const std::string answer = is_apart ? *next++ : Ask(options, question, &genuine);
    if (is_told_by_words) Say("\n");
    (*answers)[question.name] = answer;
  }
  return true;
}

std::size_t Report(const char* reference, const std::vector<Question>& questions, const Answers& answers, Answers expected,
                   const Options& options) {
  std::vector<Difference> accepted;
  if (options.driver != "real") accepted = AcceptedDifferences(options.undefined == sim::OnUndefined::Crash);
  for (const Question& question : questions) {
    if (IsAsked(question, options)) continue;
    expected.erase(question.name);
    std::erase_if(accepted, [&](const Difference& row) { return std::string(row.question) == question.name; });
  }
  const std::vector<std::string> broken = Compare(answers, expected, accepted, options.ask.empty());
  std::size_t compared = 0, alike = 0;
  for (const auto& [question, answer] : answers) {
    const auto known = expected.find(question);
    compared += known != expected.end() ? 1U : 0U;
    alike += known != expected.end() && known->second == answer ? 1U : 0U;
  }
  for (const std::string& line : broken) std::printf("%s\n", line.c_str());
  std::printf("%s: %zu questions, %zu compared, %zu alike, %zu broken\n", reference, answers.size(), compared, alike, broken.size());
  return broken.size();
}

int Run(const Options& options) {
  std::signal(SIGSEGV, SIG_DFL);  // where a sanitizer has a handler, a crash would be no crash
  SetPartnerDriver(options.driver, options.library);
  if (!options.partner.empty()) return AnswerPartner(options);
  if (options.handles) {
    const std::vector<std::string> lines = HandlesWithoutQuestion();
    for (const std::string& line : lines) std::printf("%s\n", line.c_str());
    return lines.empty() ? 0 : 1;
  }
  Answers recorded;
  for (const std::string& path : options.expect) {
    std::optional<Answers> read = ReadAnswers(path);
    if (!read.has_value()) {
      std::fprintf(stderr, "cuaudit_contract: %s: expected lines of name<TAB>answer, each name once\n", path.c_str());
      return 2;
    }
    recorded.merge(*read);
  }
  const std::vector<Question> questions = ListQuestions(options.ask);
  Answers answers;
  if (!AskAll(questions, options, !options.check && options.expect.empty(), &answers)) return 3;
  if (answers.empty()) {
    std::fprintf(stderr, "cuaudit_contract: %s: expected the name of a question\n", options.ask.c_str());
    return 2;
  }
  std::size_t broken = 0;
  if (options.check) {
    Answers expected;
    for (const Question& question : questions) expected[question.name] = question.expected;
    broken += Report("expected", questions, answers, expected, options);
  }
  if (!recorded.empty()) broken += Report("recorded", questions, answers, recorded, options);
  return broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace cuaudit::contract

int main(int count, char** words) {
  cuaudit::contract::Options options;
  if (!cuaudit::contract::Parse(count, words, &options)) {
    std::fprintf(stderr,
                 "usage: cuaudit_contract [--driver sim|gate|dropin|real] [--library PATH] [--check] [--expect FILE]... [--ask NAME] "
                 "[--devices N] [--jobs N] [--match WORD,...] [--handles] [--undefined error|crash]\n");
    return 2;
  }
  return cuaudit::contract::Run(options);
}
