// SPDX-License-Identifier: MIT
// What a kit takes from recorded runs to show a setting that is left changed, and what a reducer makes of it.
#include "harness/kit/setting_calls.h"

#include <cuda.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "harness/kit/lift_calls.h"
#include "harness/kit/reducer_text.h"
#include "suites/support/journal_builder.h"
#include "suites/unit/kit/kit_lists.h"

namespace cuaudit::harness::setting_calls_test {
namespace {

using kit_lists::Call;
using kit_lists::CallId;
using kit_lists::Is;
using kit_lists::Number;
using kit_lists::Of;
using ::testing::HasSubstr;

// A program that puts back what it was told names the answer, so that the question stays in the reducer.
TEST(SettingValues, ASettingIsGivenWhatTheProgramGaveIt) {
  JournalBuilder journal;
  const auto call = [&journal](CallId id, std::vector<std::uint64_t> arguments) {
    faults::Record& record = journal.Call(id);
    std::copy(arguments.begin(), arguments.end(), record.argument);
  };
  call(CallId::CtxGetLimit, {1024, CU_LIMIT_STACK_SIZE});
  call(CallId::CtxSetLimit, {CU_LIMIT_STACK_SIZE, 8192});
  call(CallId::CtxSetLimit, {CU_LIMIT_STACK_SIZE, 1024});
  call(CallId::ThreadExchangeStreamCaptureMode, {0, 2});
  call(CallId::ThreadExchangeStreamCaptureMode, {2, 0});
  call(CallId::MemPoolGetAttribute, {0x70, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0xbee0, 9});
  call(CallId::MemPoolSetAttribute, {0x70, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0xbeef00, 77});
  call(CallId::MemPoolSetAttribute, {0x70, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0xbeef00, 9});
  const Observation run = journal.Read();
  SiteTexts places;
  const Result<CallList> list = LiftCalls({&run, 1}, {}, {}, &places);
  ASSERT_TRUE(list.ok());
  const auto value = [&list](std::size_t step, std::size_t at) { return list->stages.front().steps.at(step).values.at(at); };
  const int limit = value(0, 0).variable;
  EXPECT_EQ(value(1, 1), (CallValue{Is::Number, 8192}));
  EXPECT_EQ(value(2, 1), (CallValue{Is::Variable, 0, limit}));
  const int mode = value(3, 0).variable;
  EXPECT_EQ(value(3, 0), (CallValue{Is::Exchange, 2, mode}));
  EXPECT_EQ(value(4, 0), (CallValue{Is::Output, 0, mode}));
  EXPECT_EQ(value(6, 2), (CallValue{Is::Pointee, 77}));
  EXPECT_EQ(value(7, 2), (CallValue{Is::Pointee, 0, value(5, 2).variable}));
}

// Whether a function has returned is told by its caller.
TEST(ReducerText, TheCallerOfAFunctionThatLeavesASettingIsAFunction) {
  const std::string text = ReducerText(kit_lists::LeavesALimit(), {}, false);
  EXPECT_THAT(text, HasSubstr("static size_t value = 0;\n"));
  EXPECT_THAT(text, HasSubstr("static int leaves_it_changed(void) {\n  CUresult result;\n  cuInit(0);"));
  EXPECT_THAT(text, HasSubstr("  if (result != CUDA_SUCCESS) {  // the call that fails\n    return 1;\n  }\n"));
  EXPECT_THAT(text, HasSubstr("  cuCtxSetLimit(0, value);  // somewhere, a.c:1\n  return 0;\n}\n"));
  EXPECT_THAT(text, HasSubstr("  const int path = leaves_it_changed();\n  if (path == 0) {\n    cuMemAlloc(&memory2, 64);"));
  EXPECT_THAT(text, HasSubstr("  }\n  if (path == 1) {\n    cuMemAlloc(&memory2, 64);"));
  EXPECT_THAT(text, HasSubstr("  return path != 0;\n}\n\nint main("));
}

TEST(ReducerText, AVariableHoldsWhatTheCallExchanges) {
  CallList list;
  list.variables = {{"CUstreamCaptureMode"}, {"CUmemoryPool"}, {"cuuint64_t"}};
  Stage only;
  only.steps = {Call(CallId::ThreadExchangeStreamCaptureMode, {{Is::Exchange, 2, 0}}),
                Call(CallId::MemPoolSetAttribute, {Of(1), Number(4), {Is::Pointee, 77}}),
                Call(CallId::MemPoolSetAttribute, {Of(1), Number(4), {Is::Pointee, 0, 2}})};
  list.stages = {only};
  const std::string text = ReducerText(list, {}, false);
  EXPECT_THAT(text, HasSubstr("  value1 = 2;\n  cuThreadExchangeStreamCaptureMode(&value1);"));
  EXPECT_THAT(text, HasSubstr("cuMemPoolSetAttribute(pool, 4, &(cuuint64_t){77ULL});"));
  EXPECT_THAT(text, HasSubstr("cuMemPoolSetAttribute(pool, 4, &value2);"));
}

TEST(ReducerText, AStreamIsGivenAnAttributeThatReadsAsItsNumber) {
  CallList list;
  list.variables = {{"CUstream"}};
  Stage only;
  for (const auto& [attribute, number] :
       std::vector<std::pair<CUstreamAttrID, std::uint64_t>>{{CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, 4096},
                                                             {CU_LAUNCH_ATTRIBUTE_PRIORITY, 0xfffffffe},
                                                             {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 0x201}}) {
    only.steps.push_back(Call(CallId::StreamSetAttribute, {Of(0), Number(attribute), {Is::Pointee, number}}));
  }
  list.stages = {only};
  const std::string text = ReducerText(list, {}, false);
  EXPECT_THAT(text, HasSubstr("static _Alignas(4096) char room["));
  EXPECT_THAT(text, HasSubstr("&(CUstreamAttrValue){.accessPolicyWindow = {.base_ptr = room, .num_bytes = 4096, .hitRatio = 1, "));
  EXPECT_THAT(text, HasSubstr("&(CUstreamAttrValue){.priority = -2})"));
  EXPECT_THAT(text, HasSubstr("&(CUstreamAttrValue){.memSyncDomainMap = {1, 2}})"));
}

}  // namespace
}  // namespace cuaudit::harness::setting_calls_test
