// SPDX-License-Identifier: MIT
// journal_image.h: a journal in memory, and into how many defects it falls.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "faults/journal/journal_view.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/rules.h"
#include "harness/verdict/judge.h"
#include "suites/support/trace.h"

namespace cuaudit::testing {

// A journal in memory (faults/journal/layout.h), built from a trace, stacks and modules, as one run of a program would
// leave it.
//
// Owns the bytes, which are mostly untouched zero pages; the view borrows them. view() aborts the test when the bytes are not a journal.

// Evidence whose judgement is noted (trace.h).
struct NotedEvidence : harness::Evidence {};
[[nodiscard]] harness::Judgement Judge(const NotedEvidence& rehearsal, const NotedEvidence& trial, bool faulted,
                                       const harness::JudgeOptions& options);

class JournalImage {
 public:
  explicit JournalImage(const Trace& trace);

  // Modules count from 0, in order; an empty build id leaves the path to name the module.
  JournalImage& Module(std::string_view path, std::vector<std::uint8_t> build_id = {});
  // Python functions count from 0, in order.
  JournalImage& PythonFunction(std::string_view name, std::string_view file);
  // Fills stack `id` (as Step::Stack names it), innermost frame first.
  JournalImage& Stack(std::uint32_t id, const std::vector<std::uint64_t>& frames);
  JournalImage& DriverPath(std::string_view path);
  JournalImage& Driver(faults::DriverKind kind);
  JournalImage& Flags(std::uint32_t flags);
  static std::uint64_t Frame(std::uint64_t module, std::uint64_t offset) { return module << 48 | offset; }

  const faults::JournalView& view() const { return view_; }
  const harness::Ledger& ledger() const { return ledger_; }
  NotedEvidence Evidence(int exit_status = 0, int signal = 0, bool timed_out = false) const;

 private:
  struct Free {
    void operator()(void* bytes) const noexcept;
  };
  template <typename T>
  T* At(std::uint64_t offset) const {
    return reinterpret_cast<T*>(bytes_.get() + offset);
  }

  std::unique_ptr<char, Free> bytes_;
  faults::JournalView view_;
  harness::Ledger ledger_;
  std::uint32_t modules_ = 0;
  std::uint32_t python_ = 0;
};

// What the judge says of a run under a fault, beside the fault-free run.
[[nodiscard]] harness::Judgement Judge(const Trace& rehearsal, const Trace& trial, int exit_status = 1,
                                       const harness::JudgeOptions& options = {});
// The same of a fault-free run.
[[nodiscard]] harness::Judgement Judge(const Trace& alone, const harness::JudgeOptions& options = {});

}  // namespace cuaudit::testing
