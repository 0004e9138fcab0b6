// SPDX-License-Identifier: MIT
// spawn_bench.cc: what the drop-in adds to the start of a process; Empty is a program that does nothing, the floor of this machine.
#include <benchmark/benchmark.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "faults/journal/journal_file.h"

namespace {

std::string Client() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  const std::string self(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return self.substr(0, self.rfind('/') + 1) + "bench_client";
}

void Spawn(benchmark::State& state, std::string program, std::vector<std::string> environment) {
  char* arguments[] = {program.data(), nullptr};
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  variables.push_back(nullptr);
  for (auto _ : state) {
    pid_t child = 0;
    int status = 0;
    if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, variables.data()) != 0 || waitpid(child, &status, 0) != child ||
        status != 0) {
      state.SkipWithError("the program failed");
      return;
    }
  }
}

std::vector<std::string> Environment(const std::string& options) {
  const std::string directory = CUAUDIT_DROPIN_DIR;
  return {"LD_LIBRARY_PATH=" + directory, "LD_PRELOAD=" + directory + "/libcuda.so.1", "CUAUDIT_OPTIONS=" + options};
}

void Empty(benchmark::State& state) { Spawn(state, "/bin/true", {}); }
void DropInSimulated(benchmark::State& state) { Spawn(state, Client(), Environment("driver=sim")); }
void DropInSimulatedWithJournal(benchmark::State& state) {
  const std::string path = "/tmp/cuaudit-spawn-bench";
  if (cuaudit::faults::CreateJournal(path.c_str(), {}) != nullptr) abort();
  Spawn(state, Client(), Environment("driver=sim;journal=" + path));
  unlink(path.c_str());
}

BENCHMARK(Empty)->UseRealTime();
BENCHMARK(DropInSimulated)->UseRealTime();
BENCHMARK(DropInSimulatedWithJournal)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
