// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "suites/contract/ask.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "faults/journal/journal_file.h"
#include "faults/shim/gate.h"
#include "faults/sim/world.h"

extern char** environ;

namespace cuaudit::contract {
namespace {

class GateJournal {
 public:
  // Null when there can be none.
  static GateJournal* Only() {
    static GateJournal only;
    return only.open_ ? &only : nullptr;
  }
  faults::Journal journal;
  faults::StackTable stacks;

 private:
  GateJournal() {
    char directory[] = "/tmp/cuaudit-contract-XXXXXX";
    if (mkdtemp(directory) == nullptr) return;
    const std::string path = std::string(directory) + "/journal";
    faults::JournalOptions options = {.record_capacity = std::size_t{1} << 20};
    if (faults::CreateJournal(path.c_str(), options) == nullptr) {
      open_ = journal.Open(path.c_str()) == nullptr;
      unlink(path.c_str());
    }
    rmdir(directory);
    if (open_) stacks.Attach(&journal, false);
  }
  bool open_ = false;
};

}  // namespace

// Also where the answer is told word by word.
static std::string CannotAsk(const char* why) {
  SayWord(why);
  return why;
}

constexpr int kPatienceMs = 30000;  // a first cuInit can take seconds

std::string AskSimulated(const Question& question, sim::OnUndefined undefined, int devices) {
  sim::World* const world = sim::CreateWorld({.device_bytes = std::uint64_t{1} << 30, .device_count = devices, .undefined = undefined});
  if (world == nullptr) return CannotAsk("no world");
  const std::string answer = Answer(question, sim::Driver(world));
  sim::DestroyWorld(world);
  return answer;
}

std::string AskGated(const Question& question, sim::OnUndefined undefined) {
  GateJournal* const books = GateJournal::Only();
  if (books == nullptr) return CannotAsk("no journal");
  sim::World* const world = sim::CreateWorld({.device_bytes = std::uint64_t{1} << 30, .undefined = undefined});
  if (world == nullptr) return CannotAsk("no world");
  const std::uint64_t before = books->journal.header().next_record.load();
  // The pinned scope would hold a reference of its own, and the questions count references.
  const auto gate = std::make_unique<faults::Gate>();
  gate->Arm(sim::Driver(world), &books->journal, &books->stacks, faults::Plan(), faults::Scope::Process);
  const std::string answer = Answer(question, faults::Driver(gate.get()));
  sim::DestroyWorld(world);
  return books->journal.header().next_record.load() == before ? CannotAsk(" no record") : answer;
}

std::string AskChild(const Question& question, const std::string& driver, const std::string& library, sim::OnUndefined undefined) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";  // others are started meanwhile
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::string words[] = {"cuaudit_contract",
                         "--driver",
                         driver,
                         "--library",
                         library,
                         "--undefined",
                         undefined == sim::OnUndefined::Crash ? "crash" : "error",
                         "--ask",
                         question.name};
  char* arguments[std::size(words) + 1] = {};
  std::transform(std::begin(words), std::end(words), arguments, [](std::string& word) { return word.data(); });
  pid_t child = 0;
  const int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string answer;
  char buffer[256];
  bool hangs = false;
  for (ssize_t got = 1; got > 0 && !hangs;) {
    pollfd end{ends[0], POLLIN, 0};
    hangs = poll(&end, 1, kPatienceMs) == 0;
    got = hangs ? 0 : read(ends[0], buffer, sizeof(buffer));
    if (got > 0) answer.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  if (failed != 0) return "no process";
  if (hangs) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  const std::size_t tab = std::min(answer.find('\t'), answer.size());
  const std::size_t end = answer.find('\n');
  std::string told = answer.substr(std::min(tab + 1, answer.size()), end == std::string::npos ? end : end - tab - 1);
  if (hangs || WIFSIGNALED(status)) return told + (told.empty() ? "" : " ") + (hangs ? "hang" : "crash");
  return end == std::string::npos ? "exit:" + std::to_string(WEXITSTATUS(status)) : told;
}

}  // namespace cuaudit::contract
