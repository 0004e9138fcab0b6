// SPDX-License-Identifier: MIT
#include "harness/defect/reference_pairs.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace cuaudit::harness::reference_pairs_test {
namespace {

// "init:3 < main:10": functions of the program with their lines, innermost first.
Stack S(const std::string& text) {
  Stack stack;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(" < ", at), text.size());
    const std::string frame = text.substr(at, end - at);
    const std::size_t colon = frame.rfind(':');
    const int line = std::stoi(frame.substr(colon + 1));
    stack.push_back(report::Frame{"prog", frame.substr(0, colon), "prog.c", line, static_cast<std::uint64_t>(line)});
    at = end + 3;
  }
  return stack;
}

// References to one handle in the order of the calls: "+stack" acquires, "-stack" releases, "!stack" is the call that fails.
struct Calls {
  explicit Calls(const std::vector<std::string>& calls) {
    std::vector<std::size_t> held;
    for (std::size_t when = 1; when <= calls.size(); ++when) {
      const std::string& call = calls[when - 1];
      const Stack& stack = stacks.emplace_back(S(call.substr(1)));
      const std::uint64_t place = std::hash<std::string>()(call.substr(1));
      if (call[0] == '!') {
        failed.push_back({stack, when});
      } else if (call[0] == '+') {
        held.push_back(taken.size());
        taken.push_back({stack, place, when});
        names.push_back(call.substr(1));
      } else {
        given.push_back({stack, place, when, held.back()});
        held.pop_back();
      }
    }
  }
  std::vector<ReferencePair> Pair(const std::vector<KnownPair>& known = {}) const { return PairReferences(taken, given, known, failed); }
  // The acquisitions that are left when all releases are settled, and a question mark for each pair that the stacks did not tell.
  std::string Left(const std::vector<KnownPair>& known = {}) const {
    std::vector<bool> ended(taken.size());
    std::string guesses;
    for (const ReferencePair& pair : Pair(known)) {
      EXPECT_FALSE(ended[pair.taken]);
      ended[pair.taken] = true;
      if (!pair.sure) guesses += "?";
    }
    std::string left;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (!ended[i]) left += (left.empty() ? "" : ", ") + names[i];
    }
    return left + guesses;
  }
  std::vector<KnownPair> Known() const {
    std::vector<KnownPair> known;
    const std::vector<ReferencePair> pairs = Pair();
    for (std::size_t i = 0; i < pairs.size(); ++i) known.push_back({taken[pairs[i].taken].place, given[i].stack, pairs[i].sure});
    return known;
  }

  std::deque<Stack> stacks;
  std::vector<std::string> names;
  std::vector<ReferenceTaken> taken;
  std::vector<ReferenceGiven> given;
  std::vector<FailedCall> failed;
};

// Acquisition and release of each pair, as the given calls pair them.
std::vector<std::size_t> Taken(const Calls& calls) {
  std::vector<std::size_t> taken;
  for (const ReferencePair& pair : calls.Pair()) taken.push_back(pair.taken);
  return taken;
}

TEST(ReferencePairs, FunctionsOfOneNameBelongTogetherInWhicheverOrder) {
  for (const auto& [open, close] :
       std::vector<std::pair<std::string, std::string>>{{"_open:2", "_close:3"},
                                                        {"::Open(int):2", "::Close():3"},
                                                        {"Open:2", "Close:3"},
                                                        {"::Session::Session():2", "::Session::~Session():3"}}) {
    const Calls calls({"+decoder" + open + " < main:1", "+encoder" + open + " < main:2", "-decoder" + close + " < main:3",
                       "-encoder" + close + " < main:4"});
    EXPECT_EQ(Taken(calls), (std::vector<std::size_t>{0, 1})) << open;
    EXPECT_EQ(calls.Left(), "") << open << ": the names told";
  }
}

