// SPDX-License-Identifier: MIT
// scripted_runner.h: a runner that knows a program by heart, for tests of the engine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/plan/plan.h"
#include "harness/sweep/runners/runner.h"
#include "suites/support/journal_builder.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::sweep_tests {

using driver::CallId;

// A program that creates a stream and allocates memory twice before it gives up. On the way back it synchronizes the stream and destroys
// it; when the synchronization fails, too, it forgets the stream.
class Scripted : public Runner {
 public:
  explicit Scripted(bool backwards) : backwards_(backwards) {}

  Observation Run(const std::vector<std::string>& faults) {
    JournalBuilder journal(dir_.File("journal-" + std::to_string(++runs_)));
    faults_ = faults;
    seen_.clear();
    Ending ending = {.exit_status = Script(journal)};
    return journal.Read(ending);
  }
  Status Give(std::vector<TrialOrder> orders) override {
    if (rounds.size() == gives) return {Exit::Failure, "no process"};
    rounds.push_back(orders.size());
    for (TrialOrder& order : orders) waiting_.push_back(std::move(order));
    if (backwards_) std::reverse(waiting_.begin(), waiting_.end());
    return {};
  }
  Result<TrialSeen> Next() override {
    const TrialOrder order = std::move(waiting_.back());
    waiting_.pop_back();
    return TrialSeen{order.index, Run(order.faults), {}, {}};
  }
  bool idle() const noexcept override { return waiting_.empty(); }
  int interrupted() const noexcept override { return 0; }

  std::vector<std::size_t> rounds;
  std::size_t gives = ~std::size_t{0};  // how many rounds may be given

 protected:
  // Makes the calls of a run and answers its exit status.
  virtual int Script(JournalBuilder& journal) {
    if (!Do(journal, CallId::StreamCreate, 0x10, 1)) return 1;
    const bool memory = Do(journal, CallId::MemAlloc_v2, 0x1000, 2) || Do(journal, CallId::MemAlloc_v2, 0x1000, 3);
    if (memory) Do(journal, CallId::MemFree_v2, 0x1000, 4);
    const bool synchronized = Do(journal, CallId::StreamSynchronize, 0x10, 5);
    if (memory || synchronized) Do(journal, CallId::StreamDestroy_v2, 0x10, 6);
    return memory ? 0 : 1;
  }
  const std::vector<std::string>& faults() const { return faults_; }
  bool Do(JournalBuilder& journal, CallId call, std::uint64_t handle, std::uint32_t stack) {
    faults::Record& record = journal.Call(call);
    record.stack = stack;
    record.argument[0] = handle;
    const std::uint32_t count = ++seen_[driver::BaseOf(call)];
    for (std::size_t i = 0; i < faults_.size(); ++i) {
      faults::Fault fault;
      EXPECT_EQ(faults::ParseFault(faults_[i], &fault).expected, nullptr) << faults_[i];
      if (fault.base != driver::BaseOf(call) || faults::Plan::Decide(fault, count).code == CUDA_SUCCESS) continue;
      record.result = fault.code;
      record.fault = static_cast<std::uint16_t>(i + 1);
      const bool after = fault.how == faults::How::After;
      record.flags = static_cast<std::uint16_t>(faults::kInjected | (after ? faults::kForwarded : 0));
      if (driver::IsAcquire(driver::EffectOf(fault.base).effect)) record.argument[0] = 0;
      journal.header().fired[i].fetch_add(1);
      return false;
    }
    return true;
  }

 private:
  const bool backwards_;
  TemporaryDir dir_;
  int runs_ = 0;
  std::vector<std::string> faults_;
  std::map<driver::BaseId, std::uint32_t> seen_;
  std::vector<TrialOrder> waiting_;
};

}  // namespace cuaudit::harness::sweep_tests
