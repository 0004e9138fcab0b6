// SPDX-License-Identifier: MIT
// Asks every question of a driver and prints name<TAB>answer, or compares the answers with what is expected.
//   cuaudit_contract [--driver sim|real] [--library PATH] [--check] [--expect FILE] [--ask NAME]
// Exit: 0 as expected, 1 differences, 2 usage, 3 no driver.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "faults/driver/genuine_driver.h"
#include "faults/sim/world.h"
#include "suites/contract/question.h"

extern char** environ;

namespace cuaudit::contract {
namespace {

struct Options {
  bool real = false;
  bool check = false;
  std::string library = "libcuda.so.1";
  std::string expect;
  std::string ask;
};

std::vector<Question> AllQuestions() {
  std::vector<Question> all;
  for (const auto& part :
       {DeviceQuestions(), ContextQuestions(), StreamQuestions(), EventQuestions(), MemoryQuestions(), PoolQuestions(), ArrayQuestions(),
        ModuleQuestions(), GraphQuestions(), UserObjectQuestions(), CaptureQuestions(), VirtualMemoryQuestions()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::string AskSimulated(const Question& question) {
  sim::World* const world = sim::CreateWorld({.device_bytes = std::uint64_t{1} << 30});
  if (world == nullptr) return "no world";
  Asker asker(sim::Driver(world));
  question.ask(asker);
  sim::DestroyWorld(world);
  return asker.answer();
}

// The same program, asked one question: a crash is an answer too.
std::string AskChild(const Options& options, const Question& question) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::string words[] = {"cuaudit_contract", "--driver", "real", "--library", options.library, "--ask", question.name};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                       words[4].data(), words[5].data(), words[6].data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string answer;
  char buffer[256];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) answer.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  if (failed != 0) return "no process";
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return "crash";
  const std::size_t tab = answer.find('\t');
  const std::size_t end = answer.find('\n');
  return tab == std::string::npos || end == std::string::npos ? "exit:" + std::to_string(WEXITSTATUS(status))
                                                              : answer.substr(tab + 1, end - tab - 1);
}

bool ReadExpected(const std::string& path, std::map<std::string, std::string>* expected) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.find('\t');
    if (line.empty() || line[0] == '#') continue;
    if (tab == std::string::npos) return false;
    (*expected)[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return file.eof() && !expected->empty();
}

bool Parse(int count, char** words, Options* options) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--check") {
      options->check = true;
      continue;
    }
    if (i + 1 == count) return false;
    const std::string value = words[++i];
    if (word == "--driver" && (value == "sim" || value == "real")) {
      options->real = value == "real";
    } else if (word == "--library") {
      options->library = value;
    } else if (word == "--expect") {
      options->expect = value;
    } else if (word == "--ask") {
      options->ask = value;
    } else {
      return false;
    }
  }
  return true;
}

int Run(const Options& options) {
  const std::vector<Question> questions = AllQuestions();
  std::map<std::string, std::string> expected;
  if (options.check) {
    for (const Question& question : questions) expected[question.name] = question.expected;
  }
  if (!options.expect.empty() && !ReadExpected(options.expect, &expected)) {
    std::fprintf(stderr, "cuaudit_contract: %s: expected lines of name<TAB>answer\n", options.expect.c_str());
    return 2;
  }
  static driver::GenuineDriver genuine;
  if (options.real) {
    const char* const trouble = driver::OpenGenuineDriver(options.library.c_str(), &genuine);
    if (trouble != nullptr) {
      std::fprintf(stderr, "cuaudit_contract: %s: %s\n", options.library.c_str(), trouble);
      return 3;
    }
  }
  int differences = 0;
  std::size_t asked = 0;
  for (const Question& question : questions) {
    if (!options.ask.empty() && options.ask != question.name) continue;
    ++asked;
    std::string answer;
    if (!options.real) {
      answer = AskSimulated(question);
    } else if (options.ask.empty() && question.manner != Manner::Plain) {
      answer = AskChild(options, question);
    } else {
      Asker asker(driver::Driver(&genuine));
      question.ask(asker);
      answer = asker.answer();
    }
    const auto known = expected.find(question.name);
    if (expected.empty()) {
      std::printf("%s\t%s\n", question.name, answer.c_str());
      std::fflush(stdout);
    } else if (known == expected.end() || known->second != answer) {
      ++differences;
      std::printf("%s\n  expected %s\n  answered %s\n", question.name, known == expected.end() ? "(nothing)" : known->second.c_str(),
                  answer.c_str());
    }
  }
  if (!expected.empty()) std::printf("%zu questions, %d differences\n", asked, differences);
  return asked == 0 ? 2 : (differences == 0 ? 0 : 1);
}

}  // namespace
}  // namespace cuaudit::contract

int main(int count, char** words) {
  cuaudit::contract::Options options;
  if (!cuaudit::contract::Parse(count, words, &options)) {
    std::fprintf(stderr, "usage: cuaudit_contract [--driver sim|real] [--library PATH] [--check] [--expect FILE] [--ask NAME]\n");
    return 2;
  }
  return cuaudit::contract::Run(options);
}
