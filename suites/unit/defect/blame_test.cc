// SPDX-License-Identifier: MIT
// Who is to blame for a loss, and which release belongs to which acquisition.
#include "harness/defect/blame.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "harness/defect/reference_pairs.h"

namespace cuaudit::harness::blame_test {
namespace {

using report::BlamedBecause;
using report::Frame;

// "init:3 < main:10": functions of the program with their lines, innermost first.
Stack S(const std::string& text) {
  Stack stack;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(" < ", at), text.size());
    const std::string frame = text.substr(at, end - at);
    const std::size_t colon = frame.rfind(':');
    const int line = std::stoi(frame.substr(colon + 1));
    stack.push_back(Frame{"prog", frame.substr(0, colon), "prog.c", line, static_cast<std::uint64_t>(line)});
    at = end + 3;
  }
  return stack;
}

std::string Blamed(const std::string& acquired, const std::string& failed, const std::string& released = {},
                   const std::vector<std::string>& afterwards = {}, std::size_t still_running = 0, bool passed_over = false) {
  const Stack acquire = S(acquired);
  const Stack fail = S(failed);
  const Stack release = S(released);
  std::vector<Stack> stacks = {fail};
  for (const std::string& call : afterwards) stacks.push_back(S(call));
  std::vector<const Stack*> calls;
  for (const Stack& stack : stacks) calls.push_back(&stack);
  const auto blame = BlameForLoss({acquire, fail, release, still_running, calls, {}, passed_over});
  return blame ? blame->function.function : "nobody";
}

TEST(Blame, TheFunctionThatHeldTheObjectAndSawTheFailure) {
  EXPECT_EQ(Blamed("init:3 < main:10", "init:5 < main:10", "destroy:20 < main:12"), "init");
  EXPECT_EQ(Blamed("init:3 < main:10", "work:7 < main:11", "destroy:20 < main:12"), "main");
}

TEST(Blame, AHelperThatAcquiresForItsCallerIsInnocent) {
  EXPECT_EQ(Blamed("make:2 < init:3 < main:10", "make:2 < init:4 < main:10", "destroy:20 < main:12"), "init");
  EXPECT_EQ(Blamed("check:1 < make:2 < init:3 < main:10", "check:1 < use:8 < init:4 < main:10"), "init");
}

TEST(Blame, AFunctionThatReleasesHalfIsToBlame) {
  EXPECT_EQ(Blamed("init:3 < main:10", "destroy:20 < main:12", "destroy:21 < main:12"), "destroy") << "its own call failed";
  EXPECT_EQ(Blamed("init:3 < main:10", "work:7 < main:11", "destroy:21 < main:12", {"destroy:20 < main:12"}), "destroy");
  EXPECT_EQ(Blamed("init:3 < main:10", "work:7 < main:11", "free_one:2 < destroy:21 < main:12", {"free_one:2 < destroy:20 < main:12"}),
            "destroy")
      << "free_one was called for another object only";
}

// An optional part fails, and the program goes on: its tear-down releases what other objects there are.
TEST(Blame, ATearDownThatCameToTheReleaseDidNotStopBeforeIt) {
  const char* const released = "close:21 < drop:30 < main:12";
  EXPECT_EQ(Blamed("init:3 < main:10", "init:5 < main:10", released, {"close:20 < drop:30 < main:12"}), "close");
  EXPECT_EQ(Blamed("init:3 < main:10", "init:5 < main:10", released, {"close:20 < drop:30 < main:12", released}), "init");
  EXPECT_EQ(Blamed("init:3 < main:10", "init:5 < main:10", released, {"close:20 < drop:30 < main:12", "close:21 < drop:30 < main:11"}),
            "close")
      << "called from elsewhere";
  EXPECT_EQ(Blamed("init:3 < thread:2", "work:5 < main:10", released, {"close:20 < drop:30 < main:12", released}), "close")
      << "nobody else held it";
  EXPECT_EQ(Blamed("init:3 < main:10", "init:5 < main:10", released, {"close:20 < drop:30 < main:12", released}, 0, true), "close")
      << "it released a later one, and not this one";
}

// The calls of the fault-free run, for a failing call that is a release.
std::string BlamedBeside(const std::string& acquired, const std::string& failed, const std::string& released,
                         const std::vector<std::string>& rehearsed) {
  const Stack acquire = S(acquired);
  const Stack fail = S(failed);
  const Stack release = S(released);
  std::vector<Stack> stacks;
  for (const std::string& call : rehearsed) stacks.push_back(S(call));
  std::vector<const Stack*> calls;
  for (const Stack& stack : stacks) calls.push_back(&stack);
  const std::vector<const Stack*> afterwards = {&fail};
  return BlameForLoss({acquire, fail, release, 0, afterwards, calls})->function.function;
}

