// SPDX-License-Identifier: MIT
// observation.h: one run of the subject as evidence: how it ended, its journal, and the ledger folded from it.
//
//   Owns      the mapping of the journal and the ledger; evidence() borrows from the observation, which must outlive it.
//   Threads   values; no shared state.
//   Units     records; milliseconds.
//   Errors    Status: the journal cannot be made, mapped or read.
//   Faults    makes no driver calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "faults/journal/journal_file.h"
#include "faults/journal/journal_view.h"
#include "faults/journal/key_memo.h"
#include "harness/ledger/ledger.h"
#include "harness/sweep/environment.h"
#include "harness/sweep/files.h"
#include "harness/sweep/process.h"
#include "harness/sweep/program.h"
#include "harness/sweep/status.h"
#include "harness/verdict/judge.h"
#include "harness/verdict/steps.h"

namespace cuaudit::harness {

// The program under audit and everything that is the same for each of its runs.
struct Subject {
  Program program;
  std::vector<std::string> command;      // argv
  std::vector<std::string> environment;  // before our own variables
  LaunchOptions launch;
  std::size_t record_capacity = 0;  // of the fault-free runs
  std::uint64_t deadline_ms = 0;
  int expected_exit = 0;
};

struct Observation {
  std::string path;  // of the journal
  SparseFile file;
  std::shared_ptr<const void> keeps;  // the memory of a journal that was put together from several
  std::shared_ptr<faults::KeyMemo> memo;
  faults::JournalView journal;
  Ledger ledger;
  Ending ending;
  // Of a lifecycle in C++; absent for a program.
  std::optional<CycleSteps> steps;
  std::optional<NextCycle> next;
  // Tickets from here on were given without faults armed: a second try of the teardown.
  std::uint64_t armed_until = ~std::uint64_t{0};

  Evidence evidence() const { return {&ledger, &journal, ending, steps ? &*steps : nullptr, next ? &*next : nullptr}; }
  std::uint32_t flags() const { return journal.header().flags.load(); }
  bool entered() const { return ledger.facts.records != 0; }  // the drop-in was loaded into the program
  bool saw_host() const { return evidence().saw_host(); }
};

// Reads a journal that nobody writes any more.
Result<Observation> ReadObservation(const std::string& journal, const Ending& ending);

// How its journals are made.
faults::JournalOptions OptionsOf(const Subject& subject, std::size_t record_capacity);

// Makes the empty journal and says how to start the program that will fill it. `output` empty: in the foreground, without deadline of its
// own. `more`: further orders for the drop-in, such as "forks=PATH".
Result<Launch> PrepareRun(const Subject& subject, const std::string& journal, std::size_t record_capacity,
                          std::span<const std::string> faults, const std::string& output, const std::string& more = {});

// Why records are missing: "the journal overflowed after 1024 records: give it more with --records", or that there was no space for it.
std::string WhyDropped(const Observation& run);

// "exited with status 3", "died of signal 11 (Segmentation fault)", "did not finish within 10000 ms".
std::string Describe(const Ending& ending, std::uint64_t deadline_ms);

// What makes a fault-free run unfit to compare others with: it crashed, hung, exited with another status than expected, never called the
// driver, or overran its journal.
Status CheckFaultFree(const Subject& subject, const Observation& run);

// Never called the driver, the journal is too small, or host probes that were asked for never came up: all that `run` asks for.
Status CheckExercised(const Subject& subject, const Observation& run);

}  // namespace cuaudit::harness
