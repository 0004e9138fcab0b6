// SPDX-License-Identifier: MIT
// planted_test.cc: lifecycles with one defect each, and the finding that must come of it.
#include <cuaudit/gtest.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::planted_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A stream and an event; how Init and Teardown go wrong is each test's own.
struct Pair {
  CUstream stream = nullptr;
  CUevent event = nullptr;

  CUresult Make(DriverRef driver) {
    const CUresult code = driver.StreamCreate(&stream, 0);
    return code == CUDA_SUCCESS ? driver.EventCreate(&event, 0) : code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = event == nullptr ? CUDA_SUCCESS : driver.EventDestroy(event);
    const CUresult two = stream == nullptr ? CUDA_SUCCESS : driver.StreamDestroy(stream);
    event = nullptr;
    stream = nullptr;
    return one == CUDA_SUCCESS ? two : one;
  }
};

struct LosesTheStream : Pair {
  CUresult Init(DriverRef driver) { return Make(driver); }
};

TEST(Leak, AFailedInitLosesWhatItHad) {
  const Audit audit = Sweep(Lifecycle::Of<LosesTheStream>("loses_the_stream").WithCurrentContext());
  EXPECT_THAT(Texts(audit), ElementsAre("leak stream 1 after cuEventCreate#1=OUT_OF_MEMORY,refuse"));
  EXPECT_EQ(audit.findings.at(0).acquired, "cuStreamCreate");
  EXPECT_THAT(audit.findings.at(0).acquired_stack, Contains(HasSubstr("planted_test.cc")));
  EXPECT_THAT(audit.findings.at(0).fault_stack, Contains(HasSubstr("planted_test.cc")));
}

// The unwinding itself stops at its first error.
struct GivesUpUnwinding : Pair {
  CUevent second = nullptr;
  CUresult Init(DriverRef driver) {
    CUresult code = Make(driver);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&second, 0);
    if (code == CUDA_SUCCESS) return code;
    if (event != nullptr && driver.EventDestroy(event) != CUDA_SUCCESS) return code;
    if (stream != nullptr) (void)driver.StreamDestroy(stream);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult code = driver.EventDestroy(second);
    const CUresult rest = Pair::Teardown(driver);
    return code == CUDA_SUCCESS ? rest : code;
  }
};

TEST(Leak, OnSecondOrderOnly) {
  const auto lifecycle = Lifecycle::Of<GivesUpUnwinding>("gives_up_unwinding").WithCurrentContext();
  EXPECT_THAT(Texts(Sweep(lifecycle, {.depth = 1})), IsEmpty());
  const Audit audit = Sweep(lifecycle);
  EXPECT_THAT(Texts(audit), ElementsAre("leak stream 1 after cuEventCreate#2=OUT_OF_MEMORY,refuse cuEventDestroy#1=INVALID_CONTEXT,refuse",
                                        "leak stream 1 after cuEventCreate#2=OUT_OF_MEMORY,refuse cuEventDestroy#1=INVALID_CONTEXT,after"));
}

// Without its stream it loses an event, and where destroying the other one fails as well the memory, too.
struct LosesMoreWhileUnwinding : Pair {
  CUdeviceptr memory = 0;
  CUevent second = nullptr;
  CUresult Init(DriverRef driver) {
    CUresult code = driver.MemAlloc(&memory, 256);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&event, 0);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&second, 0);
    if (code == CUDA_SUCCESS) code = driver.StreamCreate(&stream, 0);
    if (code == CUDA_SUCCESS) return code;
    if (driver.EventDestroy(second) == CUDA_SUCCESS) (void)driver.MemFree(memory);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    (void)driver.MemFree(memory);
    (void)driver.EventDestroy(second);
    return Pair::Teardown(driver);
  }
};

TEST(Leak, OnSecondOrderBehindAnother) {
  const Audit audit =
      Sweep(Lifecycle::Of<LosesMoreWhileUnwinding>("loses_more").WithCurrentContext(), {.calls = {"cuStreamCreate", "cuEventDestroy"}});
  EXPECT_THAT(Texts(audit), Contains("leak event 1 after cuStreamCreate#1=OUT_OF_MEMORY,refuse")) << audit.Text();
  EXPECT_THAT(Texts(audit), Contains(StartsWith("leak device_memory 1 after cuStreamCreate#1=OUT_OF_MEMORY,refuse cuEventDestroy#1=")))
      << audit.Text();
}

struct Swallows : Pair {
  CUresult Init(DriverRef driver) {
    if (Make(driver) != CUDA_SUCCESS) (void)Teardown(driver);
    return CUDA_SUCCESS;
  }
};

