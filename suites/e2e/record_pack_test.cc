// SPDX-License-Identifier: MIT
// `cuaudit record --pack`, and the end of `cuaudit record`: nothing that a reader must know is lost by packing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>
#include <string>

#include "faults/journal/layout.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::record_pack_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

CommandResult Explain(const std::string& file) { return RunCommand({Tool(), "explain", file}); }

// A record that was damaged before the recording was packed may have released what seems to be left.
TEST(RecordPack, PackingForgetsNoDamage) {
  const std::string file = TemporaryDirectory() + "/field.journal";
  const CommandResult run = RunCommand({"/bin/sh", "-c",
                                        "eval \"$($0 record --print-environment --driver=sim --max-size 32MiB --journal " + file +
                                            ")\"\nexec " + Program("recorded") + " early late",
                                        Tool()});
  ASSERT_EQ(run.exit, 0) << run.err;
  std::string bytes = ReadFile(file);
  const auto words = std::make_unique<std::uint64_t[]>(bytes.size() / 8 + 1);
  std::memcpy(words.get(), bytes.data(), bytes.size());
  bytes[reinterpret_cast<const faults::JournalHeader*>(words.get())->records_offset + sizeof(faults::RecordSlot) + 8] ^= 0x40;
  WriteFile(file, bytes);
  const CommandResult open = Explain(file);
  EXPECT_EQ(open.exit, 3) << open.out;
  EXPECT_THAT(open.out, HasSubstr("damaged  1 record"));
  ASSERT_EQ(RunCommand({Tool(), "record", "--pack", file}).exit, 0);
  const CommandResult packed = Explain(file);
  EXPECT_EQ(packed.exit, 3) << packed.out;
  EXPECT_THAT(packed.out, HasSubstr("damaged  1 record"));
  EXPECT_THAT(packed.out, Not(HasSubstr("lacks    nothing")));
}

TEST(RecordPack, AProcessWithoutAnEndIsNeverJudged) {
  const std::string file = TemporaryDirectory() + "/field.journal";
  const CommandResult run =
      RunCommand({Tool(), "record", "--driver=sim", "--journal", file, "--", "/bin/sh", "-c", Program("recorded") + " keep kill; true"});
  EXPECT_EQ(run.exit, 0) << run.err;
  const CommandResult seen = Explain(file);
  EXPECT_EQ(seen.exit, 3) << seen.out;
  EXPECT_THAT(seen.out, HasSubstr("no end was recorded"));
  EXPECT_THAT(seen.out, HasSubstr("held when the recording ends"));
  EXPECT_THAT(seen.out, HasSubstr("1 stream, 0 bytes: cuStreamCreate"));
  EXPECT_THAT(seen.out, Not(HasSubstr("left_at_exit")));
  EXPECT_THAT(seen.out, Not(HasSubstr("process_lifetime"))) << "it is listed once";
}

TEST(RecordPack, OnlyItsOwnerReadsWhatWasPacked) {
  const std::string file = TemporaryDirectory() + "/field.journal";
  (void)RunCommand({Tool(), "record", "--driver=sim", "--journal", file, "--", Program("recorded"), "keep"});
  struct stat facts = {};
  ASSERT_EQ(stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
}

TEST(RecordPack, IsNotPackedWhileAProcessWritesIt) {
  const std::string place = TemporaryDirectory();
  const std::string file = place + "/field.journal";
  const CommandResult run =
      RunCommand({"/bin/sh", "-c",
                  "cd " + place + " && mkfifo in out\n(eval \"$($0 record --print-environment --driver=sim --journal " + file +
                      ")\"; exec cat <in >out) &\nexec 3>in 4<out; echo ready >&3; read line <&4; echo $line\n"
                      "$0 record --pack " +
                      file + "; echo packed $?\nexec 3>&-; wait\n$0 record --pack " + file + " 2>/dev/null; echo packed $?",
                  Tool()});
  EXPECT_EQ(run.out, "ready\npacked 2\npacked 0\n") << run.err;
  EXPECT_EQ(LineCount(run.err), 1U) << run.err;
  EXPECT_THAT(run.err, ContainsRegex("field.journal: .*process [0-9]+ still"));
}

}  // namespace
}  // namespace cuaudit::e2e::record_pack_test
