// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/call_record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "suites/support/gated_world.h"

namespace cuaudit::faults::call_record_test {
namespace {

TEST(CallRecord, WithoutAJournalThereIsNone) {
  EXPECT_EQ(NewRecord(nullptr, RecordKind::Mark, 0), nullptr);
  WriteMark(nullptr, MarkKind::CycleBegin, 0, nullptr);
  WriteBlock(nullptr, nullptr, MarkKind::BlockOut, 1, 2);
}

TEST(CallRecord, StandsInTheNameOfItsProcessAndCycle) {
  GatedWorld world;
  Journal* const journal = &world.journal();
  WriteMark(journal, MarkKind::CycleBegin, 0, nullptr);
  WriteMark(journal, MarkKind::Phase, static_cast<std::uint32_t>(Phase::Work), nullptr);
  const Record* const record = NewRecord(journal, RecordKind::Call, 7);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(record->cycle, 1U);
  EXPECT_EQ(record->phase, Phase::Work);
  WriteMark(journal, MarkKind::CycleEnd, 0, nullptr);
  EXPECT_EQ(NewRecord(journal, RecordKind::Call, 7)->phase, Phase::Any) << "a phase ends with its cycle";
}

TEST(CallRecord, ANestedCallIsMarkedAndHasNoNumber) {
  GatedWorld world;
  world.Start();
  Passage passage;
  passage.id = driver::CallId::DeviceGetCount;
  for (const bool nested : {true, false, true}) {
    passage.record = NewRecord(&world.journal(), RecordKind::Call, static_cast<std::uint16_t>(passage.id));
    passage.occurrence = nested ? 0 : CountCall(passage.id, &world.journal());
    FillArguments(passage, nested, world.below(), &world.journal());
    EXPECT_EQ(passage.record->occurrence, nested ? 0U : 1U);
    EXPECT_EQ(passage.record->flags, nested ? kNested : 0);
  }
}

TEST(CallRecord, GarbageGoesToOutputsOnly) {
  std::uint64_t stream = 1;
  Passage passage;
  passage.id = driver::CallId::StreamCreate;
  passage.value[0] = reinterpret_cast<std::uintptr_t>(&stream);
  passage.value[1] = 5;
  WriteGarbage(passage);
  EXPECT_EQ(stream, 0xA5A5A5A5A5A5A5A5U);
  EXPECT_EQ(passage.value[1], 5U);
}

}  // namespace
}  // namespace cuaudit::faults::call_record_test