TEST(Blame, ATearDownThatIsCalledOnTheWayBackAndStopsIsToBlame) {
  EXPECT_EQ(
      BlamedBeside("init:3 < main:10", "close:20 < init:6 < main:10", "close:21 < main:12", {"close:20 < main:12", "close:21 < main:12"}),
      "close");
  EXPECT_EQ(BlamedBeside("init:3 < main:10", "free_one:20 < init:6 < main:10", "free_one:20 < main:12",
                         {"free_one:20 < main:11", "free_one:20 < main:12"}),
            "init")
      << "each call of it releases one object";
  EXPECT_EQ(
      BlamedBeside("init:3 < main:10", "other:20 < init:6 < main:10", "close:21 < main:12", {"other:20 < main:11", "close:21 < main:12"}),
      "init");
}

TEST(Blame, AFailureThatIsRemembered) {
  const auto in = [](const std::string& module, const std::string& function) {
    return Frame{module, function, "a.c", 1, std::hash<std::string>()(function)};
  };
  const Frame main = in("prog", "main");
  const auto blamed = [](const Stack& stack) { return BlameForNoRecovery(stack)->function.function; };
  EXPECT_EQ(blamed({in("prog", "open_queue"), in("prog", "start"), main}), "open_queue") << "functions of the program are told apart";
  EXPECT_EQ(blamed({in("liba.so", "open_queue"), in("liba.so", "a_init"), in("prog", "start"), main}), "a_init");
  EXPECT_EQ(blamed({in("libb.so", "b_queue"), in("liba.so", "a_init"), in("prog", "start"), main}), "a_init")
      << "what a library uses is its own";
  EXPECT_EQ(blamed({in("prog", "called_back"), in("liba.so", "a_each"), main}), "called_back");
  EXPECT_EQ(blamed({in("liba.so", "work"), in("libc.so.6", "qsort"), in("liba.so", "a_sort"), main}), "a_sort");
  EXPECT_FALSE(BlameForNoRecovery({}));
  EXPECT_FALSE(BlameForNoRecovery({in("libc.so.6", "abort")}));
}

TEST(Blame, WhoMakesTheSameCallWithoutAWayBackToItWasLeft) {
  Stack call = S("make:2 < fill:7 < main:10");
  EXPECT_EQ(RunningSince(call, call), 0U) << "make may have a loop";
  call[0].once = true;
  EXPECT_EQ(RunningSince(call, call), 1U);
  call[1].once = true;
  EXPECT_EQ(RunningSince(call, call), 2U);
  EXPECT_EQ(RunningSince(S("make:1 < fill:7 < main:10"), call), 0U) << "make went on";
  EXPECT_EQ(RunningSince(call, S("make:3 < fill:7 < main:10")), 0U);
  EXPECT_EQ(RunningSince(call, S("make:1 < fill:7 < main:10")), 2U) << "make begins anew";
  Stack copy = call;
  copy[1].offset = 99;
  EXPECT_EQ(RunningSince(copy, call), 1U) << "the loop was unrolled: fill made two calls";
  EXPECT_EQ(RunningSince(S("worker:1 < thread:1"), call), call.size());
}

// Of a Python function there is a line and no offset.
TEST(Blame, APythonFunctionThatMakesTheSameCallInTheSameLineWasLeft) {
  const auto python = [](const std::string& text) {
    Stack stack = S(text);
    for (Frame& frame : stack) frame.offset = 0;
    for (Frame& frame : stack) frame.once = true;
    return stack;
  };
  Stack call = python("make:2 < fill:7 < main:10");
  call[1].once = false;
  EXPECT_EQ(RunningSince(call, call), 1U) << "fill has the loop";
  EXPECT_EQ(RunningSince(call, python("make:1 < fill:7 < main:10")), 0U) << "an earlier line may be the end of a with statement";
  EXPECT_EQ(RunningSince(python("make:2 < fill:7"), python("use:3 < fill:7")), 1U) << "one line makes two calls";
  EXPECT_EQ(RunningSince(python("make:0"), python("make:0")), 0U);
}

