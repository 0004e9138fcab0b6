// SPDX-License-Identifier: MIT
// make_runner.h: chooses the runner for --isolation; and a runner that is made when the first trial is waited for, so that an engine can
// plan trials which nobody runs here.
//
//   Threads   one thread.
//   Errors    none: trials that cannot fork are spawned, and the report says so.
#pragma once

#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/runners/runner.h"
#include "harness/sweep/runners/spawn_runner.h"

namespace cuaudit::harness {

// With `wished` Unknown the driver and the program decide.
std::unique_ptr<Runner> MakeRunner(Isolation wished, const Subject& subject, const WorkDir& dir, const SpawnOptions& resources,
                                   const Rehearsal& rehearsal);

class LateRunner final : public Runner {
 public:
  explicit LateRunner(std::function<std::unique_ptr<Runner>()> make) : make_(std::move(make)) {}

  Status Give(std::vector<TrialOrder> orders) override {
    if (runner_ != nullptr) return runner_->Give(std::move(orders));
    orders_.insert(orders_.end(), std::make_move_iterator(orders.begin()), std::make_move_iterator(orders.end()));
    return {};
  }
  Result<TrialSeen> Next() override {
    if (runner_ == nullptr) {
      runner_ = make_();
      Status given = runner_->Give(std::exchange(orders_, {}));
      if (!given.ok()) return given;
    }
    return runner_->Next();
  }
  Status Repeat(TrialResult* trial) override { return runner_ == nullptr ? Status() : runner_->Repeat(trial); }
  bool repeats_exactly() const noexcept override { return runner_ != nullptr && runner_->repeats_exactly(); }
  bool idle() const noexcept override { return runner_ == nullptr ? orders_.empty() : runner_->idle(); }
  int interrupted() const noexcept override { return runner_ == nullptr ? 0 : runner_->interrupted(); }
  void End() { runner_.reset(); }  // ends all processes of the runner

 private:
  std::function<std::unique_ptr<Runner>()> make_;
  std::unique_ptr<Runner> runner_;
  std::vector<TrialOrder> orders_;
};

}  // namespace cuaudit::harness
