// SPDX-License-Identifier: MIT
// Which function made calls (evidence.h), pushes that put back what was taken off (restored_entries.h), and what hides them.
#include <gtest/gtest.h>

#include "harness/verdict/context/put_back.h"
#include "harness/verdict/context/restored_entries.h"
#include "harness/verdict/parts.h"
#include "harness/verdict/rehearsed.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::put_back_parts_test {
namespace {

using driver::CallId;
using harness::EndOfCycle;
using harness::IsWithin;
using harness::kNoLevel;
using harness::Restored;
using harness::RestoredEntries;
using harness::SharedLevel;

constexpr std::uint64_t kFirst = 0xc;
constexpr std::uint64_t kSecond = 0xd;
constexpr std::uint64_t kMainFrame = 0x9000;

// main has 1 to 9; a function that main calls at line F has F * 10 + 1 to F * 10 + 9.
constexpr std::uint32_t In(std::uint32_t function, std::uint32_t line) { return function * 10 + line; }

// The run of a trace whose call stacks are those above.
class Image {
 public:
  explicit Image(const Trace& trace) : image_(trace) {
    image_.Module("/opt/prog");
    for (std::uint32_t line = 1; line < 10; ++line) {
      image_.Stack(In(0, line), {JournalImage::Frame(0, line), JournalImage::Frame(0, kMainFrame)});
      for (std::uint32_t function = 1; function < 5; ++function) {
        image_.Stack(In(function, line), {JournalImage::Frame(0, In(function, line)), JournalImage::Frame(0, 0x1000 + function),
                                          JournalImage::Frame(0, kMainFrame)});
      }
    }
  }
  Image& Stack(std::uint32_t id, const std::vector<std::uint64_t>& frames) {
    image_.Stack(id, frames);
    return *this;
  }
  harness::Evidence Evidence() const { return image_.Evidence(); }

 private:
  JournalImage image_;
};

// A thread that changes its contexts. Each step answers the ticket of its record.
class Contexts {
 public:
  std::uint64_t Set(std::uint64_t context, std::uint32_t stack) {
    return Done(trace_.Call(CallId::CtxSetCurrent).In(0, context), context, stack);
  }
  std::uint64_t Push(std::uint64_t context, std::uint32_t stack) { return Done(trace_.Push(context), context, stack); }
  // `next` is current afterwards.
  std::uint64_t Pop(std::uint32_t stack, std::uint64_t next = 0) { return Done(trace_.Pop(current), next, stack); }
  std::uint64_t Create(std::uint64_t context, std::uint32_t stack) {
    return Done(trace_.Call(CallId::CtxCreate_v2).Out(0, context), context, stack);
  }
  void Work(std::uint32_t stack) { (void)Done(trace_.Alloc(0x1000), current, stack); }
  void Destroy(std::uint32_t stack) { (void)Done(trace_.Call(CallId::CtxDestroy_v2).In(0, current), 0, stack); }
  Step Last() { return trace_.Last(); }
  const Trace& trace() const { return trace_; }

  std::uint64_t current = 0;
  std::uint32_t cycle = 0;

 private:
  std::uint64_t Done(Step step, std::uint64_t next, std::uint32_t stack) {
    step.Context(current).Cycle(cycle).Stack(stack);
    current = next;
    return step.begin();
  }

  Trace trace_;
};

struct Seen {
  explicit Seen(const Contexts& contexts) : image(contexts.trace()), entries(image.Evidence()) {}
  Restored Of(std::uint64_t push) const { return entries.Of({.begin = push}); }
  bool IsTaking(std::uint64_t pop) const { return entries.IsTaking({.begin = pop}); }
  bool IsPutBack(std::uint64_t pop) const { return entries.IsPutBack({.begin = pop}); }

