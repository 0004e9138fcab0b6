// SPDX-License-Identifier: MIT
#include "faults/journal/python_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "suites/support/temporary_journal.h"

namespace cuaudit::faults::python_table_test {
namespace {

python::Function Named(const std::string& name, const std::string& file, int first_line) {
  python::Function function{};
  name.copy(function.name, sizeof(function.name) - 1);
  file.copy(function.file, sizeof(function.file) - 1);
  function.first_line = first_line;
  return function;
}

class Table : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(journal_.Open(file_.path()), nullptr);
    table_->Attach(&journal_);
  }
  TemporaryJournal file_{8};
  Journal journal_;
  std::unique_ptr<PythonTable> table_ = std::make_unique<PythonTable>();
};

TEST_F(Table, KeepsEveryFunctionOnce) {
  const python::Function step = Named("Encoder.step", "/encoder.py", 10);
  const std::uint64_t first = table_->Encode(step, 12);
  const std::uint64_t second = table_->Encode(step, 13);
  EXPECT_EQ(FrameModule(first), kPython);
  EXPECT_EQ(FramePythonLine(first), 12U);
  EXPECT_EQ(FramePythonLine(second), 13U);
  EXPECT_EQ(FramePythonRow(first), FramePythonRow(second));
  EXPECT_NE(FramePythonRow(first), FramePythonRow(table_->Encode(Named("Encoder.close", "/encoder.py", 10), 12)));
  EXPECT_NE(FramePythonRow(first), FramePythonRow(table_->Encode(Named("Encoder.step", "/decoder.py", 10), 12)));
  EXPECT_NE(FramePythonRow(first), FramePythonRow(table_->Encode(Named("Encoder.step", "/encoder.py", 11), 12))) << "defined twice";

  const std::vector<char> bytes = file_.Bytes();
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  const PythonRow* const row = view.PythonFunction(first);
  ASSERT_NE(row, nullptr);
  EXPECT_STREQ(row->name, "Encoder.step");
  EXPECT_STREQ(row->file, "/encoder.py");
  EXPECT_EQ(row->first_line, 10);
  EXPECT_EQ(view.PythonFunction(PythonFrame(kMaxPythonFunctions, 1)), nullptr);
}

TEST_F(Table, SaysWhenItIsFull) {
  std::set<std::uint64_t> rows;
  for (std::size_t i = 0; i < kMaxPythonFunctions; ++i)
    rows.insert(FramePythonRow(table_->Encode(Named(std::to_string(i), "/f.py", 1), 1)));
  EXPECT_EQ(rows.size(), kMaxPythonFunctions);
  EXPECT_EQ(journal_.header().flags.load() & kModulesDropped, 0U);
  const std::uint64_t more = table_->Encode(Named("one more", "/f.py", 1), 5);
  EXPECT_EQ(FramePythonRow(more), kMaxPythonFunctions);
  EXPECT_EQ(FramePythonLine(more), 5U);
  EXPECT_NE(journal_.header().flags.load() & kModulesDropped, 0U);
}

TEST_F(Table, RecallsWhatItWasToldOfAPlaceAndOfNoOther) {
  const python::Identity place = {0x1000, 0x1040, 0x2000, 0x3000, 0x4000, 7};
  std::uint64_t frame = 0;
  EXPECT_FALSE(table_->Recall(place, &frame));
  table_->Remember(place, PythonFrame(3, 9));
  ASSERT_TRUE(table_->Recall(place, &frame));
  EXPECT_EQ(frame, PythonFrame(3, 9));
  python::Identity other = place;
  other.instruction += 2;
  EXPECT_FALSE(table_->Recall(other, &frame)) << "another instruction";
  other = place;
  other.qualname = 0x3008;
  EXPECT_FALSE(table_->Recall(other, &frame)) << "another function at the same address";
  table_->Remember(other, 0);
  ASSERT_TRUE(table_->Recall(other, &frame));
  EXPECT_EQ(frame, 0U) << "left out";
}

}  // namespace
}  // namespace cuaudit::faults::python_table_test
