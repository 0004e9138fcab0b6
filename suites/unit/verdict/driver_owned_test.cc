// SPDX-License-Identifier: MIT
// What of the host is the driver's and not the program's, and which modules are interpreters.
#include "harness/verdict/host/driver_owned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/verdict/judge.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::driver_owned_test {
namespace {

using driver::CallId;
using driver::Kind;
using faults::HostCall;
using harness::Judgement;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A block allocated by malloc <- `module`, and whether it counts as the driver's.
bool OwnedByDriver(std::string_view module, std::string_view outer = "/usr/bin/program") {
  Trace trace;
  trace.Host(HostCall::Allocate, 0x5000, 64).Stack(1);
  JournalImage image(trace);
  image.Module("/usr/lib/libc.so.6").Module(module).Module(outer);
  image.Stack(1, {JournalImage::Frame(0, 0x10), JournalImage::Frame(1, 0x20), JournalImage::Frame(2, 0x30)});
  harness::Ledger ledger = image.ledger();
  harness::MarkDriverOwned(image.view(), &ledger);
  EXPECT_EQ(ledger.objects.size(), 1u);
  return ledger.objects.at(0).driver_owned;
}

TEST(DriverOwned, BlocksThatTheDriverAllocatedAreItsOwn) {
  EXPECT_TRUE(OwnedByDriver("/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04"));
  EXPECT_TRUE(OwnedByDriver("/usr/lib/x86_64-linux-gnu/libnvidia-ptxjitcompiler.so.580.159.04"));
  EXPECT_TRUE(OwnedByDriver("/opt/cuaudit/lib/cuaudit/libcuda.so.1"));
}

TEST(DriverOwned, BlocksOfTheProgramStayItsOwn) {
  EXPECT_FALSE(OwnedByDriver("/usr/bin/program", "/usr/lib/libcuda.so.580.159.04")) << "a host function that the driver called back";
  EXPECT_FALSE(OwnedByDriver("/usr/lib/libcudart.so.13"));
  EXPECT_FALSE(OwnedByDriver("/usr/lib/libavcodec.so.60"));
}

TEST(DriverOwned, LanguageRuntimesAllocateForTheirCaller) {
  EXPECT_TRUE(OwnedByDriver("/usr/lib/libstdc++.so.6", "/usr/lib/libcuda.so.580.159.04"));
  EXPECT_FALSE(OwnedByDriver("/usr/lib/libstdc++.so.6", "/usr/bin/program"));
}

// Code that no module holds, a compiler's at run time for one, is the program's, whoever called it.
TEST(DriverOwned, GeneratedCodeIsTheProgramsOwn) {
  Trace trace;
  trace.Host(HostCall::Allocate, 0x5000, 64).Stack(1);
  JournalImage image(trace);
  image.Module("/usr/lib/libcuda.so.580.159.04");
  image.Stack(1, {JournalImage::Frame(faults::kNoModule, 0x10), JournalImage::Frame(0, 0x20)});
  harness::Ledger ledger = image.ledger();
  harness::MarkDriverOwned(image.view(), &ledger);
  EXPECT_FALSE(ledger.objects.at(0).driver_owned);
}

TEST(DriverOwned, TheDriverIsKnownByItsPathToo) {
  Trace trace;
  trace.Host(HostCall::Allocate, 0x5000, 64).Stack(1);
  JournalImage image(trace);
  image.Module("/opt/mine/driver.so").DriverPath("/opt/mine/driver.so");
  image.Stack(1, {JournalImage::Frame(0, 0x10)});
  harness::Ledger ledger = image.ledger();
  harness::MarkDriverOwned(image.view(), &ledger);
  EXPECT_TRUE(ledger.objects.at(0).driver_owned);
}

TEST(DriverOwned, DriverObjectsAndUnknownStacksAreNever) {
  Trace trace;
  trace.Host(HostCall::Allocate, 0x5000, 64);
  trace.Call(driver::CallId::StreamCreate).Out(0, 0x10).Stack(1);
  JournalImage image(trace);
  image.Module("/usr/lib/libcuda.so.580.159.04");
  image.Stack(1, {JournalImage::Frame(0, 0x10)});
  harness::Ledger ledger = image.ledger();
  harness::MarkDriverOwned(image.view(), &ledger);
  for (const harness::Object& object : ledger.objects) EXPECT_FALSE(object.driver_owned);
}

TEST(DriverOwned, ALibraryThatAnInterpreterOpensItselfHoldsAModuleForGood) {
  for (const auto& [opener, kept] : {std::pair{"/usr/bin/python3.11", true}, std::pair{"/usr/lib/libpython3.11.so.1.0", true},
                                     std::pair{"/usr/lib/python3/_ctypes.so", false}, std::pair{"/usr/bin/program", false}}) {
    Trace trace;
    trace.Host(HostCall::Dlopen, 0x5000).Stack(1);
    trace.Host(HostCall::DescriptorOpen, 0x7).Stack(1);
    trace.Host(HostCall::MutexInit, 0x6000).Stack(1);
    trace.Host(HostCall::Map, 0x7000, 4096).Stack(1);
    trace.Host(HostCall::Allocate, 0x8000, 600).Stack(1);
    JournalImage image(trace);
    image.Module("/opt/lib/libcuaudit_host_basic.so").Module(opener).Module("/usr/bin/python3.11");
    image.Stack(1, {JournalImage::Frame(0, 0x10), JournalImage::Frame(1, 0x20), JournalImage::Frame(2, 0x30)});
    harness::Ledger ledger = image.ledger();
    harness::MarkDriverOwned(image.view(), &ledger);
    EXPECT_EQ(ledger.objects.at(0).library_kept, kept) << opener;
    EXPECT_FALSE(ledger.objects.at(1).library_kept) << "a file is closed by who opened it";
    EXPECT_EQ(ledger.objects.at(2).library_kept, kept) << "its own lock";
    EXPECT_EQ(ledger.objects.at(3).library_kept, kept) << "its own pool";
    EXPECT_EQ(ledger.objects.at(4).library_kept, kept) << "its own object";
  }
}

// A Python function stands in a call stack where the frames of its interpreter were.
TEST(DriverOwned, APythonFunctionIsItsInterpreter) {
  Trace trace;
  trace.Host(HostCall::Map, 0x7000, 4096).Stack(1);
  trace.Host(HostCall::DescriptorOpen, 0x7).Stack(1);
  trace.Host(HostCall::Allocate, 0x8000, 600).Stack(1);
  JournalImage image(trace);
  image.Module("/usr/lib/libc.so.6").PythonFunction("load", "/usr/lib/python3/tool.py");
  image.Stack(1, {JournalImage::Frame(0, 0x10), faults::PythonFrame(0, 12)});
  harness::Ledger ledger = image.ledger();
  harness::MarkDriverOwned(image.view(), &ledger);
  EXPECT_TRUE(ledger.objects.at(0).library_kept);
  EXPECT_FALSE(ledger.objects.at(0).driver_owned);
  EXPECT_FALSE(ledger.objects.at(1).library_kept) << "a file is closed by who opened it";
  EXPECT_FALSE(ledger.objects.at(2).library_kept) << "the function called malloc by ctypes";
}

TEST(DriverOwned, WhatAHelperTakesThatMakesNoDriverCallIsNobodys) {
  Trace trace;
  trace.Host(HostCall::DescriptorOpen, 0x7);
  trace.CreateStream(0x10).Process(200);
  trace.Host(HostCall::DescriptorOpen, 0x7).Process(200);
  trace.Host(HostCall::DescriptorOpen, 0x7).Process(300);
  const JournalImage image(trace);
  harness::Ledger ledger = image.ledger();
  harness::MarkDriverOwned(image.view(), &ledger);
  ASSERT_EQ(ledger.objects.size(), 4u);
  EXPECT_FALSE(ledger.objects[0].part_of_other) << "the first process makes no call either, and is the subject";
  EXPECT_FALSE(ledger.objects[2].part_of_other);
  EXPECT_TRUE(ledger.objects[3].part_of_other);
}

TEST(DriverOwned, WhatAHelperDoesWrongIsNobodys) {
  Trace trace;
  trace.CreateStream(0x10);
  for (const std::uint32_t pid : {kProcess, 300U}) {
    trace.Host(HostCall::MutexInit, 0x5000).Process(pid);
    trace.Host(HostCall::MutexDestroyedLocked, 0x5000).Process(pid);
    trace.Host(HostCall::MutexDestroyedLocked, 0x6000).Process(pid);  // one that nobody saw come
  }
  const JournalImage image(trace);
  harness::Ledger ledger = image.ledger();
  ASSERT_EQ(ledger.violations.size(), 4u);
  harness::MarkDriverOwned(image.view(), &ledger);
  ASSERT_EQ(ledger.violations.size(), 2u);
  for (const harness::Violation& violation : ledger.violations) EXPECT_EQ(violation.pid, kProcess);
}

TEST(DriverOwned, RecordsThatStoppedHalfwayTellNothingOfTheHost) {
  Trace trace;
  trace.CreateStream(0x10);
  trace.Host(HostCall::DescriptorOpen, 0x7);
  trace.Host(HostCall::MutexDestroyedLocked, 0x5000);
  JournalImage image(trace);
  image.Flags(faults::kHostStopped);
  harness::Ledger ledger = image.ledger();
  harness::MarkDriverOwned(image.view(), &ledger);
  EXPECT_TRUE(ledger.violations.empty());
  EXPECT_FALSE(ledger.objects.at(0).part_of_other) << "the driver's are judged as ever";
  EXPECT_TRUE(ledger.objects.at(1).part_of_other);
}

TEST(DriverOwned, ViolationsOfTheDriversOwnObjectsAreDropped) {
  Trace trace;
  trace.Host(HostCall::MutexInit, 0x5000, 0).Stack(1);
  trace.Host(HostCall::MutexFreed, 0x5000, 1).Stack(1);
  trace.Host(HostCall::MutexInit, 0x6000, 0).Stack(2);
  trace.Host(HostCall::MutexFreed, 0x6000, 1).Stack(2);
  JournalImage image(trace);
  image.Module("/usr/lib/libcuda.so.580.159.04").Module("/usr/bin/program");
  image.Stack(1, {JournalImage::Frame(0, 0x10)}).Stack(2, {JournalImage::Frame(1, 0x10)});
  harness::Ledger ledger = image.ledger();
  const std::size_t before = ledger.violations.size();
  harness::MarkDriverOwned(image.view(), &ledger);
  EXPECT_EQ(before, 4u);
  ASSERT_EQ(ledger.violations.size(), 2u);
  for (const harness::Violation& violation : ledger.violations) EXPECT_EQ(violation.handle, 0x6000u);
}

TEST(Interpreters, AreKnownByTheNamesOfTheirFiles) {
  for (const char* const path : {"/usr/bin/python3.12", "/usr/lib/libpython3.11.so.1.0", "perl", "/opt/R/lib/libR.so", "/usr/bin/Rscript",
                                 "/usr/lib/jvm/libjvm.so", "libmonosgen-2.0.so.1", "/usr/lib/liboctinterp.so.10"}) {
    EXPECT_TRUE(harness::IsInterpreter(path)) << path;
  }
}

TEST(Interpreters, OtherFilesAreNone) {
  for (const char* const path : {"", "/", "/usr/lib/python3/dist-packages/numpy/core.so", "/home/perl/program", "pythonic",
                                 "libpython_x.so", "Python3", "mypython3", "/usr/lib/libc.so.6", "/usr/bin/r"}) {
    EXPECT_FALSE(harness::IsInterpreter(path)) << path;
  }
}

enum class Fate { Destroyed, Refused, Forgotten };

constexpr std::uint32_t kInDriver = 1;
constexpr std::uint32_t kInProgram = 2;

// A context with a thread and two mappings that the driver made for it, by their call stacks; a third mapping it keeps in any case.
Trace ContextWithWorkers(Fate fate, bool rehearsal = false) {
  Trace t;
  if (!rehearsal) t.Call(CallId::EventCreate).Refused(CUDA_ERROR_OUT_OF_MEMORY);
  t.Host(HostCall::Map, 0x30000, 4096).Stack(kInDriver);
  t.Call(CallId::CtxCreate_v4).Out(0, 0x70);
  t.Host(HostCall::ThreadCreate, 0x900).Stack(kInDriver);
  for (const std::uint64_t address : {0x10000U, 0x20000U}) t.Host(HostCall::Map, address, 4096).Stack(kInDriver);
  if (fate == Fate::Destroyed) {
    t.Call(CallId::CtxDestroy_v2).In(0, 0x70);
    t.Host(HostCall::ThreadJoin, 0x900);
    for (const std::uint64_t address : {0x10000U, 0x20000U}) t.Host(HostCall::Unmap, address, 4096);
  }
  if (fate == Fate::Refused) t.Call(CallId::CtxDestroy_v2).In(0, 0x70).Refused(CUDA_ERROR_INVALID_VALUE);
  t.CreateStream(0x10);
  t.DestroyStream(0x10);
  return t;
}

Judgement JudgeWorkers(const Trace& trial, faults::DriverKind driver = faults::DriverKind::Genuine) {
  JournalImage before(ContextWithWorkers(Fate::Destroyed, true));
  JournalImage after(trial);
  harness::Ledger ledgers[2];
  for (JournalImage* const image : {&before, &after}) {
    image->Module("/usr/lib/libcuda.so.1").Module("/home/me/program").Driver(driver);
    image->Stack(kInDriver, {JournalImage::Frame(0, 0x10)}).Stack(kInProgram, {JournalImage::Frame(1, 0x10)});
    harness::Ledger& ledger = ledgers[image == &after ? 1 : 0];
    ledger = image->ledger();
    harness::MarkDriverOwned(image->view(), &ledger);
  }
  return Judge({&ledgers[0], &before.view(), {}}, {&ledgers[1], &after.view(), {1, 0, false}}, true, {});
}

TEST(DriverOwned, ThreadsAndMappingsOfTheDriverAreToldUnderTheirContext) {
  const Judgement refused = JudgeWorkers(ContextWithWorkers(Fate::Refused));
  EXPECT_THAT(refused.findings, IsEmpty());
  ASSERT_THAT(refused.notes, SizeIs(1));
  EXPECT_EQ(Words(refused.notes[0].detail), "holds 1 thread, 2 mappings of the driver");
  const Judgement leaked = JudgeWorkers(ContextWithWorkers(Fate::Forgotten));
  ASSERT_THAT(leaked.findings, SizeIs(1));
  EXPECT_EQ(leaked.findings[0].kind, Kind::Context);
  EXPECT_EQ(Words(leaked.findings[0].detail), "holds 1 thread, 2 mappings of the driver");
  EXPECT_THAT(leaked.notes, IsEmpty());
}

TEST(DriverOwned, WhatTheDriverKeepsWithoutAContextIsNobodys) {
  Trace more = ContextWithWorkers(Fate::Destroyed);
  more.Host(HostCall::Map, 0x40000, 4096).Stack(kInDriver);
  more.Host(HostCall::ThreadCreate, 0x901).Stack(kInDriver);
  const Judgement judgement = JudgeWorkers(more);
  EXPECT_THAT(judgement.findings, IsEmpty());
  EXPECT_THAT(judgement.notes, IsEmpty());
  const Judgement simulated = JudgeWorkers(ContextWithWorkers(Fate::Forgotten), faults::DriverKind::Simulated);
  ASSERT_THAT(simulated.findings, SizeIs(1));
  EXPECT_THAT(simulated.findings[0].detail, IsEmpty()) << "it holds nothing for a context";
}

TEST(DriverOwned, AThreadAndAMappingOfTheProgramStayBesideTheContext) {
  Trace more = ContextWithWorkers(Fate::Forgotten);
  more.Host(HostCall::Map, 0x40000, 4096).Stack(kInProgram);
  more.Host(HostCall::ThreadCreate, 0x901).Stack(kInProgram);
  const Judgement judgement = JudgeWorkers(more);
  ASSERT_THAT(judgement.findings, SizeIs(3));
  EXPECT_EQ(Words(judgement.findings[0].detail), "holds 1 thread, 2 mappings of the driver");
  EXPECT_EQ(judgement.findings[1].kind, Kind::HostMapping);
  EXPECT_EQ(judgement.findings[2].kind, Kind::Thread);
}

}  // namespace
}  // namespace cuaudit::testing::driver_owned_test