TEST(Swallowed, AFailingInitSaysSuccess) {
  const Audit audit = Sweep(Lifecycle::Of<Swallows>("swallows").WithCurrentContext());
  EXPECT_THAT(Texts(audit),
              ElementsAre("swallowed after cuStreamCreate#1=OUT_OF_MEMORY,refuse", "swallowed after cuEventCreate#1=OUT_OF_MEMORY,refuse"));
  EXPECT_THAT(audit.findings.at(0).detail, HasSubstr("init returned CUDA_SUCCESS"));
}

struct Translates : Pair {
  CUresult Init(DriverRef driver) {
    if (Make(driver) == CUDA_SUCCESS) return CUDA_SUCCESS;
    (void)Teardown(driver);
    return CUDA_ERROR_UNKNOWN;
  }
};

TEST(WrongCode, AnotherErrorThanTheDriverAnswered) {
  const Audit audit = Sweep(Lifecycle::Of<Translates>("translates").WithCurrentContext());
  EXPECT_THAT(Texts(audit), ElementsAre("wrong_code after cuStreamCreate#1=OUT_OF_MEMORY,refuse",
                                        "wrong_code after cuEventCreate#1=OUT_OF_MEMORY,refuse"));
}

// Does without its event; what its teardown says is no answer of the driver.
struct TranslatesLater : Pair {
  CUresult Init(DriverRef driver) {
    if (driver.EventCreate(&event, 0) != CUDA_SUCCESS) event = nullptr;
    return driver.StreamCreate(&stream, 0);
  }
  CUresult Teardown(DriverRef driver) { return Pair::Teardown(driver) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN; }
};

TEST(WrongCode, NamesTheFaultOfTheStepThatReports) {
  const std::vector<std::string> both = {"cuEventCreate#1=OUT_OF_MEMORY,refuse", "cuStreamDestroy#1=INVALID_CONTEXT,refuse"};
  const Audit audit = Replay(Lifecycle::Of<TranslatesLater>("translates_later").WithCurrentContext(), both);
  ASSERT_EQ(audit.findings.size(), 1U) << audit.Text();
  EXPECT_EQ(audit.findings[0].where, "cuStreamDestroy");
  EXPECT_THAT(audit.findings[0].detail, HasSubstr("had answered CUDA_ERROR_INVALID_CONTEXT"));
}

struct WritesItsOutput : Pair {
  CUresult Init(Cycle& cycle) {
    cycle.Output("stream", &stream);
    const CUresult code = cycle.driver().StreamCreate(&stream, 0);
    if (code != CUDA_SUCCESS) return code;
    const CUresult second = cycle.driver().EventCreate(&event, 0);
    if (second != CUDA_SUCCESS) (void)cycle.driver().StreamDestroy(stream);
    return second;
  }
};

TEST(OutputWritten, AFailedInitLeavesADeadHandle) {
  const Audit audit = Sweep(Lifecycle::Of<WritesItsOutput>("writes_its_output").WithCurrentContext());
  EXPECT_THAT(Texts(audit), Contains("output_on_failure after cuEventCreate#1=OUT_OF_MEMORY,refuse"));
  EXPECT_THAT(audit.findings.at(0).detail, HasSubstr("'stream'"));
}

// The caller tears down what the failed init has already released.
struct ReleasesTwice : Pair {
  CUresult Init(DriverRef driver) {
    const CUresult code = Make(driver);
    if (code != CUDA_SUCCESS && stream != nullptr) (void)driver.StreamDestroy(stream);
    return code;
  }
};

TEST(DoubleRelease, InitAndTeardownBothRelease) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("it dies of a handle whose object is gone");
  const Audit audit = Sweep(Lifecycle::Of<ReleasesTwice>("releases_twice").WithCurrentContext().TeardownAfterFailedInit());
  EXPECT_THAT(Texts(audit), Contains("double_release stream 1 after cuEventCreate#1=OUT_OF_MEMORY,refuse"));
}

