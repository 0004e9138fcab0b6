// SPDX-License-Identifier: MIT
// Asks every question of the CUDA runtime that the loader found, and prints name<TAB>answer, or compares the answers with recorded ones.
//   cuaudit_cudart_questions [--check] [--expect FILE] [--genuine-driver] [--ask NAME] [--jobs N]
//   --expect FILE      compares with the answers recorded there; --check lets that be all that is printed
//   --genuine-driver   only the accepted differences that are the library's own apply, none of the simulated driver's; undefined questions are not compared
// Which library and which driver is the loader's choice: LD_LIBRARY_PATH.
// Exit: 0 as expected, 1 differences, 2 usage.
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "suites/contract/comparison.h"
#include "suites/cudart/question.h"

namespace cuaudit::cudart {
namespace {

std::string NameOf(cudaError_t result) {
  const std::string_view name = cudaGetErrorName(result);
  for (const std::string_view prefix : {"cudaError", "cuda"}) {
    if (name.starts_with(prefix)) return std::string(name.substr(prefix.size()));
  }
  return "code:" + std::to_string(static_cast<int>(result));
}

}  // namespace

cudaError_t Asker::operator()(cudaError_t result) {
  words_.push_back({"", true, result});
  return result;
}

void Asker::Value(long long value) { words_.push_back({std::to_string(value), false, cudaSuccess}); }
void Asker::Text(const char* text) { words_.push_back({text == nullptr ? "null" : text, false, cudaSuccess}); }

bool Asker::Prepare(cudaError_t result) {
  if (result == cudaSuccess) return true;
  words_.push_back({"prepare:", true, result});
  return false;
}

std::string Asker::Answer() const {
  std::string answer;
  for (const Word& word : words_) {
    if (!answer.empty()) answer += ' ';
    answer += word.text;
    if (word.code) answer += NameOf(word.result);
  }
  return answer;
}

void* Invented() {
  static void* const page = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return static_cast<char*>(page) + 4096;
}

std::vector<Question> AllQuestions() {
  std::vector<Question> all;
  for (const auto& part : {ErrorQuestions(), DeviceQuestions(), PropertyQuestions(), ResetQuestions(), StreamQuestions(), MemoryQuestions(),
                           CopyQuestions(), ArrayQuestions(), PoolQuestions(), GraphQuestions(), NodeQuestions(), CaptureQuestions(),
                           KernelQuestions(), RegisteredQuestions(), SharingQuestions()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

namespace {

// Where cuaudit's runtime answers otherwise than the genuine one, with the reasons: differences of the runtime itself and, unless
// `genuine_driver`, those that come from the simulated driver.
std::vector<contract::Difference> AcceptedDifferences(bool genuine_driver) {
  std::vector<contract::Difference> accepted;
#define CUAUDIT_LIBRARY_DIFFERENCE(question, answer, reason) accepted.push_back({question, answer, reason});
#define CUAUDIT_DRIVER_DIFFERENCE(question, answer, reason) \
  if (!genuine_driver) accepted.push_back({question, answer, reason});
#define CUAUDIT_UNDEFINED_QUESTION(question, reason)
#include "suites/cudart/differences.def"
#undef CUAUDIT_LIBRARY_DIFFERENCE
#undef CUAUDIT_DRIVER_DIFFERENCE
#undef CUAUDIT_UNDEFINED_QUESTION
  static_cast<void>(genuine_driver);
  return accepted;
}

constexpr const char* kUndefined[] = {
#define CUAUDIT_LIBRARY_DIFFERENCE(question, answer, reason)
#define CUAUDIT_DRIVER_DIFFERENCE(question, answer, reason)
#define CUAUDIT_UNDEFINED_QUESTION(question, reason) question,
#include "suites/cudart/differences.def"
#undef CUAUDIT_LIBRARY_DIFFERENCE
#undef CUAUDIT_DRIVER_DIFFERENCE
#undef CUAUDIT_UNDEFINED_QUESTION
};

constexpr int kPatienceMs = 60000;  // a first initialisation can take seconds

struct Options {
  bool check = false;
  bool genuine_driver = false;
  std::string expect;
  std::string ask;
  std::size_t jobs = 1;
};

bool Parse(int count, char** words, Options* options) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--check") {
      options->check = true;
      continue;
    }
    if (word == "--genuine-driver") {
      options->genuine_driver = true;
      continue;
    }
    if (i + 1 == count) return false;
    const std::string value = words[++i];
    if (word == "--expect") {
      options->expect = value;
    } else if (word == "--ask") {
      options->ask = value;
    } else if (word == "--jobs") {
      options->jobs = std::strtoul(value.c_str(), nullptr, 10);
    } else {
      return false;
    }
  }
  return options->jobs > 0 && (!options->check || !options->expect.empty());
}

// A question that is being asked: the process never calls the runtime itself, so that every child starts without one.
struct Asking {
  Question question;
  pid_t child;
  int end;
};

std::optional<Asking> Start(const Question& question) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    Asker asker;
    question.ask(asker);
    const std::string answer = asker.Answer();
    const ssize_t written = write(ends[1], answer.data(), answer.size());
    _exit(written == static_cast<ssize_t>(answer.size()) ? 0 : 1);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return std::nullopt;
  }
  return Asking{question, child, ends[0]};
}

