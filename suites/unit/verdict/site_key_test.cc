// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "suites/support/journal_image.h"

namespace cuaudit::testing::site_key_test {
namespace {

using driver::CallId;
using harness::SiteKey;
using harness::TraceHash;

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
}  // namespace cuaudit::testing::site_key_test