// What a failed init left in a global makes the next one go wrong.
bool started = false;
struct NeverStartsAgain : Pair {
  CUresult Init(DriverRef driver) {
    if (started) return CUDA_ERROR_ALREADY_MAPPED;
    started = true;
    const CUresult code = Make(driver);
    if (code != CUDA_SUCCESS) (void)Pair::Teardown(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    started = false;
    return Pair::Teardown(driver);
  }
};

TEST(NotRecovered, TheNextInitFails) {
  started = false;
  const auto lifecycle = Lifecycle::Of<NeverStartsAgain>("never_starts_again").WithCurrentContext().Prepare([] { started = false; });
  const Audit audit = Sweep(lifecycle);
  EXPECT_THAT(Texts(audit), ElementsAre("not_recovered after cuStreamCreate#1=OUT_OF_MEMORY,refuse",
                                        "not_recovered after cuEventCreate#1=OUT_OF_MEMORY,refuse"));
  EXPECT_THAT(audit.findings.at(0).detail, HasSubstr("init returned CUDA_ERROR_ALREADY_MAPPED"));
}

// Makes an object for nobody once it has failed.
bool failed_before = false;
struct LosesAfterAFailure : Pair {
  CUresult Init(DriverRef driver) {
    CUevent lost = nullptr;
    if (failed_before) (void)driver.EventCreate(&lost, 0);
    const CUresult code = driver.StreamCreate(&stream, 0);
    failed_before = code != CUDA_SUCCESS;
    return code;
  }
};

TEST(NotRecovered, TheNextCycleLosesAnObject) {
  const auto lifecycle =
      Lifecycle::Of<LosesAfterAFailure>("loses_after_a_failure").WithCurrentContext().Prepare([] { failed_before = false; });
  const Audit audit = Sweep(lifecycle, {.calls = {"cuStreamCreate"}});
  EXPECT_THAT(Texts(audit), ::testing::UnorderedElementsAre("leak event 1 after cuStreamCreate#1=OUT_OF_MEMORY,refuse",
                                                            "not_recovered after cuStreamCreate#1=OUT_OF_MEMORY,refuse"));
}

// A stale pointer to what the failed cycle released: the next one uses it.
CUstream cached = nullptr;
struct UsesAStaleStream {
  CUevent event = nullptr;
  CUresult Init(DriverRef driver) {
    if (cached == nullptr) {
      const CUresult code = driver.StreamCreate(&cached, 0);
      if (code != CUDA_SUCCESS) return code;
    }
    const CUresult code = driver.EventCreate(&event, 0);
    if (code != CUDA_SUCCESS) (void)driver.StreamDestroy(cached);
    return code;
  }
  void Work(DriverRef driver) { (void)driver.EventRecord(event, cached); }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = driver.EventDestroy(event);
    const CUresult two = driver.StreamDestroy(cached);
    cached = nullptr;
    return one == CUDA_SUCCESS ? two : one;
  }
};

TEST(NotRecovered, AStaleHandleIsUsedInTheNextCycle) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("it dies of a handle whose object is gone");
  const auto lifecycle = Lifecycle::Of<UsesAStaleStream>("uses_a_stale_stream").WithCurrentContext().Prepare([] { cached = nullptr; });
  const std::vector<std::string> texts = Texts(Sweep(lifecycle));
  EXPECT_THAT(texts, Contains("not_recovered after cuEventCreate#1=OUT_OF_MEMORY,refuse"));
}

struct ReportsABenignFault : Pair {
  CUresult Init(DriverRef driver) {
    int value = 0;
    const CUresult code = driver.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
    return code == CUDA_SUCCESS ? driver.StreamCreate(&stream, 0) : code;
  }
};

TEST(BenignReported, ADeclaredCallIsNotAbsorbed) {
  const auto lifecycle = Lifecycle::Of<ReportsABenignFault>("reports_a_benign_fault").WithCurrentContext().Benign("cuDeviceGetAttribute");
  EXPECT_THAT(Texts(Sweep(lifecycle)), ElementsAre(StartsWith("benign_not_absorbed after cuDeviceGetAttribute#1=")));
}

// One call may fail unheard, the other may not.
struct SwallowsInWork : Pair {
  CUresult Init(DriverRef driver) {
    int value = 0;
    (void)driver.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
    return CUDA_SUCCESS;
  }
  CUresult Work(DriverRef driver) {
    (void)driver.StreamCreate(&stream, 0);
    return CUDA_SUCCESS;
  }
};

TEST(Swallowed, TheStepOfTheFaultThatIsToBeReportedIsNamed) {
  const auto lifecycle = Lifecycle::Of<SwallowsInWork>("swallows_in_work").WithCurrentContext().Benign("cuDeviceGetAttribute");
  const std::string refused = "cuStreamCreate#1=OUT_OF_MEMORY,refuse";
  for (const std::vector<std::string>& faults :
       {std::vector<std::string>{refused}, std::vector<std::string>{"cuDeviceGetAttribute#1=INVALID_VALUE,refuse", refused}}) {
    const Audit audit = Replay(lifecycle, faults);
    ASSERT_THAT(audit.findings, ::testing::SizeIs(1)) << audit.Text();
    EXPECT_EQ(audit.findings[0].rule, "swallowed");
    EXPECT_THAT(audit.findings[0].detail, StartsWith("the fault in work was reported by no step"));
  }
}

// Gives up in its third world, without any call having failed.
TEST(SpuriousFailure, AnInitFailsThoughNoFaultFired) {
  int worlds = 0;
  CUevent event = nullptr;
  const auto lifecycle = Lifecycle("gives_up")
                             .WithCurrentContext()
                             .Prepare([&] { ++worlds; })
                             .Init([&](DriverRef driver) { return worlds > 2 ? CUDA_ERROR_UNKNOWN : driver.EventCreate(&event, 0); })
                             .Teardown([&](DriverRef driver) { return driver.EventDestroy(event); });
  const Audit audit = Sweep(lifecycle, {.depth = 1});
  EXPECT_THAT(Texts(audit), Contains("spurious_failure after cuEventCreate#1=OUT_OF_MEMORY,refuse"));
  EXPECT_EQ(audit.fired, 0U);
}

