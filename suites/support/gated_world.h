// SPDX-License-Identifier: MIT
// gated_world.h: a gate with a journal in front of a simulated world, as the drop-in wires them, and the records it wrote.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "gated_world.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/shim/gate.h"
#include "faults/sim/world.h"
#include "suites/support/temporary_journal.h"

namespace cuaudit::faults {

class GatedWorld {
 public:
  explicit GatedWorld(std::initializer_list<std::string_view> faults = {}, Scope scope = Scope::Pinned, int devices = 1)
      : world_(sim::CreateWorld({.device_count = devices})), stacks_(std::make_unique<StackTable>()) {
    EXPECT_NE(world_, nullptr);
    const char* error = journal_.Open(file_.path());
    EXPECT_EQ(error, nullptr) << error;
    stacks_->Attach(&journal_, false);
    Plan plan;
    for (const std::string_view text : faults) {
      Fault fault;
      const ParseError wrong = ParseFault(text, &fault);
      EXPECT_EQ(wrong.expected, nullptr) << text << ": " << wrong.expected;
      EXPECT_TRUE(plan.Add(fault));
    }
    gate_.Arm(sim::Driver(world_), &journal_, stacks_.get(), plan, scope);
  }
  ~GatedWorld() { sim::DestroyWorld(world_); }
  GatedWorld(const GatedWorld&) = delete;
  GatedWorld& operator=(const GatedWorld&) = delete;

  driver::DriverRef driver() { return Driver(&gate_); }
  driver::DriverRef below() { return sim::Driver(world_); }
  Gate& gate() { return gate_; }
  Journal& journal() { return journal_; }
  std::uint64_t Live(driver::Kind kind) const { return sim::LiveCount(world_, kind); }

  // cuInit, primary context of device 0 made current.
  void Start() {
    CUcontext context = nullptr;
    ASSERT_EQ(driver().Init(0), CUDA_SUCCESS);
    ASSERT_EQ(driver().DevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver().CtxSetCurrent(context), CUDA_SUCCESS);
  }

  std::vector<Record> Records() const {
    const std::vector<char> bytes = file_.Bytes();
    JournalView view;
    EXPECT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
    return {view.records().begin(), view.records().end()};
  }
  Record Last(driver::BaseId base) const {
    Record last;
    for (const Record& record : Records()) {
      if (record.kind == RecordKind::Call && driver::BaseOf(static_cast<driver::CallId>(record.call)) == base) last = record;
    }
    return last;
  }

 private:
  TemporaryJournal file_{1 << 14};
  Journal journal_;
  sim::World* world_;
  std::unique_ptr<StackTable> stacks_;
  Gate gate_;
};

// With the primary context of device 0 current.
class StartedWorld : public GatedWorld {
 public:
  explicit StartedWorld(std::initializer_list<std::string_view> faults = {}, Scope scope = Scope::Pinned, int devices = 1)
      : GatedWorld(faults, scope, devices) {
    Start();
  }
};

}  // namespace cuaudit::faults
