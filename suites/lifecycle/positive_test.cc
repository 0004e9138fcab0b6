// SPDX-License-Identifier: MIT
// positive_test.cc: lifecycles without a defect, on which the sweep must stay silent, and counts that show that it was no empty sweep.
#include <cuaudit/block.h>
#include <cuaudit/gtest.h>
#include <gmock/gmock.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::positive_test {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

const std::vector<std::string> kAllHows = {"refuse", "refuse+garbage", "after", "persist", "burst:2", "sticky"};

// Releases what it has in any state, and goes on after errors.
struct Careful {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;

  CUresult Init(DriverRef driver) {
    CUstream made = nullptr;
    CUresult code = driver.StreamCreate(&made, 0);
    if (code == CUDA_SUCCESS) stream = made;
    CUevent second = nullptr;
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&second, 0);
    if (code == CUDA_SUCCESS) event = second;
    CUdeviceptr third = 0;
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&third, 256);
    if (code == CUDA_SUCCESS) memory = third;
    if (code != CUDA_SUCCESS) (void)Teardown(driver);
    return code;
  }
  CUresult Work(DriverRef driver) {
    const CUresult code = driver.MemsetD8Async(memory, 1, 256, stream);
    if (code != CUDA_SUCCESS) return code;
    const CUresult recorded = driver.EventRecord(event, stream);
    return recorded == CUDA_SUCCESS ? driver.StreamSynchronize(stream) : recorded;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult first = CUDA_SUCCESS;
    const auto note = [&first](CUresult code) { first = first == CUDA_SUCCESS ? code : first; };
    if (memory != 0) note(driver.MemFree(std::exchange(memory, 0)));
    if (event != nullptr) note(driver.EventDestroy(std::exchange(event, nullptr)));
    if (stream != nullptr) note(driver.StreamDestroy(std::exchange(stream, nullptr)));
    return first;
  }
};

class EveryHow : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryHow, UnwindsCleanly) {
  SweepOptions options = {.hows = {GetParam()}};
  const Audit audit = Sweep(Lifecycle::Of<Careful>("careful").WithCurrentContext(), options);
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_EQ(audit.fired, audit.trials);
  EXPECT_GE(audit.trials, 3U);
}

