// SPDX-License-Identifier: MIT
#include "harness/sweep/run/site_text.h"

#include <gtest/gtest.h>

#include "suites/support/journal_image.h"

namespace cuaudit::harness::site_text_test {
namespace {

using cuaudit::testing::JournalImage;
using cuaudit::testing::Trace;

std::vector<std::string> FunctionsOf(faults::RecordKind kind, std::vector<std::uint64_t> frames) {
  Trace trace;
  trace.CreateStream(0x10).Stack(1);
  JournalImage image(trace);
  image.Module("/opt/none/prog").Module("/opt/none/libc.so.6").Stack(1, frames);
  Site site = image.ledger().objects.at(0).acquired;
  site.record_kind = kind;
  SiteTexts texts;
  std::vector<std::string> functions;
  for (const report::Frame& frame : texts.Text(image.view(), site, 1)->stack) functions.push_back(frame.module + " " + frame.function);
  return functions;
}

constexpr std::uint64_t kProgram = 0;
constexpr std::uint64_t kCLibrary = 1;

// atexit and pthread_create may be given a function of the driver.
TEST(SiteTexts, ACallThatTheCLibraryMakesIsNotNamedByAFunctionOfIt) {
  const std::uint64_t inner = JournalImage::Frame(kCLibrary, 0x10);
  const std::uint64_t outer = JournalImage::Frame(kCLibrary, 0x20);
  using faults::RecordKind;
  EXPECT_EQ(FunctionsOf(RecordKind::Call, {inner, outer}), std::vector<std::string>{"libc.so.6 the C library"});
  EXPECT_EQ(FunctionsOf(RecordKind::Call, {inner, JournalImage::Frame(kProgram, 0x30), outer}),
            (std::vector<std::string>{"libc.so.6 ", "prog "}));
  EXPECT_EQ(FunctionsOf(RecordKind::Stop, {inner}), std::vector<std::string>{"libc.so.6 "}) << "where a thread stopped may be there";
}

}  // namespace
}  // namespace cuaudit::harness::site_text_test
