// SPDX-License-Identifier: MIT
// Which calls of a run change a setting (setting_changes.h), and what hides that from whom (restored_settings.h).
#include "harness/verdict/context/setting_changes.h"

#include <gtest/gtest.h>

#include <bit>

#include "harness/verdict/context/restored_settings.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::setting_changes_test {
namespace {

using driver::CallId;
using harness::kNoCall;
using harness::SettingChange;
using harness::SettingChanges;

constexpr std::uint64_t kFirst = 0xc;
constexpr std::uint64_t kSecond = 0xd;

Step SetLimit(Trace* t, std::uint64_t value) { return t->Call(CallId::CtxSetLimit).In(0, 1).In(1, value); }
Step AskLimit(Trace* t, std::uint64_t value) { return t->Call(CallId::CtxGetLimit).Out(0, value).In(1, 1); }
Step Make(Trace* t, std::uint64_t context) { return t->Call(CallId::CtxCreate_v2).Out(0, context).Context(0); }

std::vector<SettingChange> ChangesOf(const Trace& t) {
  const JournalImage image(t);
  std::vector<SettingChange> changes = harness::SettingChangesOf(image.Evidence()).changes;
  for (SettingChange& change : changes) change.record = nullptr;
  return changes;
}

TEST(SettingChanges, TheNextCallOfTheThreadTellsWhichContextWasCurrent) {
  Trace t;
  Make(&t, kFirst);
  t.Pop(kFirst).Context(kFirst);  // nobody knows what is current now
  AskLimit(&t, 1);
  SetLimit(&t, 2);
  t.Call(CallId::CtxSetCurrent).In(0, kFirst).Context(kSecond);
  SetLimit(&t, 3);  // of the first context, of which nobody knows a value
  AskLimit(&t, 4);
  SetLimit(&t, 5);
  const std::vector<SettingChange> changes = ChangesOf(t);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].setting.object, kSecond);
  EXPECT_EQ(changes[0].before, 1U);
  EXPECT_EQ(changes[1].setting.object, kFirst);
  EXPECT_EQ(changes[1].before, 4U);
}

TEST(SettingChanges, NothingIsSaidOfAnUnknownContext) {
  Trace t;
  Make(&t, kFirst);
  t.Pop(kFirst).Context(kFirst);
  AskLimit(&t, 1);
  SetLimit(&t, 2);
  EXPECT_EQ(ChangesOf(t).size(), 0U);
}

TEST(SettingChanges, ThreadsHaveTheirOwnCaptureMode) {
  Trace t;
  t.Call(CallId::ThreadExchangeStreamCaptureMode).Out(0, 0).In(1, 2);
  t.Call(CallId::ThreadExchangeStreamCaptureMode).Out(0, 1).In(1, 0).Thread(7);
  const std::vector<SettingChange> changes = ChangesOf(t);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].undone, kNoCall) << "another thread got the mode";
}

TEST(SettingChanges, ANewContextHasForgottenTheLimitOfItsPredecessor) {
  Trace t;
  Make(&t, kFirst);
  AskLimit(&t, 1);
  SetLimit(&t, 2);
  t.Call(CallId::CtxDestroy_v2).In(0, kFirst).Context(kFirst);
  Make(&t, kFirst);
  SetLimit(&t, 1);
  t.Alloc(0x1000).Context(kFirst);
  const std::vector<SettingChange> changes = ChangesOf(t);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].undone, kNoCall);
}

TEST(SettingChanges, APrimaryContextEndsWithItsLastReference) {
  Trace t;
  t.Retain(kFirst);
  t.Retain(kFirst);
  t.Call(CallId::CtxSetCurrent).In(0, kFirst).Context(0);
  AskLimit(&t, 1);
  SetLimit(&t, 2);
  t.ReleasePrimary().Context(kFirst);
  t.ReleasePrimary().Context(kFirst);
  const JournalImage image(t);
  const SettingChanges made = harness::SettingChangesOf(image.Evidence());
  ASSERT_EQ(made.changes.size(), 1U);
  EXPECT_EQ(made.changes[0].ended, 6U);
}