INSTANTIATE_TEST_SUITE_P(Hows, EveryHow, ::testing::ValuesIn(kAllHows), [](const auto& how) {
  std::string name = how.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

TEST(Positive, NothingIsPrunedAwayThatFires) {
  SweepOptions options = {.hows = kAllHows, .all_codes = true, .prune = cuaudit::Prune::None};
  const Audit audit = Sweep(Lifecycle::Of<Careful>("careful").WithCurrentContext(), options);
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_GT(audit.trials, 300U);
  EXPECT_THAT(audit.pruned, IsEmpty());
}

TEST(Positive, IsolatedTrialsSayTheSame) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("it does not survive fork");
  const auto careful = Lifecycle::Of<Careful>("careful").WithCurrentContext();
  const Audit here = Sweep(careful);
  const Audit apart = Sweep(careful, {.isolate = true});
  EXPECT_EQ(apart.outcome, AuditOutcome::Clean) << apart.Text();
  EXPECT_EQ(here.trials, apart.trials);
  EXPECT_EQ(here.verdicts, apart.verdicts);
}

// A pool that got the step's driver in a table of somebody's own tells an audit nothing; that is said.
TEST(Positive, BlocksThatNoAuditHearsOfAreCounted) {
  static driver::DriverTable table;
  const auto lifecycle = Lifecycle("wraps").WithCurrentContext().Init([](DriverRef driver) {
    table = *driver.table;
    const DriverRef wrapped{&table, driver.self};
    CUdeviceptr memory = 0;
    const CUresult code = wrapped.MemAlloc(&memory, 512);
    if (code != CUDA_SUCCESS) return code;
    BlockOut(wrapped, memory, 512);
    BlockBack(wrapped, memory);
    return wrapped.MemFree(memory);
  });
  const std::string reason = "blocks told through another DriverRef than the step's own (cuaudit/block.h)";
  const Audit cycles = RunCycles(lifecycle, {.cycles = 10});
  EXPECT_EQ(cycles.outcome, AuditOutcome::Clean) << cycles.Text();
  EXPECT_THAT(cycles.skipped, Contains(Pair(reason, 11U))) << cycles.Text();
  EXPECT_THAT(Sweep(lifecycle, {.depth = 1}).skipped, Contains(Pair(reason, ::testing::Ge(1U))));
}

TEST(Positive, ALifecycleWithAContextOfItsOwn) {
  const auto lifecycle = Lifecycle::Of<WithItsOwnContext>("with_its_own_context");
  EXPECT_UNWINDS_CLEANLY(lifecycle);
  EXPECT_ALLOCATION_NEUTRAL(lifecycle);
}

// What a sticky fault lost is lost in the clean cycle too, where the program could not give it back.
TEST(Positive, AContextOfItsOwnThatIsLost) {
  const auto lifecycle = Lifecycle::Of<WithItsOwnContext>("with_its_own_context");
  const Audit once = Sweep(lifecycle, {.hows = {"sticky"}, .depth = 1, .prune = cuaudit::Prune::None});
  EXPECT_EQ(once.outcome, AuditOutcome::Clean) << once.Text();
  EXPECT_GE(once.fired, 6U);
  EXPECT_THAT(once.skipped, Contains(Pair("recovery not checked: the release of the lost context was refused", 1U))) << once.Text();
  const Audit twice = Sweep(lifecycle, {.hows = {"sticky"}, .prune = cuaudit::Prune::None});
  EXPECT_EQ(twice.outcome, AuditOutcome::Clean) << twice.Text();
}

TEST(Positive, AContextThatTheCaseWasGivenIsLost) {
  const Audit audit = Sweep(Lifecycle::Of<Careful>("careful").WithCurrentContext(), {.hows = {"sticky"}, .depth = 1});
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_THAT(audit.skipped, Contains(Pair("recovery not checked: the context that the case was given is lost", audit.trials)))
      << audit.Text();
}

TEST(Positive, AContextOfThePreparationThatIsLost) {
  const auto lifecycle = Lifecycle::Of<Careful>("careful").Prepare([](DriverRef driver) {
    CUcontext context = nullptr;
    CUresult code = driver.Init(0);
    if (code == CUDA_SUCCESS) code = driver.DevicePrimaryCtxRetain(&context, 0);
    return code == CUDA_SUCCESS ? driver.CtxSetCurrent(context) : code;
  });
  const Audit audit = Sweep(lifecycle, {.hows = {"sticky"}});
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_THAT(audit.skipped, Contains(Pair("recovery not checked: a context that was there before the cycle may be lost", audit.trials)))
      << audit.Text();
}

// The destructor is the teardown, a constructor that throws the report.
class Raii {
 public:
  void Init(DriverRef driver) {
    driver_ = driver;
    if (driver.StreamCreate(&stream_, 0) != CUDA_SUCCESS) {
      stream_ = nullptr;
      throw std::runtime_error("no stream");
    }
  }
  ~Raii() {
    if (stream_ != nullptr) (void)driver_.StreamDestroy(stream_);
  }

 private:
  DriverRef driver_;
  CUstream stream_ = nullptr;
};

TEST(Positive, DestructorsAndExceptions) {
  const auto lifecycle = Lifecycle::Of<Raii>("raii").WithCurrentContext();
  const Audit audit = Sweep(lifecycle);
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_THAT(audit.skipped, Contains(Pair("reporting not checked: the step of the fault returns nothing", 1U)));
  EXPECT_ALLOCATION_NEUTRAL(lifecycle);
}

// Tries twice: what was refused is made good, and nothing needs to be declared.
struct Retries {
  CUdeviceptr memory = 0;
  CUresult Init(DriverRef driver) {
    CUresult code = driver.MemAlloc(&memory, 256);
    if (code == CUDA_ERROR_OUT_OF_MEMORY) code = driver.MemAlloc(&memory, 256);
    return code;
  }
  CUresult Teardown(DriverRef driver) { return driver.MemFree(memory); }
};

TEST(Positive, ARetryThatAbsorbsTheRefusal) {
  const auto lifecycle = Lifecycle::Of<Retries>("retries").WithCurrentContext();
  const Audit undeclared = Sweep(lifecycle);
  EXPECT_EQ(undeclared.outcome, AuditOutcome::Clean) << undeclared.Text();
  EXPECT_THAT(undeclared.verdicts, Contains(Pair("absorbed", 1U)));
  const Audit audit = Sweep(Lifecycle(lifecycle).Benign("cuMemAlloc#1"));
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_THAT(audit.verdicts, Contains(Pair("benign", 1U)));
}

// A first cycle fills a cache for the process: no growth, and every trial is judged beside a rehearsal that leaves it too.
CUevent cached = nullptr;
struct FillsACache : Careful {
  CUresult Init(DriverRef driver) {
    if (cached == nullptr) {
      CUevent made = nullptr;
      const CUresult code = driver.EventCreate(&made, 0);
      if (code != CUDA_SUCCESS) return code;
      cached = made;
    }
    return Careful::Init(driver);
  }
};

TEST(Positive, AProcessLifetimeCache) {
  const auto lifecycle = Lifecycle::Of<FillsACache>("fills_a_cache").WithCurrentContext().Prepare([] { cached = nullptr; });
  const Audit audit = Sweep(lifecycle);
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_THAT(audit.notes, Not(IsEmpty()));
  EXPECT_ALLOCATION_NEUTRAL(lifecycle);
}

// Keeps what it could not release and lets its caller try again.
struct KeepsForRetry {
  CUstream stream = nullptr;
  CUresult Init(DriverRef driver) { return driver.StreamCreate(&stream, 0); }
  CUresult Teardown(DriverRef driver) {
    if (stream == nullptr) return CUDA_SUCCESS;
    const CUresult code = driver.StreamDestroy(stream);
    if (code == CUDA_SUCCESS) stream = nullptr;
    return code;
  }
};

TEST(Positive, RetainedForRetry) {
  const Audit audit = Sweep(Lifecycle::Of<KeepsForRetry>("keeps_for_retry").WithCurrentContext().RetryTeardown());
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_THAT(audit.verdicts, Contains(Pair("retained_for_retry", 1U)));
  // What the second teardown calls is not failed: nothing is planned there that could not fire.
  const Audit deep =
      Sweep(Lifecycle::Of<KeepsForRetry>("keeps_for_retry").WithCurrentContext().RetryTeardown(), {.prune = cuaudit::Prune::None});
  EXPECT_EQ(deep.outcome, AuditOutcome::Clean) << deep.Text();
  // In a lost context the second teardown fails as the first did.
  const Audit lost =
      Sweep(Lifecycle::Of<KeepsForRetry>("keeps_for_retry").WithCurrentContext().RetryTeardown(), {.hows = {"sticky"}, .depth = 1});
  EXPECT_EQ(lost.outcome, AuditOutcome::Clean) << lost.Text();
  EXPECT_THAT(lost.verdicts, Contains(Pair("release_refused", 1U)));
  EXPECT_THAT(lost.verdicts, Not(Contains(Key("retained_for_retry"))));
  const Audit once = Sweep(Lifecycle::Of<KeepsForRetry>("keeps_for_retry").WithCurrentContext());
  EXPECT_THAT(once.verdicts, Contains(Pair("release_refused", 1U)));
}

// Only what the second teardown gave back was retained for it.
struct KeepsOneOfTwoForRetry : KeepsForRetry {
  CUevent event = nullptr;
  CUresult Init(DriverRef driver) {
    const CUresult code = driver.EventCreate(&event, 0);
    if (code != CUDA_SUCCESS) return code;
    const CUresult second = KeepsForRetry::Init(driver);
    if (second != CUDA_SUCCESS) (void)driver.EventDestroy(event);
    return second;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult code = event == nullptr ? CUDA_SUCCESS : driver.EventDestroy(event);
    if (code == CUDA_SUCCESS) event = nullptr;
    const CUresult waited = stream == nullptr ? CUDA_SUCCESS : driver.StreamSynchronize(stream);
    if (waited != CUDA_SUCCESS) return waited;
    const CUresult second = KeepsForRetry::Teardown(driver);
    return code == CUDA_SUCCESS ? second : code;
  }
};

TEST(Positive, WhatTheFirstTeardownReleasedWasNotRetained) {
  const Audit audit = Sweep(Lifecycle::Of<KeepsOneOfTwoForRetry>("keeps_one_of_two").WithCurrentContext().RetryTeardown(),
                            {.calls = {"cuStreamSynchronize"}, .depth = 1});
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_THAT(audit.verdicts, Contains(Pair("retained_for_retry", 1U))) << audit.Text();
  ASSERT_FALSE(audit.notes.empty());
  for (const Finding& note : audit.notes) EXPECT_EQ(note.kind, "stream") << audit.Text();
}

// The caller's stream, made beforehand, is used and left alone.
TEST(Positive, WhatIsPreparedIsNobodysLeak) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  const auto lifecycle = Lifecycle("borrows_a_stream")
                             .WithCurrentContext()
                             .Prepare([&](DriverRef driver) { return driver.StreamCreate(&stream, 0); })
                             .Init([&](DriverRef driver) { return driver.EventCreate(&event, 0); })
                             .Work([&](DriverRef driver) { return driver.EventRecord(event, stream); })
                             .Teardown([&](DriverRef driver) { return driver.EventDestroy(event); });
  EXPECT_UNWINDS_CLEANLY(lifecycle);
  EXPECT_ALLOCATION_NEUTRAL(lifecycle);
}

