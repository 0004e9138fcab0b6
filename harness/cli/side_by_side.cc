// SPDX-License-Identifier: MIT
#include "harness/cli/side_by_side.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <map>
#include <utility>

#include "harness/process/files.h"
#include "harness/process/left_behind.h"
#include "harness/process/process.h"
#include "reports/words/words.h"

namespace cuaudit::harness {
namespace {

// Between fork and the end of the process. Nothing of the command's own may run there: no destructor, no exit handler, no buffer of stdio.
[[noreturn]] void WorkAndEnd(const SideBySide& how, std::size_t number, int answer, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  Orphans::OfThisProcess().BeginAnew();
  bool whole = false;
  try {
    whole = WriteAll(answer, how.carry_out(number), "the answer").ok();
  } catch (const std::exception&) {  // out of memory
  }
  _exit(whole ? 0 : 1);
}

// Takes the answer of one piece; what `take` says stands on lines of its own.
Status Take(const SideBySide& how, std::size_t number, std::size_t count, std::string answer) {
  if (how.progress != nullptr) how.progress->Clear();
  Status taken = how.take(number, std::move(answer));
  if (how.progress != nullptr && taken.ok() && number + 1 < count) how.progress->Show(number + 1, count);
  return taken;
}

class Workers {
 public:
  Workers(std::size_t count, const SideBySide& how) : count_(count), how_(how) {}

  Status Run(int* signal) {
    Status status;
    while (status.ok() && taken_ < count_) {
      while (status.ok() && HasRoom()) status = Start(next_);
      if (status.ok()) status = TakeOne();
    }
    *signal = pool_.interrupted();
    if (!status.ok()) EndAll();
    return status;
  }

 private:
  struct Worker {
    pid_t pid = 0;
    FileDescriptor answer;  // a file in memory
    std::uint64_t bytes = 0;
  };

  std::uint64_t BytesOf(std::size_t number) const { return how_.bytes ? how_.bytes(number) : 0; }

  bool HasRoom() const {
    if (next_ == count_ || under_way_.size() >= how_.at_a_time) return false;
    std::uint64_t bytes = BytesOf(next_);
    for (const auto& [number, worker] : under_way_) bytes += worker.bytes;
    return under_way_.empty() || bytes <= how_.memory;
  }

  Status Start(std::size_t number) {
    Worker worker;
    worker.bytes = BytesOf(number);
    worker.answer = FileDescriptor(memfd_create("cuaudit-answer", MFD_CLOEXEC));
    if (!worker.answer.valid()) return {Exit::Failure, "cannot make a file in memory: " + SystemWords(errno)};
    const pid_t parent = getpid();
    worker.pid = fork();
    if (worker.pid < 0) return {Exit::Failure, "cannot start a process: " + SystemWords(errno)};
    if (worker.pid == 0) WorkAndEnd(how_, number, worker.answer.get(), parent);
    setpgid(worker.pid, worker.pid);
    Status adopted = pool_.Adopt(number, worker.pid, 0, {});
    if (!adopted.ok()) return adopted;
    under_way_.emplace(number, std::move(worker));
    ++next_;
    return {};
  }

  // Waits for one of those under way and takes all whose turn it is.
  Status TakeOne() {
    const Result<ProcessPool::Ended> ended = pool_.WaitAny();
    if (!ended.ok()) return ended.status();
    const auto worker = under_way_.find(ended->tag);
    if (ended->ending.signal != 0 || ended->ending.exit_status != 0) {
      const std::string in_front = how_.name ? how_.name(ended->tag) + ": " : "";
      return {Exit::Failure, in_front + "a process of cuaudit itself ended before it was done: " + How(ended->ending)};
    }
    std::string answer;
    const Status read = ReadAnswer(worker->second.answer, &answer);
    if (!read.ok()) return read;
    under_way_.erase(worker);
    done_.emplace(ended->tag, std::move(answer));
    for (auto first = done_.begin(); first != done_.end() && first->first == taken_; first = done_.erase(first), ++taken_) {
      Status status = Take(how_, first->first, count_, std::move(first->second));
      if (!status.ok()) return status;
    }
    return {};
  }

  static std::string How(const Ending& ending) {
    if (ending.signal == 0) return "exit status " + std::to_string(ending.exit_status);
    return words::SignalName(ending.signal) + (ending.signal == SIGKILL ? ": fewer --jobs need less memory" : "");
  }

  static Status ReadAnswer(const FileDescriptor& file, std::string* answer) {
    char part[1 << 16];
    ssize_t got = 0;
    while ((got = pread(file.get(), part, sizeof(part), static_cast<off_t>(answer->size()))) > 0) {
      answer->append(part, static_cast<std::size_t>(got));
    }
    return got == 0 ? Status() : Status(Exit::Failure, "cannot read an answer: " + SystemWords(errno));
  }

  // Each ends what it has started and removes its files.
  void EndAll() {
    for (const auto& [number, worker] : under_way_) kill(worker.pid, SIGTERM);
    while (pool_.size() != 0) {
      if (!pool_.WaitAny().ok()) break;  // a second signal: the pool kills what is left
    }
  }

  const std::size_t count_;
  const SideBySide& how_;
  std::size_t next_ = 0;   // the first that was not started
  std::size_t taken_ = 0;  // how many answers were taken
  ProcessPool pool_;
  std::map<std::size_t, Worker> under_way_;
  std::map<std::size_t, std::string> done_;  // answers whose turn it is not yet
};

}  // namespace

Status CarryOutSideBySide(std::size_t count, const SideBySide& how, int* signal) {
  *signal = 0;
  if (how.progress != nullptr && count > 1) {
    how.progress->Begin("cases");
    how.progress->Show(0, count);
  }
  Status done;
  if (how.at_a_time > 1 && count > 1) {
    done = Workers(count, how).Run(signal);
  } else {
    for (std::size_t number = 0; number < count && done.ok(); ++number) done = Take(how, number, count, how.carry_out(number));
  }
  if (how.progress != nullptr) how.progress->Clear();
  return done;
}

std::size_t UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? static_cast<std::size_t>(CPU_COUNT(&cores)) : 1;
}

}  // namespace cuaudit::harness