struct Crashes : Pair {
  CUresult Init(DriverRef driver) {
    const CUresult code = Make(driver);
    if (code != CUDA_SUCCESS) std::abort();
    return code;
  }
};

TEST(Abort, IsAVerdictWhenIsolated) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("it does not survive fork");
  const Audit audit = Sweep(Lifecycle::Of<Crashes>("crashes").WithCurrentContext(), {.isolate = true});
  EXPECT_THAT(Texts(audit),
              ElementsAre("abort after cuStreamCreate#1=OUT_OF_MEMORY,refuse", "abort after cuEventCreate#1=OUT_OF_MEMORY,refuse"));
  EXPECT_EQ(audit.findings.at(1).where, "SIGABRT");
  EXPECT_THAT(audit.findings.at(1).where_stack, ElementsAre(HasSubstr("Init")));
  EXPECT_EQ(audit.findings.at(1).detail, "died in init; SIGABRT; its last calls were cuStreamCreate=SUCCESS, cuEventCreate=OUT_OF_MEMORY");
}

struct Exits : Pair {
  CUresult Init(DriverRef driver) {
    const CUresult code = Make(driver);
    if (code != CUDA_SUCCESS) _exit(0);
    return code;
  }
};

TEST(Abort, LeavingInTheMiddleOfAStepIsNoPass) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("it does not survive fork");
  const Audit audit = Sweep(Lifecycle::Of<Exits>("exits").WithCurrentContext(), {.isolate = true});
  EXPECT_THAT(Texts(audit), Contains("abort after cuStreamCreate#1=OUT_OF_MEMORY,refuse"));
}

struct Hangs : Pair {
  CUresult Init(DriverRef driver) {
    const CUresult code = Make(driver);
    while (code != CUDA_SUCCESS) pause();
    return code;
  }
};

TEST(Hang, EndsAtTheDeadline) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("it does not survive fork");
  const auto lifecycle = Lifecycle::Of<Hangs>("hangs").WithCurrentContext();
  const Audit audit = Sweep(lifecycle, {.calls = {"cuEventCreate"}, .isolate = true, .deadline_ms = 200});
  ASSERT_THAT(Texts(audit), ElementsAre("hang after cuEventCreate#1=OUT_OF_MEMORY,refuse"));
  EXPECT_EQ(audit.findings.at(0).where, "(no driver call)");
  EXPECT_THAT(audit.findings.at(0).where_stack, ElementsAre(HasSubstr("Init")));
  EXPECT_THAT(audit.findings.at(0).detail, HasSubstr("died in init; stuck outside of the driver; its last calls were"));
}

TEST(DeathTest, WithoutIsolationTheTrialIsNamed) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("it does not survive fork");
  const auto lifecycle = Lifecycle::Of<Crashes>("crashes").WithCurrentContext();
  EXPECT_DEATH((void)Sweep(lifecycle),
               "lifecycle 'crashes' ends this process in the trial CUAUDIT_FAULT='cuStreamCreate#1=OUT_OF_MEMORY,refuse'");
}

struct Grows : Pair {
  CUevent lost = nullptr;
  CUresult Init(DriverRef driver) { return Make(driver); }
  CUresult Work(DriverRef driver) { return driver.EventCreate(&lost, 0); }
};

TEST(Growth, OneObjectACycle) {
  const Audit audit = RunCycles(Lifecycle::Of<Grows>("grows").WithCurrentContext(), {.cycles = 3});
  EXPECT_THAT(Texts(audit), ElementsAre("growth event 3"));
  EXPECT_EQ(audit.findings.at(0).detail, "alive after each cycle: 1 2 3 4; from the warm-up on: 1 more a cycle, up to 24 cycles");
}

struct DoubleFree : Pair {
  CUresult Init(DriverRef driver) { return Make(driver); }
  void Teardown(DriverRef driver) {
    (void)driver.StreamDestroy(stream);
    (void)driver.StreamDestroy(stream);
    (void)driver.EventDestroy(event);
  }
};

TEST(DoubleRelease, IsFoundWithoutAnyFault) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("it dies of a handle whose object is gone");
  const auto lifecycle = Lifecycle::Of<DoubleFree>("double_free").WithCurrentContext();
  EXPECT_THAT(Texts(RunCycles(lifecycle)), ElementsAre(StartsWith("double_release stream")));
  EXPECT_THAT(Texts(Sweep(lifecycle, {.depth = 1})), Contains("double_release stream 1"));
}

}  // namespace
}  // namespace cuaudit::testing::planted_test