std::string Finish(const Asking& asking) {
  std::string answer;
  char buffer[512];
  bool hangs = false;
  for (ssize_t got = 1; got > 0 && !hangs;) {
    pollfd end{asking.end, POLLIN, 0};
    hangs = poll(&end, 1, kPatienceMs) == 0;
    got = hangs ? 0 : read(asking.end, buffer, sizeof(buffer));
    if (got > 0) answer.append(buffer, static_cast<std::size_t>(got));
  }
  close(asking.end);
  if (hangs) kill(asking.child, SIGKILL);
  int status = 0;
  waitpid(asking.child, &status, 0);
  if (hangs) return "hang";
  if (WIFSIGNALED(status)) return "crash";
  return WEXITSTATUS(status) == 0 ? answer : "exit:" + std::to_string(WEXITSTATUS(status));
}

contract::Answers AskAll(const Options& options, bool print) {
  contract::Answers answers;
  std::deque<Asking> waiting;
  const auto finish_oldest = [&] {
    const Asking oldest = waiting.front();
    waiting.pop_front();
    const std::string answer = Finish(oldest);
    if (print) {
      std::printf("%s\t%s\n", oldest.question.name, answer.c_str());
      std::fflush(stdout);
    }
    answers[oldest.question.name] = answer;
  };
  for (const Question& question : AllQuestions()) {
    if (!options.ask.empty() && options.ask != question.name) continue;
    if (waiting.size() == options.jobs) finish_oldest();
    const std::optional<Asking> asking = Start(question);
    if (asking.has_value()) {
      waiting.push_back(*asking);
    } else {
      answers[question.name] = "no process";
    }
  }
  while (!waiting.empty()) finish_oldest();
  return answers;
}

int Run(const Options& options) {
  std::optional<contract::Answers> recorded;
  if (!options.expect.empty()) {
    recorded = contract::ReadAnswers(options.expect);
    if (!recorded.has_value()) {
      std::fprintf(stderr, "cuaudit_cudart_questions: %s: expected lines of name<TAB>answer, each name once\n", options.expect.c_str());
      return 2;
    }
  }
  const contract::Answers answers = AskAll(options, !options.check);
  if (answers.empty()) {
    std::fprintf(stderr, "cuaudit_cudart_questions: %s: expected the name of a question\n", options.ask.c_str());
    return 2;
  }
  if (!recorded.has_value()) return 0;
  std::size_t undefined = 0;
  for (const char* const question : kUndefined) {
    if (options.genuine_driver && answers.contains(question)) undefined += recorded->erase(question);
  }
  const std::vector<contract::Difference> accepted = AcceptedDifferences(options.genuine_driver);
  const std::vector<std::string> broken = contract::Compare(answers, *recorded, accepted, options.ask.empty());
  std::size_t compared = 0;
  for (const auto& [question, answer] : answers) compared += recorded->contains(question) ? 1U : 0U;
  for (const std::string& line : broken) std::printf("%s\n", line.c_str());
  std::printf("%zu questions, %zu compared, %zu undefined, %zu accepted differences, %zu broken\n", answers.size(), compared, undefined,
              accepted.size(), broken.size());
  return broken.empty() ? 0 : 1;
}

}  // namespace
}  // namespace cuaudit::cudart

int main(int count, char** words) {
  cuaudit::cudart::Options options;
  if (!cuaudit::cudart::Parse(count, words, &options)) {
    std::fprintf(stderr, "usage: cuaudit_cudart_questions [--expect FILE [--check] [--genuine-driver]] [--ask NAME] [--jobs N]\n");
    return 2;
  }
  return cuaudit::cudart::Run(options);
}