TEST(SettingChanges, ADeviceGoesBackToItsDefaultPoolWhenTheOtherOneEnds) {
  Trace t;
  t.Call(CallId::DeviceGetMemPool).Out(0, 0x50);
  t.Call(CallId::DeviceSetMemPool).In(1, 0x60);
  t.Call(CallId::MemPoolDestroy).In(0, 0x50);
  t.Call(CallId::MemPoolDestroy).In(0, 0x60);
  const JournalImage image(t);
  const SettingChanges made = harness::SettingChangesOf(image.Evidence());
  ASSERT_EQ(made.changes.size(), 1U);
  EXPECT_EQ(made.changes[0].ended, 3U);
}

TEST(SettingChanges, AKernelHasAttributesOnEachDevice) {
  Trace t;
  const auto ask = [&t](std::uint64_t device, std::uint64_t value) {
    t.Call(CallId::KernelGetAttribute).Out(0, value).In(1, 8).In(2, 0x50).In(3, device);
  };
  const auto give = [&t](std::uint64_t device, std::uint64_t value) {
    t.Call(CallId::KernelSetAttribute).In(0, 8).In(1, value).In(2, 0x50).In(3, device);
  };
  ask(0, 1);
  ask(1, 1);
  give(0, 2);
  give(1, 1);  // as it was
  const std::vector<SettingChange> changes = ChangesOf(t);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].undone, kNoCall) << "another device got the value";
}

TEST(SettingChanges, AnAdviceEndsWithItsMemory) {
  constexpr std::uint64_t kMemory = 0x200000;
  const auto advise = [](Trace* t, CUmem_advise advice) { t->Call(CallId::MemAdvise).In(0, kMemory + 4096).In(1, 4096).In(2, advice); };
  Trace t;
  t.Alloc(kMemory, 65536).Context(kFirst);
  t.Alloc(kMemory + 65536, 65536).Context(kFirst);
  advise(&t, CU_MEM_ADVISE_SET_READ_MOSTLY);
  advise(&t, CU_MEM_ADVISE_SET_ACCESSED_BY);  // one for each device
  t.Free(kMemory + 65536).Context(kFirst);
  t.Free(kMemory).Context(kFirst);
  const JournalImage image(t);
  const SettingChanges made = harness::SettingChangesOf(image.Evidence());
  ASSERT_EQ(made.changes.size(), 1U);
  EXPECT_EQ(made.changes[0].ended, 5U);
}

TEST(SettingChanges, APreferredLocationIsTheSameInBothFormsOfTheCall) {
  const auto location = [](CUmemLocationType type, int id) {
    CUmemLocation place = {};
    place.type = type;
    place.id = id;
    return std::bit_cast<std::uint64_t>(place);
  };
  struct Places {
    std::uint64_t old_form;
    std::uint64_t new_form;
    bool same;
  };
  for (const Places& one :
       {Places{3, location(CU_MEM_LOCATION_TYPE_DEVICE, 3), true}, Places{3, location(CU_MEM_LOCATION_TYPE_DEVICE, 2), false},
        Places{3, location(CU_MEM_LOCATION_TYPE_HOST_NUMA, 3), false},
        Places{~std::uint64_t{0}, location(CU_MEM_LOCATION_TYPE_HOST, 7), true}}) {
    Trace t;
    const auto prefer = [&t](CallId call, std::uint64_t where) {
      t.Call(call).In(0, 0x200000).In(1, 4096).In(2, CU_MEM_ADVISE_SET_PREFERRED_LOCATION).In(3, where);
    };
    prefer(CallId::MemAdvise, one.old_form);
    prefer(CallId::MemAdvise_v2, one.new_form);
    EXPECT_EQ(ChangesOf(t).size(), one.same ? 1U : 2U) << one.new_form;
  }
}

TEST(SettingChanges, AFunctionEndsWithTheLibraryOfItsKernel) {
  for (const std::uint64_t ends : {0x60U, 0x61U}) {
    Trace t;
    t.Call(CallId::LibraryGetKernel).Out(0, 0x50).In(1, 0x60);
    t.Call(CallId::KernelGetFunction).Out(0, 0x40).In(1, 0x50);
    t.Call(CallId::FuncSetCacheConfig).In(0, 0x40).In(1, 1);
    t.Call(CallId::LibraryUnload).In(0, ends);
    EXPECT_EQ(ChangesOf(t).at(0).ended == 3, ends == 0x60) << ends;
  }
  Trace t;  // from cuLibraryEnumerateKernels
  t.Call(CallId::KernelGetFunction).Out(0, 0x40).In(1, 0x50);
  t.Call(CallId::FuncSetCacheConfig).In(0, 0x40).In(1, 1);
  t.Call(CallId::LibraryUnload).In(0, 0x61);
  EXPECT_EQ(ChangesOf(t).at(0).ended, 2U) << "nobody knows";
}