TEST(ReferencePairs, WithoutAnySignTheNewestIsReleasedFirst) {
  const Calls calls({"+up:2 < main:1", "+begin:2 < main:2", "-down:3 < main:3", "-finish:3 < main:4"});
  EXPECT_EQ(Taken(calls), (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(calls.Left(), "??");
}

TEST(ReferencePairs, ACallThatAcquiredAndReleasesMeansItsOwn) {
  const Calls calls({"+work:5 < main:1", "+get:2 < work:6 < main:1", "-work:9 < main:1", "-put:3 < work:8 < main:1"});
  EXPECT_EQ(Taken(calls), (std::vector<std::size_t>{0, 1})) << "work released directly what it acquired directly";
  const Calls inner({"+get:2 < outer:4 < main:1", "+get:2 < inner:5 < outer:6 < main:1", "-put:3 < inner:7 < outer:6 < main:1",
                     "-put:3 < outer:8 < main:1"});
  EXPECT_EQ(Taken(inner), (std::vector<std::size_t>{1, 0}));
}

TEST(ReferencePairs, WhatAFunctionDidItselfIsASignWithoutAName) {
  EXPECT_EQ(Calls({"+work:5 < main:1", "+get:2 < work:6 < main:1", "-work:9 < main:1"}).Left(), "get:2 < work:6 < main:1");
}

TEST(ReferencePairs, FunctionsOfOneFileBelongTogether) {
  Calls calls({"+up:2 < main:1", "+begin:2 < main:2", "-down:3 < main:3", "-finish:3 < main:4"});
  for (const std::size_t decoder : {0U, 2U}) calls.stacks[decoder][0].file = "decoder.c";
  for (const std::size_t encoder : {1U, 3U}) calls.stacks[encoder][0].file = "encoder.c";
  EXPECT_EQ(Taken(calls), (std::vector<std::size_t>{0, 1}));
}

TEST(ReferencePairs, TheFaultFreeRunTellsWhoLost) {
  const Calls before({"+decoder_open:2 < main:1", "+encoder_open:2 < main:2", "-encoder_close:3 < main:3", "-decoder_close:3 < main:4"});
  const Calls after({"+decoder_open:2 < main:1", "+encoder_open:2 < main:2", "!encoder_open:5 < main:2", "-decoder_close:3 < main:9"});
  EXPECT_EQ(after.Left(before.Known()), "encoder_open:2 < main:2");
  const Calls first({"+decoder_open:2 < main:1", "+encoder_open:2 < main:2", "!work:5 < main:2", "-encoder_close:3 < main:9"});
  EXPECT_EQ(first.Left(before.Known()), "decoder_open:2 < main:1");
}

TEST(ReferencePairs, AFunctionThatFailedGaveBackWhatItMeantTo) {
  const Calls before({"+up:2 < main:1", "+begin:2 < main:2", "-down:3 < main:3", "-finish:3 < main:4"});
  const Calls after({"+up:2 < main:1", "+begin:2 < main:2", "!begin:5 < main:2", "-down:3 < main:8"});
  EXPECT_EQ(after.Left(before.Known()), "begin:2 < main:2") << "whatever the fault-free run guessed";
  const Calls twice({"+up:2 < main:1", "+begin:2 < main:2", "!begin:5 < main:2", "-down:3 < main:8", "!main:9"});
  EXPECT_EQ(twice.Left(before.Known()), "begin:2 < main:2") << "whatever fails afterwards";
  const Calls itself({"+up:2 < main:1", "+begin:2 < main:2", "!begin:5 < main:2", "-begin:6 < main:2"});
  EXPECT_EQ(itself.Left(before.Known()), "up:2 < main:1") << "it released its own, and main lost the other";
}

TEST(ReferencePairs, OneWayToReleaseForAllIsToldByItsCallers) {
  const Calls before(
      {"+get:2 < a_open:3 < main:1", "+get:2 < b_open:3 < main:2", "-put:4 < a_close:5 < main:3", "-put:4 < b_close:5 < main:4"});
  const Calls after({"+get:2 < a_open:3 < main:1", "+get:2 < b_open:3 < main:2", "!b_open:4 < main:2", "-put:4 < a_close:5 < main:8"});
  EXPECT_EQ(after.Left(before.Known()).substr(0, 16), "get:2 < b_open:3");
}

TEST(ReferencePairs, AReleaseIsNeverSettledWithALaterAcquisition) {
  const Calls calls({"+decoder_open:2 < main:1", "-encoder_close:3 < main:2", "+encoder_open:2 < main:3", "-decoder_close:3 < main:4"});
  EXPECT_EQ(Taken(calls), (std::vector<std::size_t>{0, 1})) << "the better pairs would leave the first release without any";
}

TEST(ReferencePairs, NothingIsReleased) {
  EXPECT_TRUE(Calls({"+decoder_open:2 < main:1", "+encoder_open:2 < main:2"}).Pair().empty());
  EXPECT_TRUE(Calls({}).Pair().empty());
}

}  // namespace
}  // namespace cuaudit::harness::reference_pairs_test
