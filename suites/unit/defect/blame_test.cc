// SPDX-License-Identifier: MIT
#include "harness/defect/blame.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

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
                   const std::vector<std::string>& afterwards = {}, std::size_t still_running = 0) {
  const Stack acquire = S(acquired);
  const Stack fail = S(failed);
  const Stack release = S(released);
  std::vector<Stack> stacks = {fail};
  for (const std::string& call : afterwards) stacks.push_back(S(call));
  std::vector<const Stack*> calls;
  for (const Stack& stack : stacks) calls.push_back(&stack);
  const auto blame = BlameForLoss({acquire, fail, release, still_running, calls});
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

}  // namespace
}  // namespace cuaudit::harness::blame_test
