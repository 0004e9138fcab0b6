// SPDX-License-Identifier: MIT
// Which references one owner gives back, as call stacks tell.
#include <gtest/gtest.h>

#include <cstdint>

#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/run/site_text.h"
#include "suites/support/journal_image.h"

namespace cuaudit::harness::settle_references_test {
namespace {

using testing::JournalImage;
using testing::Trace;

constexpr std::uint32_t kDecoderOpens = 1, kEncoderOpens = 2, kDecoderCloses = 3, kEncoderCloses = 4;

// Each owner acquires and releases inside of one call of a function of its own.
JournalImage Image(const Trace& trace) {
  JournalImage image(trace);
  const auto frame = [](std::uint64_t offset) { return JournalImage::Frame(0, offset); };
  image.Module("/nowhere/program");
  image.Stack(kDecoderOpens, {frame(0x10), frame(0x1000)}).Stack(kEncoderOpens, {frame(0x20), frame(0x2000)});
  image.Stack(kDecoderCloses, {frame(0x30), frame(0x1000)}).Stack(kEncoderCloses, {frame(0x40), frame(0x2000)});
  return image;
}

Trace Opened(std::uint32_t second = kEncoderOpens) {
  Trace trace;
  trace.Retain().Stack(kDecoderOpens);
  trace.Retain().Stack(second);
  return trace;
}

Trace InTheOrderOfOpening() {
  Trace trace = Opened();
  trace.ReleasePrimary().Stack(kDecoderCloses);
  trace.ReleasePrimary().Stack(kEncoderCloses);
  return trace;
}

TEST(SettleReferences, TheFaultFreeRunIsSettledByItsStacks) {
  const JournalImage image = Image(InTheOrderOfOpening());
  Ledger ledger = image.ledger();
  EXPECT_EQ(ledger.objects[0].released.stack, kEncoderCloses) << "the fold releases the newest first";
  SiteTexts sites;
  SettleReferences(image.view(), &sites, &ledger);
  EXPECT_EQ(ledger.objects[0].released.stack, kDecoderCloses);
  EXPECT_EQ(ledger.objects[1].released.stack, kEncoderCloses);
  ASSERT_EQ(ledger.settled.size(), 2U);
  EXPECT_TRUE(ledger.settled[0].sure);
}

TEST(SettleReferences, WhoLostIsToldAndTheNumberStays) {
  const JournalImage before = Image(InTheOrderOfOpening());
  Ledger rehearsal = before.ledger();
  SiteTexts sites;
  SettleReferences(before.view(), &sites, &rehearsal);
  Trace trace = Opened();
  trace.ReleasePrimary().Stack(kDecoderCloses);
  const JournalImage after = Image(trace);
  const std::optional<Ledger> settled = SettledAsRehearsed({&rehearsal, &before.view(), {}}, after.Evidence(), &sites);
  ASSERT_TRUE(settled);
  EXPECT_EQ(after.ledger().objects[0].state, State::Live);
  EXPECT_EQ(settled->objects[0].state, State::Released);
  EXPECT_EQ(settled->objects[1].state, State::Live);
  EXPECT_EQ(settled->objects.size(), after.ledger().objects.size());
}

TEST(SettleReferences, ARefusedReleaseStaysWithItsOwner) {
  const JournalImage before = Image(InTheOrderOfOpening());
  Ledger rehearsal = before.ledger();
  SiteTexts sites;
  SettleReferences(before.view(), &sites, &rehearsal);
  Trace trace = Opened();
  trace.ReleasePrimary().Stack(kDecoderCloses).Refused();
  const JournalImage after = Image(trace);
  const std::optional<Ledger> settled = SettledAsRehearsed({&rehearsal, &before.view(), {}}, after.Evidence(), &sites);
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->objects[0].state, State::ReleaseRefused);
  EXPECT_EQ(settled->objects[1].state, State::Live);
}

TEST(SettleReferences, WithoutAnythingToTellNothingIsTouched) {
  Trace one_place = Opened(kDecoderOpens);
  one_place.ReleasePrimary().Stack(kDecoderCloses);
  one_place.ReleasePrimary().Stack(kEncoderCloses);
  Trace one_after_another;
  one_after_another.Retain().Stack(kDecoderOpens);
  one_after_another.ReleasePrimary().Stack(kDecoderCloses);
  one_after_another.Retain().Stack(kEncoderOpens);
  one_after_another.ReleasePrimary().Stack(kEncoderCloses);
  Trace streams;
  for (const std::uint64_t stream : {0x10U, 0x11U}) streams.CreateStream(stream).Stack(kDecoderOpens);
  streams.DestroyStream(0x10).Stack(kDecoderCloses);
  for (const Trace* const trace : {&one_place, &one_after_another, &streams}) {
    const JournalImage image = Image(*trace);
    Ledger ledger = image.ledger();
    SiteTexts sites;
    SettleReferences(image.view(), &sites, &ledger);
    EXPECT_EQ(ledger, image.ledger());
    EXPECT_FALSE(SettledAsRehearsed({&ledger, &image.view(), {}}, image.Evidence(), &sites));
  }
}

}  // namespace
}  // namespace cuaudit::harness::settle_references_test
