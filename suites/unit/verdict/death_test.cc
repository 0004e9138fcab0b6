// SPDX-License-Identifier: MIT
// Places: where a program died and of what, and the key of a place that other builds and runs have too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/parts.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::death_test {
namespace {

using driver::CallId;
using faults::ProcessEvent;
using faults::RecordKind;
using harness::DeathFinding;
using harness::DeathOf;
using harness::SiteKey;
using harness::TraceHash;
using harness::TrialFinding;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The place and cause of a death, from what the journal holds of it; and which records are none of it.

Trace Allocated() {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Alloc(0x7000);
  return t;
}

TrialFinding Of(const Trace& trace, int signal, bool timed_out = false) {
  const JournalImage image(trace);
  const harness::Evidence trial = image.Evidence(0, signal, timed_out);
  return DeathFinding(DeathOf(trial.ending), trial);
}

bool IsLastCall(const TrialFinding& finding) { return finding.where.record_kind == RecordKind::Call; }

TEST(Death, OfASignalIsWhereItsRecordSays) {
  Trace t = Allocated();
  t.Stop(SIGSEGV, SEGV_MAPERR, 0x18);
  const TrialFinding finding = Of(t, SIGSEGV);
  EXPECT_EQ(finding.where.record_kind, RecordKind::Stop);
  EXPECT_EQ(finding.where.call, SIGSEGV);
  EXPECT_NE(finding.where_key, 0U);
  EXPECT_EQ(Words(finding.detail), "SIGSEGV at 0x18, in the null page; its last calls were cuMemAlloc");
}

TEST(Death, NamesTheLastCallsAndNotTheFirst) {
  Trace t = Allocated();
  for (std::uint64_t address = 0x8000; address < 0xd000; address += 0x1000) t.Alloc(address);
  t.Free(0x7000);
  t.Stop(SIGSEGV, SEGV_MAPERR, 0x18);
  EXPECT_THAT(Words(Of(t, SIGSEGV).detail), HasSubstr("its last calls were cuMemAlloc, cuMemAlloc, cuMemAlloc, cuMemAlloc, cuMemFree"));
}

TEST(Death, SaysWhatLiesAtTheAddress) {
  const struct {
    std::int64_t code;
    std::uint64_t address;
    const char* words;
  } cases[] = {{SEGV_MAPERR, 0x500000, "at an address where nothing is mapped"},
               {SEGV_ACCERR, 0x500000, "in memory that does not allow the access"},
               {SI_KERNEL, 0, "at an address that no pointer can have"},
               {SEGV_ACCERR, 0x7010, "in live device_memory"},
               {SI_TKILL, 0, "raised by a call"}};
  for (const auto& one : cases) {
    Trace t = Allocated();
    t.Stop(SIGSEGV, one.code, one.address);
    EXPECT_THAT(Words(Of(t, SIGSEGV).detail), HasSubstr(one.words));
  }
  Trace t = Allocated();
  t.Free(0x7000);
  t.Stop(SIGSEGV, SEGV_MAPERR, 0x7010);
  EXPECT_THAT(Words(Of(t, SIGSEGV).detail), StartsWith("SIGSEGV in released device_memory;"));
}

TEST(Death, OfAnotherSignalOrProcessTellsNothing) {
  Trace other_signal = Allocated();
  other_signal.Stop(SIGBUS, BUS_ADRERR, 0x500000);
  Trace other_process = Allocated();
  other_process.Stop(SIGSEGV, SEGV_MAPERR, 0).Process(200);
  for (const Trace& t : {other_signal, other_process}) {
    const TrialFinding finding = Of(t, SIGSEGV);
    EXPECT_TRUE(IsLastCall(finding));
    EXPECT_THAT(Words(finding.detail), StartsWith("SIGSEGV at an unknown place: the program handles it itself"));
  }
  EXPECT_EQ(Words(Of(Allocated(), SIGKILL).detail), "its last calls were cuMemAlloc") << "nobody can handle it";
}

TEST(Hang, IsInTheCallThatAThreadIsInside) {
  Trace t = Allocated();
  const std::uint64_t wait = t.Call(CallId::EventSynchronize).Unfinished().begin();
  t.Call(CallId::StreamCreate).Out(0, 0x20);
  t.Stop(0, SI_QUEUE);
  t.Stop(0, SI_TKILL, 0, wait).Thread(101);
  const TrialFinding finding = Of(t, SIGKILL, true);
  EXPECT_TRUE(IsLastCall(finding));
  EXPECT_EQ(finding.where.call, static_cast<std::uint16_t>(CallId::EventSynchronize));
  EXPECT_THAT(Words(finding.detail), StartsWith("stuck in cuEventSynchronize;"));
}

TEST(Hang, OutsideOfTheDriverIsWhereTheFirstThreadIs) {
  Trace t = Allocated();
  t.Stop(0, SI_TKILL).Thread(101);
  const std::uint64_t first = t.Stop(0, SI_QUEUE).begin();
  const TrialFinding finding = Of(t, SIGKILL, true);
  EXPECT_EQ(finding.where.begin, first);
  EXPECT_THAT(Words(finding.detail), StartsWith("stuck outside of the driver;"));
}

TEST(Hang, ThatNobodyAnswersIsInTheCallThatHasNotReturned) {
  Trace t = Allocated();
  EXPECT_THAT(Words(Of(t, SIGKILL, true).detail), StartsWith("stuck at an unknown place;"));
  t.Call(CallId::EventSynchronize).Unfinished();
  EXPECT_THAT(Words(Of(t, SIGKILL, true).detail), StartsWith("stuck in cuEventSynchronize;"));
}

// A crash that a handler survived is none.
TEST(Death, OfAProgramThatWentOnIsNone) {
  Trace t = Allocated();
  t.Stop(SIGSEGV, SEGV_MAPERR, 0);
  t.Event(ProcessEvent::Exit);
  const JournalImage image(t);
  EXPECT_EQ(DeathOf(image.Evidence(0).ending), harness::Verdict::Pass);
  EXPECT_THAT(Words(Of(t, SIGABRT).detail), Not(HasSubstr("SIGSEGV")));
}

Trace OneStream() {
  Trace t;
  t.CreateStream(0x10).Stack(1);
  return t;
}

std::uint64_t KeyOf(const JournalImage& image) { return SiteKey(image.view(), image.ledger().objects.at(0).acquired); }

TEST(SiteKey, FollowsBuildIdAndOffsetNotModuleNumber) {
  JournalImage first(OneStream());
  first.Module("/opt/a/prog", {1, 2, 3}).Stack(1, {JournalImage::Frame(0, 0x1234)});
  JournalImage second(OneStream());
  second.Module("/lib/other", {9}).Module("/elsewhere/prog", {1, 2, 3}).Stack(1, {JournalImage::Frame(1, 0x1234)});
  EXPECT_EQ(KeyOf(first), KeyOf(second));
}

TEST(SiteKey, FallsBackToTheFileName) {
  JournalImage first(OneStream());
  first.Module("/opt/a/prog").Stack(1, {JournalImage::Frame(0, 0x1234)});
  JournalImage second(OneStream());
  second.Module("/opt/b/prog").Stack(1, {JournalImage::Frame(0, 0x1234)});
  JournalImage third(OneStream());
  third.Module("/opt/b/gorp").Stack(1, {JournalImage::Frame(0, 0x1234)});
  EXPECT_EQ(KeyOf(first), KeyOf(second));
  EXPECT_NE(KeyOf(first), KeyOf(third));
}

TEST(SiteKey, TellsOffsetsDepthsAndCallsApart) {
  JournalImage base(OneStream());
  base.Module("/prog", {1}).Stack(1, {JournalImage::Frame(0, 0x10), JournalImage::Frame(0, 0x20)});
  JournalImage offset(OneStream());
  offset.Module("/prog", {1}).Stack(1, {JournalImage::Frame(0, 0x10), JournalImage::Frame(0, 0x21)});
  JournalImage depth(OneStream());
  depth.Module("/prog", {1}).Stack(1, {JournalImage::Frame(0, 0x10)});
  Trace event;
  event.Call(CallId::EventCreate).Out(0, 0x10).Stack(1);
  JournalImage call(event);
  call.Module("/prog", {1}).Stack(1, {JournalImage::Frame(0, 0x10), JournalImage::Frame(0, 0x20)});
  EXPECT_NE(KeyOf(base), KeyOf(offset));
  EXPECT_NE(KeyOf(base), KeyOf(depth));
  EXPECT_NE(KeyOf(base), KeyOf(call));
}

TEST(SiteKey, IgnoresVersionsAndGeneratedCodesAddresses) {
  Trace old_version;
  old_version.Call(CallId::MemAlloc_v2).Out(0, 0x10).In(1, 1).Stack(1);
  Trace new_version;
  new_version.Call(CallId::MemAlloc).Out(0, 0x10).In(1, 1).Stack(1);
  JournalImage first(old_version);
  first.Stack(1, {JournalImage::Frame(faults::kNoModule, 0x1000)});
  JournalImage second(new_version);
  second.Stack(1, {JournalImage::Frame(faults::kNoModule, 0x2000)});
  EXPECT_EQ(KeyOf(first), KeyOf(second));
}

std::uint64_t PythonKey(std::string_view name, std::string_view file, std::uint64_t line, bool second_row = false) {
  JournalImage image(OneStream());
  if (second_row) image.PythonFunction("another", "/elsewhere.py");
  image.PythonFunction(name, file).Stack(1, {faults::PythonFrame(second_row ? 1 : 0, line)});
  return KeyOf(image);
}

TEST(SiteKey, OfPythonIsNameFileAndLine) {
  const std::uint64_t key = PythonKey("Encoder.step", "/home/one/encoder.py", 12);
  EXPECT_EQ(key, PythonKey("Encoder.step", "/home/two/encoder.py", 12)) << "whatever directory it is in";
  EXPECT_EQ(key, PythonKey("Encoder.step", "/home/one/encoder.py", 12, true)) << "whichever row it has";
  EXPECT_NE(key, PythonKey("Encoder.step", "/home/one/encoder.py", 13));
  EXPECT_NE(key, PythonKey("Encoder.close", "/home/one/encoder.py", 12));
  EXPECT_NE(key, PythonKey("Encoder.step", "/home/one/decoder.py", 12));
}

TEST(SiteKey, OfPythonTellsPackagesApart) {
  EXPECT_NE(PythonKey("<module>", "/lib/one/__init__.py", 1), PythonKey("<module>", "/lib/two/__init__.py", 1));
  EXPECT_EQ(PythonKey("<module>", "/a/one/__init__.py", 1), PythonKey("<module>", "/b/one/__init__.py", 1));
  EXPECT_EQ(PythonKey("<module>", "__init__.py", 1), PythonKey("<module>", "__init__.py", 1)) << "no directory";
}

TEST(SiteKey, OfPythonWithoutARowIsItsLine) {
  JournalImage first(OneStream());
  first.Stack(1, {faults::PythonFrame(faults::kMaxPythonFunctions, 7)});
  JournalImage second(OneStream());
  second.Stack(1, {faults::PythonFrame(faults::kMaxPythonFunctions, 8)});
  EXPECT_NE(KeyOf(first), KeyOf(second));
}

TEST(TraceHash, IgnoresHandlesThreadsAndProcesses) {
  Trace a;
  a.CreateStream(0x10).Stack(1);
  a.Call(CallId::EventCreate).Out(0, 0x11).Thread(7).Stack(2);
  Trace b;
  b.CreateStream(0x9910).Stack(1).Process(5).Thread(50);
  b.Call(CallId::EventCreate).Out(0, 0x9911).Stack(2).Process(5).Thread(51);
  const JournalImage first(a);
  const JournalImage second(b);
  EXPECT_EQ(TraceHash(first.Evidence()), TraceHash(second.Evidence()));
}

TEST(TraceHash, IgnoresWhichThreadCameFirst) {
  Trace a;
  a.CreateStream(0x10).Thread(1);
  a.Call(CallId::EventCreate).Out(0, 0x11).Thread(2);
  Trace b;
  b.Call(CallId::EventCreate).Out(0, 0x11).Thread(1);
  b.CreateStream(0x10).Thread(2);
  const JournalImage first(a);
  const JournalImage second(b);
  EXPECT_EQ(TraceHash(first.Evidence()), TraceHash(second.Evidence()));
}

TEST(TraceHash, SeesOrderResultAndStack) {
  Trace base;
  base.CreateStream(0x10);
  base.Call(CallId::EventCreate).Out(0, 0x11);
  Trace order;
  order.Call(CallId::EventCreate).Out(0, 0x11);
  order.CreateStream(0x10);
  Trace result;
  result.CreateStream(0x10);
  result.Call(CallId::EventCreate).Fails(CUDA_ERROR_OUT_OF_MEMORY);
  Trace longer = base;
  longer.CreateStream(0x12);
  const JournalImage images[] = {JournalImage(base), JournalImage(order), JournalImage(result), JournalImage(longer)};
  for (int i = 1; i < 4; ++i) EXPECT_NE(TraceHash(images[0].Evidence()), TraceHash(images[i].Evidence())) << i;
  Trace stacked;
  stacked.CreateStream(0x10).Stack(1);
  stacked.Call(CallId::EventCreate).Out(0, 0x11);
  JournalImage here(stacked);
  here.Module("/prog", {1}).Stack(1, {JournalImage::Frame(0, 0x10)});
  EXPECT_NE(TraceHash(images[0].Evidence()), TraceHash(here.Evidence()));
}

TEST(TraceHash, SeesThatACallNeverReturnedAndNoCallOfTheDriversOwn) {
  Trace base;
  base.CreateStream(0x10);
  Trace unfinished;
  unfinished.CreateStream(0x10).Unfinished();
  Trace nested = base;
  nested.Call(CallId::EventCreate).Out(0, 0x11).Flags(faults::kForwarded | faults::kNested);
  const JournalImage images[] = {JournalImage(base), JournalImage(unfinished), JournalImage(nested)};
  EXPECT_NE(TraceHash(images[0].Evidence()), TraceHash(images[1].Evidence()));
  EXPECT_EQ(TraceHash(images[0].Evidence()), TraceHash(images[2].Evidence()));
}

}  // namespace
}  // namespace cuaudit::testing::death_test