  Image image;
  RestoredEntries entries;
};

TEST(RestoredEntries, AFunctionPutsBackWhatItTookOff) {
  Contexts c;
  c.Set(kFirst, In(0, 1));
  const std::uint64_t pop = c.Pop(In(1, 1));
  const std::uint64_t push = c.Push(kFirst, In(1, 2));
  const std::uint64_t again = c.Pop(In(1, 3));
  const std::uint64_t last = c.Push(kFirst, In(1, 4));
  const Seen seen(c);
  EXPECT_EQ(seen.Of(push), Restored::Yes);
  EXPECT_TRUE(seen.IsTaking(pop));
  EXPECT_TRUE(seen.IsPutBack(pop));
  EXPECT_TRUE(seen.IsTaking(again)) << "what was put back is still the entry that nobody had pushed";
  EXPECT_EQ(seen.Of(last), Restored::Yes);
}

TEST(RestoredEntries, APopBelongsToTheFunctionThatMadeTheEntry) {
  Contexts c;
  c.Set(kFirst, In(1, 1));
  const std::uint64_t pop = c.Pop(In(1, 2));
  const std::uint64_t push = c.Push(kFirst, In(2, 1));
  const Seen seen(c);
  EXPECT_EQ(seen.Of(push), Restored::No);
  EXPECT_FALSE(seen.IsPutBack(pop));
}

TEST(RestoredEntries, OneFunctionThatDoesItAllTellsNothing) {
  Contexts c;
  c.Set(kFirst, In(0, 1));
  c.Pop(In(0, 2));
  const std::uint64_t push = c.Push(kFirst, In(0, 3));
  EXPECT_EQ(Seen(c).Of(push), Restored::Perhaps);
}

TEST(RestoredEntries, NotInALaterCycle) {
  Contexts c;
  c.Set(kFirst, In(0, 1));
  c.cycle = 1;
  c.Pop(In(1, 1));
  c.cycle = 2;
  const std::uint64_t push = c.Push(kFirst, In(1, 2));
  EXPECT_EQ(Seen(c).Of(push), Restored::No);
}

TEST(RestoredEntries, AnotherContextInItsPlaceOwesItsPop) {
  Contexts c;
  c.Set(kFirst, In(0, 1));
  const std::uint64_t pop = c.Pop(In(1, 1));
  const std::uint64_t push = c.Push(kSecond, In(1, 2));
  const std::uint64_t own = c.Pop(In(1, 3));
  const Seen seen(c);
  EXPECT_EQ(seen.Of(push), Restored::No);
  EXPECT_TRUE(seen.IsPutBack(pop)) << "a context, though another one";
  EXPECT_FALSE(seen.IsTaking(own)) << "it had been pushed";
}

TEST(RestoredEntries, ANullContextTakesOffToo) {
  Contexts c;
  c.Set(kFirst, In(0, 1));
  c.Set(0, In(1, 1));
  const std::uint64_t push = c.Push(kFirst, In(1, 2));
  EXPECT_EQ(Seen(c).Of(push), Restored::Yes);
}

// The context that the caller had before the records began.
TEST(RestoredEntries, OfAnUnknownEntry) {
  Contexts c;
  c.current = kFirst;
  c.Set(kSecond, In(1, 1));
  const std::uint64_t pop = c.Pop(In(1, 2));
  c.Push(kFirst, In(1, 3));
  const std::uint64_t callers = c.Pop(In(2, 1));
  c.Push(0xe, In(2, 2));
  const std::uint64_t own = c.Pop(In(2, 3));
  const Seen seen(c);
  EXPECT_TRUE(seen.IsTaking(pop));
  EXPECT_TRUE(seen.IsPutBack(pop));
  EXPECT_TRUE(seen.IsTaking(callers)) << "the former context was put back";
  EXPECT_FALSE(seen.IsTaking(own)) << "another one was pushed";
}

TEST(RestoredEntries, WhatStoodAboveIsGoneWithWhatItStoodOn) {
  Contexts c;
  c.Set(kFirst, In(0, 1));
  c.Create(kSecond, In(0, 2));
  c.Pop(In(1, 1), kFirst);
  c.Pop(In(0, 3));
  c.Set(0xe, In(0, 4));
  const std::uint64_t push = c.Push(kSecond, In(1, 2));
  EXPECT_EQ(Seen(c).Of(push), Restored::No);
}

// A function creates a context and destroys it. Its caller sets another one, which the function takes off in the next turn.
TEST(RestoredEntries, ADestroyedContextMadeNothing) {
  Contexts c;
  c.Create(kFirst, In(1, 1));
  c.Destroy(In(1, 2));
  c.Set(kSecond, In(0, 1));
  c.Pop(In(1, 3));
  const std::uint64_t push = c.Push(kSecond, In(0, 2));
  EXPECT_EQ(Seen(c).Of(push), Restored::Perhaps) << "the function did not make the entry";
}

TEST(RestoredEntries, APlaceIsFilledOnce) {
  Contexts c;
  c.Set(kFirst, In(0, 1));
  const std::uint64_t pop = c.Pop(In(1, 1));
  c.Push(kFirst, In(0, 2));
  c.Pop(In(0, 3));
  c.Push(kSecond, In(1, 2));
  EXPECT_FALSE(Seen(c).IsPutBack(pop)) << "its caller put the context back";
}

TEST(RestoredEntries, OnlyTheLastTurnOfALoopLeavesAPlace) {
  Contexts c;
  c.Set(kFirst, In(0, 1));
  c.Pop(In(1, 1));
  c.Set(kSecond, In(0, 1));
  const std::uint64_t last = c.Pop(In(1, 1));
  const std::uint64_t push = c.Push(kFirst, In(1, 2));
  const Seen seen(c);
  EXPECT_EQ(seen.Of(push), Restored::No);
  EXPECT_TRUE(seen.IsPutBack(last));
}

TEST(RestoredEntries, WhatHappenedCountsAndNotWhatWasAnswered) {
  for (const bool refused : {false, true}) {
    Contexts c;
    c.Set(kFirst, In(0, 1));
    c.Pop(In(1, 1));
    if (refused) c.Last().Refused();
    if (!refused) c.Last().After();
    if (refused) c.current = kFirst;
    const std::uint64_t push = c.Push(kFirst, In(1, 2));
    EXPECT_EQ(Seen(c).Of(push), refused ? Restored::No : Restored::Yes) << refused;
  }
}

TEST(RestoredEntries, EachThreadHasItsStack) {
  Contexts c;
  c.Set(kFirst, In(0, 1));
  c.Pop(In(1, 1));
  const std::uint64_t push = c.Push(kFirst, In(1, 2));
  c.Last().Thread(kThread + 1);
  EXPECT_EQ(Seen(c).Of(push), Restored::No);
}

// Two threads leave an entry of which the call stacks do not tell who owes the pop, where the fault-free run leaves the first one alone.
TEST(RestoredEntries, ATrialLeavesNoMoreThanTheFaultFreeRun) {
  const auto run = [](bool second_pops) {
    Contexts c;
    for (const std::uint32_t thread : {kThread, kThread + 1}) {
      const std::uint32_t line = thread == kThread ? 1 : 5;
      c.current = 0;
      c.Set(kFirst, In(0, line));
      c.Last().Thread(thread);
      c.Pop(In(0, line + 1));
      c.Last().Thread(thread);
      c.Push(kFirst, In(0, line + 2));
      c.Last().Thread(thread);
      if (!second_pops || thread == kThread) continue;
      c.Pop(In(0, line + 3));
      c.Last().Thread(thread);
    }
    return c;
  };
  const Image good(run(true).trace());
  const Image trial(run(false).trace());
  const harness::Rehearsed rehearsal(good.Evidence());
  EXPECT_EQ(rehearsal.entries_left().size(), 1U);
  EXPECT_TRUE(harness::CompareViolations(&rehearsal, good.Evidence()).empty());
  EXPECT_EQ(harness::CompareViolations(&rehearsal, trial.Evidence()).size(), 1U);
}

// A function goes to one context by a wrapper, on to another one by itself, and then back to its caller's. Its stacks are longer than what
// is kept of them: of all of them 16 frames.
TEST(PutBack, AStackThatIsCutDoesNotTellHowDeepAFunctionRuns) {
  constexpr std::uint32_t kToSecond = 50;
  constexpr std::uint32_t kBack = 51;
  constexpr std::uint32_t kByWrapper = 52;
  constexpr std::uint32_t kCaller = 53;
  const auto image = [](const Contexts& contexts) {
    const auto stack = [](std::vector<std::uint64_t> frames, std::uint64_t next) {
      while (frames.size() < 16) frames.push_back(JournalImage::Frame(0, next++));
      return frames;
    };
    const auto at = [](std::uint64_t offset) { return JournalImage::Frame(0, offset); };
    constexpr std::uint64_t kOuter = 0x2000;
    Image made(contexts.trace());
    made.Stack(kToSecond, stack({at(0xa1)}, kOuter)).Stack(kBack, stack({at(0xa2)}, kOuter));
    made.Stack(kByWrapper, stack({at(0xb1), at(0xa3)}, kOuter)).Stack(kCaller, stack({at(0xc1)}, kOuter + 1));
    return made;
  };
  Contexts good;
  good.current = 0xe;
  good.Set(kSecond, kToSecond);
  good.Set(0xe, kBack);
  good.Work(kCaller);
  Contexts both;
  both.current = 0xe;
  both.Set(kFirst, kByWrapper);
  both.Set(kSecond, kToSecond);
  both.Set(0xe, kBack);
  both.Work(kCaller);
  Contexts wrong;
  wrong.current = 0xe;
  wrong.Set(kSecond, kToSecond);
  wrong.Work(kCaller);
  const Image fault_free = image(good);
  const harness::Evidence rehearsal = fault_free.Evidence();
  const harness::PutBack put_back(rehearsal);
  const Image with_wrapper = image(both);
  EXPECT_TRUE(put_back.Missing(with_wrapper.Evidence()).empty());
  const Image forgets = image(wrong);
  EXPECT_EQ(put_back.Missing(forgets.Evidence()).size(), 1U) << "otherwise nothing was judged";
}

// A stream that the driver declined to destroy still lies in its context: the end of another context does not drop its capture.
TEST(PutBack, AStreamLivesOnWhenItsDestructionFailed) {
  const auto run = [](bool ends) {
    Trace t;
    t.Call(CallId::StreamCreate).Out(0, 0x10).Context(kFirst).Stack(In(0, 1));
    t.Call(CallId::StreamDestroy_v2).In(0, 0x10).Fails(CUDA_ERROR_UNKNOWN).Stack(In(0, 2));
    t.Call(CallId::StreamBeginCapture_v2).In(0, 0x10).In(1, 2).Stack(In(1, 1));
    if (ends) t.Call(CallId::StreamEndCapture).In(0, 0x10).Out(1, 0x90).Stack(In(1, 2));
    t.Call(CallId::CtxDestroy_v2).In(0, kSecond).Stack(In(1, 3));
    t.Call(CallId::StreamSynchronize).In(0, 0x10).Stack(In(0, 3));
    return t;
  };
  const Image good(run(true));
  const harness::Evidence rehearsal = good.Evidence();
  const Image trial(run(false));
  EXPECT_EQ(harness::PutBack(rehearsal).Missing(trial.Evidence()).size(), 1U);
}

Trace CallsAt(const std::vector<std::uint32_t>& stacks) {
  Trace t;
  for (const std::uint32_t stack : stacks) t.Call(CallId::CtxSynchronize).Stack(stack);
  return t;
}

std::size_t LevelOf(const std::vector<std::uint32_t>& stacks) {
  return SharedLevel(Image(CallsAt(stacks)).Evidence(), 0, stacks.size() - 1);
}

TEST(FunctionFrames, TheInnermostFunctionThatMadeAllCalls) {
  EXPECT_EQ(LevelOf({In(1, 1)}), 1U);
  EXPECT_EQ(LevelOf({In(1, 1), In(1, 2)}), 1U);
  EXPECT_EQ(LevelOf({In(1, 1), In(2, 1), In(1, 2)}), 2U) << "main made the call in between";
  EXPECT_EQ(LevelOf({In(1, 1), In(0, 1)}), 2U);
  EXPECT_EQ(LevelOf({In(0, 1), In(1, 1)}), 1U);
}

TEST(FunctionFrames, ACallFarOutsideEndsAllFunctionsWithin) {
  Image image(CallsAt({50, In(0, 1)}));
  image.Stack(
      50, {JournalImage::Frame(0, 0x51), JournalImage::Frame(0, 0x52), JournalImage::Frame(0, 0x53), JournalImage::Frame(0, kMainFrame)});
  EXPECT_EQ(SharedLevel(image.Evidence(), 0, 1), 3U);
}

TEST(FunctionFrames, NoFunctionIsShared) {
  Image image(CallsAt({In(1, 1), 50}));
  image.Stack(50, {JournalImage::Frame(0, 0x51), JournalImage::Frame(0, 0x52)});
  EXPECT_EQ(SharedLevel(image.Evidence(), 0, 1), kNoLevel);
}

TEST(FunctionFrames, OtherThreadsAndCallsWithoutAStackTellNothing) {
  Trace t;
  t.Call(CallId::CtxSynchronize).Stack(In(1, 1));
  t.Call(CallId::CtxSynchronize).Stack(In(2, 1)).Thread(kThread + 1);
  t.Call(CallId::CtxSynchronize);
  t.Call(CallId::CtxSynchronize).Stack(In(1, 2));
  const Image image(t);
  EXPECT_EQ(SharedLevel(image.Evidence(), 0, 3), 1U);
  EXPECT_EQ(SharedLevel(image.Evidence(), 0, 1), kNoLevel) << "calls of two threads";
}

TEST(FunctionFrames, TheCallItselfIsNoFunction) {
  const Image image(CallsAt({In(1, 1)}));
  const harness::Evidence run = image.Evidence();
  const faults::Record& call = run.record(run.facts().calls.at(0));
  EXPECT_FALSE(IsWithin(run, call, JournalImage::Frame(0, In(1, 1))));
  EXPECT_TRUE(IsWithin(run, call, JournalImage::Frame(0, kMainFrame)));
}

TEST(FunctionFrames, ACycleEndsWhereItsThreadSaysSo) {
  MarkedCycles cycles;
  cycles.Good().Good();
  cycles.trace.Call(CallId::CtxSynchronize).Cycle(2).Thread(kThread + 1);
  const Image image(cycles.trace);
  const harness::Evidence run = image.Evidence();
  for (const std::uint32_t index : run.facts().calls) {
    const faults::Record& call = run.record(index);
    const faults::Record* const end = EndOfCycle(run, call);
    if (call.tid != kThread) {
      EXPECT_EQ(end, nullptr);
    } else {
      ASSERT_NE(end, nullptr);
      EXPECT_EQ(end->cycle, call.cycle);
    }
  }
}

}  // namespace
}  // namespace cuaudit::testing::put_back_parts_test
