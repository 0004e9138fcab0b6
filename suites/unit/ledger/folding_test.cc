// SPDX-License-Identifier: MIT
#include "harness/ledger/folding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/trace.h"

namespace cuaudit::testing::folding_test {
namespace {

using faults::Record;
using harness::Folding;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Trace::Fold cuts the traces of all other tests too.
TEST(Folding, ACopyGoesOnByItself) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.CreateStream(0x20);
  t.DestroyStream(0x10);
  t.DestroyStream(0x20);
  const std::vector<Record> records = t.Records();
  const std::span<const Record> all(records);
  Folding begun;
  ASSERT_TRUE(begun.Add(all.first(3)));
  Folding first(begun);
  Folding second(begun);
  EXPECT_THAT(Left(*first.Finish(all.subspan(3, 1))), ElementsAre("primary_context 1", "stream 1"));
  EXPECT_THAT(Left(*second.Finish({})), ElementsAre("primary_context 1", "stream 2"));
  ASSERT_TRUE(begun.Add(all.subspan(3, 2)));
  EXPECT_THAT(Left(*begun.Finish({})), ElementsAre("primary_context 1")) << "what its copies did is not in it";
}

TEST(Folding, WhatWasReleasedBeforeTheCopyIsStaleInIt) {
  Trace t;
  t.Alloc(0x1000);
  t.Free(0x1000);
  t.Free(0x1000);
  const std::vector<Record> records = t.Records();
  Folding begun;
  ASSERT_TRUE(begun.Add(std::span(records).first(2)));
  Folding copy(begun);
  const std::optional<harness::Ledger> ledger = copy.Finish(std::span(records).subspan(2));
  ASSERT_TRUE(ledger.has_value());
  EXPECT_THAT(Wrong(*ledger), ElementsAre("double_release device_memory"));
  EXPECT_EQ(ledger->violations[0].object, 0);
}

TEST(Folding, DeclinesWhatCannotBeFoldedInParts) {
  Trace t;
  t.CreateStream(0x10);
  t.CreateStream(0x20);
  std::vector<Record> records = t.Records();
  const std::span<const Record> all(records);
  records[1].end = 0;
  Folding unfinished;
  EXPECT_FALSE(unfinished.Add(all)) << "it may return later";
  ASSERT_TRUE(unfinished.Add(all.first(1)));
  const std::optional<harness::Ledger> ledger = unfinished.Finish(all.subspan(1));
  ASSERT_TRUE(ledger.has_value()) << "the last ones need not return";
  EXPECT_EQ(ledger->unfinished_calls, 1U);

  records = t.Records();
  Folding backwards;
  ASSERT_TRUE(backwards.Add(std::span(records).subspan(1)));
  EXPECT_FALSE(backwards.Add(std::span(records).first(1))) << "older than what was folded";
  EXPECT_FALSE(backwards.Finish(std::span(records).first(1)).has_value());

  records[0].begin = 0;
  Folding unwritten;
  EXPECT_FALSE(unwritten.Add(std::span(records))) << "it may be written later";
}

}  // namespace
}  // namespace cuaudit::testing::folding_test
