// SPDX-License-Identifier: MIT
// What a report says that a run did not look at.
#include <gtest/gtest.h>

#include "harness/sweep/findings/aggregate.h"
#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::describe_run_test {
namespace {

report::Run Described(const Observation& seen) {
  report::Run run;
  DescribeRun(seen, &run);
  return run;
}

// What the simulated driver keeps for itself is known, so nothing is left out there.
TEST(DescribeRun, WhatAGenuineDriverKeepsForItselfIsCounted) {
  const TemporaryDir dir;
  for (const faults::DriverKind kind : {faults::DriverKind::Simulated, faults::DriverKind::Genuine}) {
    const bool genuine = kind == faults::DriverKind::Genuine;
    JournalBuilder journal(dir.File(genuine ? "genuine" : "simulated"));
    journal.header().driver_kind.store(static_cast<std::uint32_t>(kind));
    journal.Host(faults::HostCall::Allocate, 0x5000, 64);
    journal.Host(faults::HostCall::Allocate, 0x6000, 64);
    journal.Host(faults::HostCall::Deallocate, 0x6000);
    Observation seen = journal.Read();
    for (Object& object : seen.ledger.objects) object.driver_owned = true;
    const auto skipped = Described(seen).totals.skipped;
    EXPECT_EQ(skipped.count({Reason::DriverKeeps}), genuine ? 1U : 0U);
    if (!genuine) continue;
    EXPECT_EQ(skipped.at({Reason::DriverKeeps}), 1U) << "not what it has given back";
  }
}

TEST(DescribeRun, EntryPointsThatNobodyAuditsAreCounted) {
  const TemporaryDir dir;
  JournalBuilder journal(dir.File("journal"));
  EXPECT_EQ(Described(journal.Read()).totals.skipped.count({Reason::UnknownEntry}), 0U);
  journal.header().unknown_pointers.store(3);
  EXPECT_EQ(Described(journal.Read()).totals.skipped.at({Reason::UnknownEntry}), 3U);
}

}  // namespace
}  // namespace cuaudit::harness::describe_run_test