// Two threads take turns as they like; each makes and releases its own.
struct Threaded {
  CUresult code[2] = {};
  CUresult Init(Cycle& cycle) {
    CUcontext context = nullptr;
    const CUresult current = cycle.driver().CtxGetCurrent(&context);
    if (current != CUDA_SUCCESS) return current;
    const auto work = [&](CUresult* answer) {
      CUevent event = nullptr;
      *answer = cycle.driver().CtxSetCurrent(context);
      if (*answer == CUDA_SUCCESS) *answer = cycle.driver().EventCreate(&event, 0);
      if (*answer == CUDA_SUCCESS) *answer = cycle.driver().EventDestroy(event);
    };
    std::thread one(work, &code[0]);
    std::thread two(work, &code[1]);
    one.join();
    two.join();
    return code[0] != CUDA_SUCCESS ? code[0] : code[1];
  }
};

TEST(Positive, TwoThreads) {
  const auto lifecycle = Lifecycle::Of<Threaded>("threaded").WithCurrentContext();
  EXPECT_UNWINDS_CLEANLY(lifecycle);
  EXPECT_ALLOCATION_NEUTRAL(lifecycle, {.cycles = 3});
}

TEST(Positive, CodesOfItsOwnAreDeclared) {
  const auto lifecycle = Lifecycle("own_codes").WithCurrentContext().AnyCode().Init([](DriverRef driver) {
    CUstream stream = nullptr;
    if (driver.StreamCreate(&stream, 0) != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
    return driver.StreamDestroy(stream) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
  });
  EXPECT_UNWINDS_CLEANLY(lifecycle);
}

TEST(Positive, StepsThatReportByBoolOrInt) {
  CUstream stream = nullptr;
  const auto lifecycle = Lifecycle("bool_and_int")
                             .WithCurrentContext()
                             .Init([&](DriverRef driver) { return driver.StreamCreate(&stream, 0) == CUDA_SUCCESS; })
                             .Teardown([&](DriverRef driver) { return driver.StreamDestroy(stream) == CUDA_SUCCESS ? 0 : -1; });
  EXPECT_UNWINDS_CLEANLY(lifecycle);
}

// What the driver answers to the second try is its answer, too.
struct TriesToFreeAgain {
  CUdeviceptr memory = 0;
  CUresult Init(DriverRef driver) { return driver.MemAlloc(&memory, 256); }
  CUresult Teardown(DriverRef driver) {
    const CUresult code = driver.MemFree(memory);
    return code == CUDA_SUCCESS ? code : driver.MemFree(memory);
  }
};

TEST(WrongCode, TheAnswerToASecondTryIsTheDrivers) {
  const Audit audit = Sweep(Lifecycle::Of<TriesToFreeAgain>("tries_again").WithCurrentContext(), {.hows = {"refuse", "after"}});
  EXPECT_THAT(audit.findings, IsEmpty()) << audit.Text();
  EXPECT_EQ(audit.fired, audit.trials);
}

// Answers what only a call of its teardown is answered.
struct AsksInTheEnd {
  CUevent event = nullptr;
  CUresult Init(DriverRef) { return CUDA_SUCCESS; }
  CUresult Work(DriverRef driver) { return driver.EventCreate(&event, 0) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }
  CUresult Teardown(DriverRef driver) {
    CUdevice none = 0;
    (void)driver.DeviceGet(&none, 99);
    return event == nullptr ? CUDA_SUCCESS : driver.EventDestroy(event);
  }
};

TEST(WrongCode, WhatALaterStepIsAnsweredIsNoExcuse) {
  const Audit audit = Replay(Lifecycle::Of<AsksInTheEnd>("asks_in_the_end").WithCurrentContext(), {"cuEventCreate#1=OUT_OF_MEMORY,refuse"});
  EXPECT_THAT(audit.Text(), ::testing::HasSubstr("wrong_code"));
}

}  // namespace
}  // namespace cuaudit::testing::positive_test
