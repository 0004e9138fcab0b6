// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::cycles_test {
namespace {

TEST(RunCycles, SaysWhichCycleFailed) {
  int cycle = 0;
  const auto lifecycle = Lifecycle("third_fails").WithCurrentContext().Init([&](DriverRef driver) {
    int count = 0;
    (void)driver.DeviceGetCount(&count);
    return ++cycle == 3 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
  });
  const Audit audit = RunCycles(lifecycle);
  EXPECT_EQ(audit.outcome, AuditOutcome::Error);
  EXPECT_EQ(audit.message, "without any fault init returned CUDA_ERROR_UNKNOWN in cycle 3");
}

// `keeps` says in which cycles, counted over all series, an event is made and never given back.
Lifecycle KeepingAnEvent(int* cycle, bool (*keeps)(int)) {
  return Lifecycle("keeps").WithCurrentContext().Init([cycle, keeps](DriverRef driver) {
    CUevent event = nullptr;
    CUevent kept = nullptr;
    if (keeps(++*cycle) && driver.EventCreate(&kept, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
    const CUresult code = driver.EventCreate(&event, 0);
    return code == CUDA_SUCCESS ? driver.EventDestroy(event) : code;
  });
}

TEST(RunCycles, AnObjectThatOneCycleKeepsOnceIsACacheFilledLate) {
  int cycle = 0;
  const Audit once = RunCycles(KeepingAnEvent(&cycle, [](int n) { return n == 5; }));
  EXPECT_TRUE(once.clean()) << once.Text();
  EXPECT_EQ(once.skipped.count("event: grew in one series of cycles and not in the next"), 1U) << once.Text();
}

TEST(RunCycles, AnObjectThatEachSeriesKeepsGrows) {
  int cycle = 0;
  const Audit seventh = RunCycles(KeepingAnEvent(&cycle, [](int n) { return n % 7 == 0; }));
  ASSERT_EQ(seventh.findings.size(), 1U) << seventh.Text();
  EXPECT_EQ(seventh.findings[0].rule, "growth");
  EXPECT_EQ(seventh.findings[0].count, 1U);
  EXPECT_THAT(seventh.findings[0].detail, ::testing::HasSubstr("more a cycle, up to 80 cycles"));
  cycle = 0;
  const Audit twice = RunCycles(KeepingAnEvent(&cycle, [](int n) { return n == 4 || n == 8; }));
  EXPECT_TRUE(twice.clean()) << "the longer series shows that it has stopped: " << twice.Text();
}

// Each world has a cache of its own that holds `size` events.
struct Cache {
  std::size_t size = 0;
  std::size_t filled = 0;
};

Lifecycle Filling(Cache* cache) {
  return Lifecycle("fills").WithCurrentContext().Prepare([cache] { cache->filled = 0; }).Init([cache](DriverRef driver) {
    CUevent event = nullptr;
    int count = 0;
    return cache->filled++ < cache->size ? driver.EventCreate(&event, 0) : driver.DeviceGetCount(&count);
  });
}

std::string Noted(const Audit& audit) {
  std::string text;
  for (const Finding& note : audit.notes)
    text += note.rule + " " + note.kind + ": " + note.detail.substr(note.detail.find("on: ") + 4) + "\n";
  return text;
}

TEST(RunCycles, ACacheThatFillsAndStopsIsBounded) {
  Cache four{4};
  const Audit soon = RunCycles(Filling(&four));
  EXPECT_TRUE(soon.clean()) << soon.Text();
  EXPECT_EQ(Noted(soon), "bounded event: 4 after 3 cycles, no more after 10\n");
  Cache twenty{20};
  const Audit late = RunCycles(Filling(&twenty));
  EXPECT_TRUE(late.clean()) << late.Text();
  EXPECT_EQ(Noted(late), "bounded event: 20 after 19 cycles, no more after 40\n");
}

TEST(RunCycles, WhatTheCyclesCannotTellIsUndecided) {
  Cache eight{8};
  const Audit few = RunCycles(Filling(&eight), {.most_cycles = 10});
  EXPECT_EQ(few.outcome, AuditOutcome::NotExercised) << few.Text();
  EXPECT_EQ(few.message, "1 place grew, and these cycles do not tell a leak from a cache that fills: 14 cycles would");
  EXPECT_EQ(Noted(few), "undecided event: 8 after 7 cycles, no more after 10: 14 cycles would tell\n");
  EXPECT_TRUE(RunCycles(Filling(&eight)).clean());
}

TEST(RunCycles, ACacheWithoutABoundGrows) {
  Cache endless{1000};
  const Audit audit = RunCycles(Filling(&endless));
  ASSERT_EQ(audit.findings.size(), 1U) << audit.Text();
  EXPECT_EQ(audit.findings[0].count, 10U) << "of the cycles that were asked for";
}

TEST(RunCycles, WithoutAnyDriverCallProvesNothing) {
  const Audit audit = RunCycles(Lifecycle("idle").Init([] {}));
  EXPECT_EQ(audit.outcome, AuditOutcome::NotExercised);
  EXPECT_FALSE(audit.clean());
}

TEST(RunCycles, AreAtLeastOne) {
  const Audit audit = RunCycles(Lifecycle("idle").Init([] {}), {.cycles = 0});
  EXPECT_EQ(audit.outcome, AuditOutcome::Error);
}

TEST(Sweep, WithoutAnyDriverCallProvesNothing) {
  const Audit audit = Sweep(Lifecycle("idle").Init([] {}));
  EXPECT_EQ(audit.outcome, AuditOutcome::NotExercised);
  EXPECT_NE(audit.message.find("with the drop-in library only"), std::string::npos);
}

TEST(Sweep, WithoutAnyCallThatCanFailProvesNothing) {
  const Audit audit = Sweep(Lifecycle("asks_only").Init([](DriverRef driver) {
    const char* name = nullptr;
    (void)driver.GetErrorName(CUDA_SUCCESS, &name);
  }));
  EXPECT_EQ(audit.outcome, AuditOutcome::NotExercised);
  EXPECT_EQ(audit.message, "no call of the lifecycle can fail");
}

TEST(Sweep, AnInitThatFailsByItselfIsAnErrorOfTheCase) {
  const Audit audit = Sweep(Lifecycle("fails").WithCurrentContext().Init([](DriverRef driver) { return driver.StreamDestroy(nullptr); }));
  EXPECT_EQ(audit.outcome, AuditOutcome::Error);
  EXPECT_EQ(audit.message.find("without any fault init returned CUDA_ERROR_"), 0U) << audit.message;
}

TEST(Sweep, APreparationThatFailsIsAnErrorOfTheCase) {
  const Audit audit = Sweep(Lifecycle("unprepared").Prepare([] { return CUDA_ERROR_INVALID_VALUE; }).Init([] {}));
  EXPECT_EQ(audit.outcome, AuditOutcome::Error);
  EXPECT_EQ(audit.message, "preparing the case failed: CUDA_ERROR_INVALID_VALUE");
}

// Which call comes second depends on how often it ran: told, never passed silently.
TEST(Sweep, ALifecycleThatDriftsSaysSo) {
  int runs = 0;
  const Lifecycle lifecycle = Drifting(&runs);
  const Audit audit = Sweep(lifecycle);
  EXPECT_EQ(audit.drift, "call 1: cuEventCreate, then cuStreamCreate");
  EXPECT_EQ(audit.outcome, AuditOutcome::NotExercised) << audit.Text();
  runs = 0;
  EXPECT_TRUE(Sweep(lifecycle, {.may_drift = true}).clean());
}

// Alike in both rehearsals; later it makes a call less.
TEST(Sweep, OneFaultThatDidNotFireIsNoPass) {
  int worlds = 0;
  CUstream stream = nullptr;
  const auto lifecycle = Lifecycle("makes_a_call_less")
                             .WithCurrentContext()
                             .Prepare([&] { ++worlds; })
                             .Init([&](DriverRef driver) { return driver.StreamCreate(&stream, 0); })
                             .Work([&](DriverRef driver) { return worlds > 2 ? CUDA_SUCCESS : driver.StreamSynchronize(stream); })
                             .Teardown([&](DriverRef driver) { return driver.StreamDestroy(stream); });
  const Audit audit = Sweep(lifecycle, {.depth = 1});
  EXPECT_EQ(audit.outcome, AuditOutcome::NotExercised) << audit.Text();
  EXPECT_THAT(audit.message, ::testing::HasSubstr("1 of 3 planned faults did not fire")) << audit.Text();
}

TEST(Sweep, BadOptionsAreOneClearLine) {
  const auto lifecycle = Lifecycle("event").WithCurrentContext().Init([](DriverRef driver) {
    CUevent event = nullptr;
    const CUresult code = driver.EventCreate(&event, 0);
    return code == CUDA_SUCCESS ? driver.EventDestroy(event) : code;
  });
  SweepOptions options = {.hows = {"refused"}};
  EXPECT_EQ(Sweep(lifecycle, options).message.find("--how: 'refused': expected one of"), 0U);
  EXPECT_EQ(Sweep(Lifecycle(lifecycle).Benign("cuEventMake")).message,
            "Lifecycle::Benign: 'cuEventMake': expected a driver entry point without version suffix, such as cuMemPoolCreate or "
            "cuMemPoolCreate#2, then @function or @module!function");
  const Audit unused = Sweep(Lifecycle(lifecycle).Benign("cuMemAlloc"));
  EXPECT_THAT(Texts(unused), ::testing::ElementsAre(::testing::StartsWith("benign_never_fired"))) << unused.Text();
  EXPECT_EQ(Sweep(lifecycle, {.isolate = true, .driver = AuditedDriver::Genuine}).outcome, AuditOutcome::Error);
}

TEST(Sweep, ALimitIsTold) {
  const auto lifecycle = Lifecycle("three_calls").WithCurrentContext().Init([](DriverRef driver) {
    CUevent event = nullptr;
    const CUresult code = driver.EventCreate(&event, 0);
    if (code != CUDA_SUCCESS) return code;
    const CUresult recorded = driver.EventRecord(event, nullptr);
    const CUresult destroyed = driver.EventDestroy(event);
    return recorded == CUDA_SUCCESS ? destroyed : recorded;
  });
  const Audit audit = Sweep(lifecycle, {.limit = 2});
  EXPECT_EQ(audit.trials, 2U);
  EXPECT_FALSE(audit.skipped.empty());
}

}  // namespace
}  // namespace cuaudit::testing::cycles_test