TEST(SettingChanges, WhoOnlyWaitsDoesNotWorkWithAStream) {
  Trace t;
  t.Call(CallId::StreamSetAttribute).In(0, 0x50).In(1, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW).In(3, 4096);
  t.Call(CallId::StreamSynchronize).In(0, 0x50);
  t.Call(CallId::LaunchKernel).In(8, 0x50);
  const JournalImage image(t);
  const harness::Evidence run = image.Evidence();
  const harness::Setting setting = harness::SettingChangesOf(run).changes.at(0).setting;
  EXPECT_FALSE(harness::WorksWith(setting, run.record(run.facts().calls[1]), kFirst));
  EXPECT_TRUE(harness::WorksWith(setting, run.record(run.facts().calls[2]), kFirst));
}

TEST(SettingChanges, AreNamedWithTheirValuesAsCudaNamesThem) {
  const auto words = [](Trace& t) {
    const JournalImage image(t);
    const SettingChange change = harness::SettingChangesOf(image.Evidence()).changes.at(0);
    const harness::Details said = harness::WordsOf(change, change.value);
    std::string text;
    for (const std::string& value : said.at(0).of) text += (text.empty() ? "" : " ") + value;
    return text;
  };
  Trace limit;
  Make(&limit, kFirst);
  limit.Call(CallId::CtxGetLimit).Out(0, 1024).In(1, CU_LIMIT_STACK_SIZE);
  limit.Call(CallId::CtxSetLimit).In(0, CU_LIMIT_STACK_SIZE).In(1, 8192);
  EXPECT_EQ(words(limit), "CU_LIMIT_STACK_SIZE 1024 8192");
  Trace kernel;
  kernel.Call(CallId::KernelGetAttribute).Out(0, 49152).In(1, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).In(2, 0x50).In(3, 1);
  kernel.Call(CallId::KernelSetAttribute).In(0, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).In(1, 65536).In(2, 0x50).In(3, 1);
  EXPECT_EQ(words(kernel), "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES on device 1 49152 65536");
  Trace stream;
  stream.Call(CallId::StreamGetAttribute).In(0, 0x50).In(1, CU_LAUNCH_ATTRIBUTE_PRIORITY).Out(3, 0xffffffff);
  stream.Call(CallId::StreamSetAttribute).In(0, 0x50).In(1, CU_LAUNCH_ATTRIBUTE_PRIORITY).In(3, 0xfffffffd);
  EXPECT_EQ(words(stream), "CU_LAUNCH_ATTRIBUTE_PRIORITY -1 -3");
  Trace unnamed;
  unnamed.Call(CallId::FuncGetAttribute).Out(0, 1).In(1, 77).In(2, 0x50);
  unnamed.Call(CallId::FuncSetAttribute).In(0, 0x50).In(1, 77).In(2, 2);
  EXPECT_EQ(words(unnamed), "cuFuncSetAttribute 77 1 2");
}

// Each context has a default stream of its own.
TEST(SettingChanges, NothingIsSaidOfADefaultStream) {
  Trace t;
  t.Call(CallId::StreamSetAttribute).In(0, 0).In(1, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW).In(3, 4096);
  t.Call(CallId::StreamSetAttribute).In(0, 0x50).In(1, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW).In(3, 4096);
  EXPECT_EQ(ChangesOf(t).size(), 1U);
}

TEST(SettingChanges, WhatIsPutBackIsNotLeft) {
  for (const std::uint64_t last : {1U, 3U}) {
    Trace t;
    Make(&t, kFirst);
    AskLimit(&t, 1);
    SetLimit(&t, 2);
    SetLimit(&t, last).Stack(1);
    const JournalImage image(t);
    EXPECT_EQ(harness::MayLeaveSettings(image.Evidence()), last == 3);
  }
}

}  // namespace
}  // namespace cuaudit::testing::setting_changes_test
