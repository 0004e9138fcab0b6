// SPDX-License-Identifier: MIT
// observation.h: one run of the subject as evidence: its ending, its journal, and the ledger folded from it.
//
//   Owns      the mapping of the journal and the ledger. evidence() borrows from the observation, which must outlive it.
//   Units     records; milliseconds.
//   Errors    Status: the journal cannot be made, mapped or read.
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
#include "harness/ledger/ledger.h"
#include "harness/process/files.h"
#include "harness/process/process.h"
#include "harness/process/program.h"
#include "harness/process/status.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/steps.h"

namespace cuaudit::harness {

struct Recording;

// The audited program, and what is the same for each of its runs.
struct Subject {
  Program program;
  std::vector<std::string> command;      // argv
  std::vector<std::string> environment;  // before cuaudit adds its own variables
  std::string directory;                 // where the program runs; empty: where cuaudit does
  LaunchOptions launch;
  std::size_t record_capacity = 0;  // for the fault-free runs
  std::uint64_t deadline_ms = 0;
  int expected_exit = 0;
  bool own_orphans_count = false;  // JudgeOptions::own_orphans_count, for cycles
};

struct Observation {
  std::string path;  // of the journal
  SparseFile file;
  std::shared_ptr<const void> keeps;  // memory of a journal that was assembled from several
  std::shared_ptr<faults::KeyMemo> memo;
  faults::JournalView journal;
  Ledger ledger;
  Ending ending;
  std::shared_ptr<const Recording> recording;  // null: the journal is no recording (`cuaudit record`)
  // Only for a lifecycle in C++.
  std::optional<CycleSteps> steps;
  std::optional<NextCycle> next;
  // Tickets from here on belong to a second try of the tear-down, which ran without faults.
  std::uint64_t armed_until = ~std::uint64_t{0};

  Evidence evidence() const { return {&ledger, &journal, ending, steps ? &*steps : nullptr, next ? &*next : nullptr}; }
  std::uint32_t flags() const { return journal.header().flags.load(); }
  bool entered() const { return ledger.facts.records != 0; }  // true when the drop-in was loaded into the program
  bool saw_host() const { return evidence().saw_host(); }
};

// Reads a journal that no process writes any more.
Result<Observation> ReadObservation(const std::string& journal, const Ending& ending);

// Reads the journal of a run without faults that has just ended. Where the program removed or overwrote it, the status says so.
Result<Observation> ReadRun(const Subject& subject, const std::string& journal, const Ending& ending);

// True for a status of ReadObservation that says that the file is gone or holds something else. No other failure is the program's doing.
inline bool IsDamaged(const Status& status) { return status.exit() == Exit::Usage; }

// How the journals of a subject are made.
faults::JournalOptions OptionsOf(const Subject& subject, std::size_t record_capacity);

// Makes the empty journal and the launch of the program that will fill it. With `output` empty the program runs in the foreground without a
// deadline of its own. `more` holds further orders for the drop-in, such as "forks=PATH".
Result<Launch> PrepareRun(const Subject& subject, const std::string& journal, std::size_t record_capacity,
                          std::span<const std::string> faults, const std::string& output, const std::string& more = {});

// Why records are missing: "the journal overflowed after 1024 records: give it more with --records", or no space was left for it.
Details WhyDropped(const Observation& run);

// "exited with status 3", "died of signal 11 (Segmentation fault)", "did not finish within 10000 ms".
std::string Describe(const Ending& ending, std::uint64_t deadline_ms);

// An error when a fault-free run cannot serve as a rehearsal: it crashed, hung, exited with an unexpected status, never called the driver,
// or overran its journal.
Status CheckFaultFree(const Subject& subject, const Observation& run);

// "the last of 3 driver calls that failed was cuMemAlloc=OUT_OF_MEMORY at open_pool pool.c:12". Empty when none did.
Details LastFailure(const Observation& run);

// An error when the run never called the driver, its journal was too small, or host probes that were asked for never started.
Status CheckExercised(const Subject& subject, const Observation& run);

}  // namespace cuaudit::harness