TEST(Blame, AFunctionEnteredFromElsewhereIsNot) {
  EXPECT_EQ(Blamed("init:3 < main:10", "work:7 < main:11", "destroy:21 < main:12", {"destroy:20 < work:8 < main:11"}), "main");
}

TEST(Blame, WhoHeldItWinsOverATearDownOfTheSameDepth) {
  EXPECT_EQ(Blamed("init:3 < main:10", "init:5 < main:10", "destroy:21 < main:12", {"destroy:20 < main:12"}), "init");
}

TEST(Blame, AnEarlierCallOfTheSameFunctionHeldNothing) {
  EXPECT_EQ(Blamed("make:2 < main:10", "make:5 < main:10", "destroy:20 < main:12"), "make");
  EXPECT_EQ(Blamed("make:2 < main:10", "make:5 < main:10", "destroy:20 < main:12", {}, 1), "main") << "it was left in between";
}

TEST(Blame, OfAnotherThreadTheReleaseThatWasNotReached) {
  EXPECT_EQ(Blamed("worker:3 < thread:1", "work:7 < main:11", "join:20 < main:12", {}, 2), "join");
  EXPECT_EQ(BlameForLoss({S("worker:3 < thread:1"), S("work:7 < main:11"), S("join:20 < main:12"), 2, {}})->because,
            BlamedBecause::NeverReached);
  // It was running when the call failed.
  const Stack acquired = S("make:3 < main:10"), failed = S("wait:2 < consume:7 < thread:1");
  EXPECT_EQ(BlameForLoss({acquired, failed, S("consume:9 < thread:1"), 3, {}})->because, BlamedBecause::HeldIt);
  EXPECT_EQ(BlameForLoss({acquired, failed, S("drop:20 < consume:9 < thread:1"), 3, {}})->because, BlamedBecause::NeverReached);
}

TEST(Blame, WithoutAnyOtherSignWhoAcquiredIt) {
  EXPECT_EQ(Blamed("worker:3 < thread:1", "work:7 < main:11"), "worker");
  EXPECT_EQ(Blamed("", "work:7 < main:11"), "nobody");
}

TEST(Blame, NeverTheSystemTheDriverOrCuauditItself) {
  Stack acquired = S("grow:3 < init:4 < main:10");
  Stack failed = S("grow:3 < init:5 < main:10");
  acquired[1].function = failed[1].function = "std::vector<int>::reserve(unsigned long)";
  const auto blame = BlameForLoss({acquired, failed, {}, 0, {}});
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->function.function, "main");
  for (const char* const module : {"libc.so.6", "libstdc++.so.6", "libcuda.so.1", "libcuaudit_host.so", "ld-linux-x86-64.so.2"})
    EXPECT_FALSE(IsProgram({module, "f", "", 0, 1})) << module;
  for (const char* const function :
       {"cuaudit::harness::Run()", "std::function<void ()>::operator()() const", "operator new(unsigned long)"})
    EXPECT_FALSE(IsProgram({"prog", function, "", 0, 1})) << function;
  EXPECT_TRUE(IsProgram({"libcublas.so.13", "", "", 0, 1}));
  EXPECT_TRUE(IsProgram({"prog", "my::std::f()", "", 0, 1}));
}

TEST(Blame, AFunctionWithoutANameIsKnownByItsStart) {
  const auto frame = [](std::uint64_t offset, std::uint64_t start) {
    Frame one{"lib.so", "", "", 0, offset};
    one.start = start;
    return one;
  };
  const Frame main = S("main:10").front();
  const auto blame = BlameForLoss({{frame(0x120, 0x100), main}, {frame(0x150, 0x100), main}, {}, 0, {}});
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->function.start, 0x100U);
  EXPECT_EQ(BlameForLoss({{frame(0x120, 0x100), main}, {frame(0x250, 0x200), main}, {}, 0, {}})->function.function, "main");
  EXPECT_EQ(BlameForLoss({{frame(0x120, 0), main}, {frame(0x150, 0), main}, {}, 0, {}})->function.function, "main") << "unknown starts";
}

TEST(Blame, AStackThatIsCutOffAtItsOuterEndIsComparedAsFarAsItGoes) {
  EXPECT_EQ(Blamed("a:1 < b:2 < c:3", "x:9 < b:4 < c:3 < main:10"), "b");
  EXPECT_EQ(Blamed("a:1 < b:2 < c:3 < main:10", "x:9 < b:4"), "b");
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
}  // namespace cuaudit::harness::blame_test
