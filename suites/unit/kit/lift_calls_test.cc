// SPDX-License-Identifier: MIT
// Calls of a journal as the text of a program: which ones, with which parameters, and that the text is safe.
#include "harness/kit/lift_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "faults/driver/shape.h"
#include "faults/journal/recording.h"
#include "harness/kit/issue_text.h"
#include "harness/kit/parameters.h"
#include "harness/kit/recorded_runs.h"
#include "harness/kit/reducer_text.h"
#include "harness/verdict/evidence/site_keys.h"
#include "suites/support/journal_builder.h"
#include "suites/support/temporary_dir.h"
#include "suites/unit/kit/kit_lists.h"

namespace cuaudit::harness::lift_calls_test {
namespace {

using driver::BaseId;
using driver::CallId;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kSecret = 0x5ec2e75e;
constexpr std::uint32_t kParent = 1;
constexpr std::uint32_t kChild = 2;

CallList Lift(const Observation& run, const std::vector<Wrong>& wanted) {
  SiteTexts places;
  Result<CallList> list = LiftCalls({&run, 1}, {}, wanted, &places);
  EXPECT_TRUE(list.ok());
  return list.ok() ? std::move(*list) : CallList();
}

std::vector<CallId> CallsOf(const CallList& list) {
  std::vector<CallId> calls;
  for (const Step& step : list.stages.front().steps) calls.push_back(step.call);
  return calls;
}

TEST(LiftCalls, NoDataOfTheProgramIsInAKit) {
  JournalBuilder journal;
  std::size_t secrets = 0;
  for (std::size_t i = 0; i < driver::kCallCount; ++i) {
    const auto call = static_cast<CallId>(i);
    for (std::size_t at = 0; at < std::min<std::size_t>(driver::ShapeOf(call).count, faults::kRecordArguments); ++at) {
      if (!faults::IsData(driver::BaseOf(call), at)) continue;
      journal.Call(call).argument[at] = kSecret;
      ++secrets;
    }
  }
  ASSERT_GE(secrets, 18U);
  Reduction reduction;
  reduction.list = Lift(journal.Read(), {});
  ASSERT_EQ(CountCalls(reduction.list), secrets);
  for (const Step& step : reduction.list.stages.front().steps) {
    for (const CallValue& value : step.values) EXPECT_NE(value.number, kSecret) << driver::Name(step.call);
  }
  const std::string page = IssueText({}, reduction, {}, {});
  for (const std::string& text : {page, ReducerText(reduction.list, {}, false)}) EXPECT_THAT(text, Not(HasSubstr(std::to_string(kSecret))));
  EXPECT_THAT(page, HasSubstr("are 0 in the reducer: they are its data"));
  EXPECT_THAT(page, HasSubstr("A wait of the reducer ends when the memory has at least 0"));
}

TEST(LiftCalls, AWaitCanEnd) {
  JournalBuilder journal;
  faults::Record& wait = journal.Call(CallId::StreamWaitValue32_v2);
  wait.argument[2] = kSecret;
  wait.argument[3] = CU_STREAM_WAIT_VALUE_AND | CU_STREAM_WAIT_VALUE_FLUSH;
  const CallList list = Lift(journal.Read(), {});
  EXPECT_EQ(list.stages.front().steps.at(0).values.at(3).number, static_cast<std::uint64_t>(CU_STREAM_WAIT_VALUE_FLUSH));
}

// The parent makes more calls, the child leaves a stream.
TEST(LiftCalls, TheProcessIsTheOneThatShowsTheDefect) {
  JournalBuilder journal;
  for (int i = 0; i < 3; ++i) journal.Call(CallId::Init).pid = kParent;
  faults::Record& made = journal.Call(CallId::StreamCreate);
  made.pid = kChild;
  made.argument[0] = 0x51;
  const Observation run = journal.Read();
  EXPECT_EQ(CallingProcesses(run), 2U);
  EXPECT_EQ(CallsOf(Lift(run, {{Rule::LeftAtExit, driver::Kind::Stream, 1}})), std::vector<CallId>{CallId::StreamCreate});
  EXPECT_EQ(CallsOf(Lift(run, {{Rule::LeftAtExit, driver::Kind::Event, 1}})), std::vector<CallId>(3, CallId::Init)) << "nobody shows it";
}

// The parent makes more calls, and a call of the child fails: before the failure it is the call of the same number.
TEST(LiftCalls, TheProcessIsTheOneWhoseCallFails) {
  const TemporaryDir dir;
  std::vector<Observation> runs;
  for (const bool fails : {false, true}) {
    JournalBuilder journal(dir.path() + (fails ? "/second" : "/first"));
    for (int i = 0; i < 3; ++i) journal.Call(CallId::Init).pid = kParent;
    faults::Record& call = journal.Call(CallId::EventCreate);
    call.pid = fails ? 7 : kChild;
    call.argument[0] = 0xe1;
    if (fails) {
      call.fault = 1;
      call.result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    runs.push_back(journal.Read());
  }
  faults::Fault fault = {.base = BaseId::EventCreate, .code = CUDA_ERROR_OUT_OF_MEMORY};
  SiteTexts places;
  const Result<CallList> list = LiftCalls(runs, {&fault, 1}, {}, &places);
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_EQ(CountCalls(*list), 1U);
  EXPECT_EQ(list->stages.front().failing->step.call, CallId::EventCreate);
}

constexpr std::uint64_t kContext = 0xc1;

// As the CUDA runtime begins: it knows the handle from a private table.
void BeginAsTheRuntime(JournalBuilder* journal, bool fails) {
  faults::Record& sets = journal->Call(CallId::CtxSetCurrent);
  sets.argument[0] = kContext;
  if (fails) {
    sets.fault = 1;
    sets.result = CUDA_ERROR_INVALID_CONTEXT;
    return;
  }
  journal->Call(CallId::DevicePrimaryCtxRetain).argument[0] = kContext;
  journal->Call(CallId::StreamCreate).argument[0] = 0x51;
}

TEST(LiftCalls, AContextIsMadeCurrentAfterItIsRetained) {
  JournalBuilder journal;
  BeginAsTheRuntime(&journal, false);
  const CallList list = Lift(journal.Read(), {});
  EXPECT_EQ(CallsOf(list), (std::vector<CallId>{CallId::DevicePrimaryCtxRetain, CallId::CtxSetCurrent, CallId::StreamCreate}));
  const std::vector<Step>& steps = list.stages.front().steps;
  EXPECT_EQ(steps.at(1).values.at(0).is, CallValue::Is::Variable);
  EXPECT_EQ(steps.at(1).values.at(0).variable, steps.at(0).values.at(0).variable);
}

TEST(LiftCalls, ACallThatFailsStaysBeforeTheContextIsRetained) {
  const TemporaryDir dir;
  std::vector<Observation> runs;
  for (const bool fails : {false, true}) {
    JournalBuilder journal(dir.path() + (fails ? "/second" : "/first"));
    BeginAsTheRuntime(&journal, fails);
    runs.push_back(journal.Read());
  }
  faults::Fault fault = {.base = BaseId::CtxSetCurrent, .code = CUDA_ERROR_INVALID_CONTEXT};
  SiteTexts places;
  const Result<CallList> list = LiftCalls(runs, {&fault, 1}, {}, &places);
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_EQ(list->stages.front().failing->step.call, CallId::CtxSetCurrent);
  ASSERT_EQ(list->stages.front().rest.size(), 2U);
  EXPECT_EQ(list->stages.front().rest.front().call, CallId::DevicePrimaryCtxRetain);
}

TEST(LiftCalls, WhatTheDefectAcquiresIsToldByItsPlace) {
  const TemporaryDir dir;
  JournalBuilder journal(dir.path() + "/journal");
  journal.StackIn(1, dir.path() + "/libnorth.so");
  for (const std::uint32_t stack : {1U, 0U}) {
    faults::Record& made = journal.Call(CallId::StreamCreate);
    made.stack = stack;
    made.argument[0] = 0x50 + stack;
  }
  const Observation run = journal.Read();
  SiteTexts places;
  std::vector<report::Acquired> all;
  for (const std::uint32_t index : run.evidence().facts().calls) {
    const Site site = SiteOf(run.evidence().record(index));
    all.push_back(*places.Text(run.journal, site, SiteKey(run.journal, site)));
  }
  ASSERT_EQ(all.size(), 2U);
  ASSERT_FALSE(IsSamePlace(all[0], all[1]));
  const Result<CallList> list = LiftCalls({&run, 1}, {}, {}, &places, std::span(all).first(1));
  ASSERT_TRUE(list.ok());
  EXPECT_TRUE(list->stages.front().steps.at(0).of_defect);
  EXPECT_FALSE(list->stages.front().steps.at(1).of_defect);
}

TEST(LiftCalls, ArraysOfAttributesHoldOne) {
  JournalBuilder journal;
  faults::Record& asks = journal.Call(CallId::PointerGetAttributes);
  asks.argument[0] = 7;
  asks.argument[1] = asks.argument[2] = kSecret;
  const CallList list = Lift(journal.Read(), {});
  const Step& step = list.stages.front().steps.at(0);
  EXPECT_EQ(step.values.at(0).number, 1U);
  for (const std::size_t i : {1U, 2U}) EXPECT_EQ(step.values.at(i).is, CallValue::Is::Structure);
  Reduction reduction;
  reduction.list = list;
  EXPECT_THAT(ReducerText(list, {}, false), HasSubstr("(1, &(CUpointer_attribute){CU_POINTER_ATTRIBUTE_MEMORY_TYPE}, &(void *){room}, "));
}

TEST(Parameters, AreThoseOfTheHeaders) {
  const auto parameters = ParametersOf(CallId::StreamCreateWithPriority);
  ASSERT_EQ(parameters.size(), 3U);
  EXPECT_EQ(parameters[0].type, "CUstream *");
  EXPECT_EQ(parameters[0].name, "phStream");
  EXPECT_EQ(parameters[0].pointee(), "CUstream");
  EXPECT_EQ(parameters[2].type, "int");
  EXPECT_FALSE(parameters[2].pointer());
  EXPECT_EQ(DeclaredParameters(CallId::CtxCreate_v2), "CUcontext *pctx, unsigned int flags, CUdevice dev");
  EXPECT_EQ(DeclaredParameters(CallId::CtxSynchronize), "void");
}

TEST(Parameters, AreAsManyAsTheShapeOfEachCallHas) {
  for (std::size_t i = 0; i < driver::kCallCount; ++i) {
    const auto call = static_cast<CallId>(i);
    EXPECT_EQ(ParametersOf(call).size(), driver::ShapeOf(call).count) << driver::Name(call);
    for (const ParameterText& one : ParametersOf(call)) {
      EXPECT_FALSE(one.type.empty()) << driver::Name(call);
      EXPECT_TRUE(!one.name.empty() && std::isdigit(static_cast<unsigned char>(one.name.front())) == 0) << driver::Name(call);
    }
  }
}

TEST(Parameters, APointerToConstIsNoName) {
  const auto parameters = ParametersOf(CallId::Array3DCreate_v2);
  EXPECT_TRUE(parameters[1].constant());
  EXPECT_EQ(parameters[1].pointee(), "CUDA_ARRAY3D_DESCRIPTOR");
}

using kit_lists::Call;
using kit_lists::CallId;
using kit_lists::Is;
using kit_lists::LosesAStream;
using kit_lists::Number;
using kit_lists::Of;
using kit_lists::To;

TEST(ReducerText, IsAProgramWithAnErrorPath) {
  const std::string text = ReducerText(LosesAStream(), {"reducer.c: a stream is lost"}, false);
  EXPECT_THAT(text, ::testing::StartsWith("// reducer.c: a stream is lost\n#include <cuda.h>\n"));
  EXPECT_THAT(text, HasSubstr("  cuStreamCreate(&stream1, 0);  // somewhere, a.c:1\n"));
  EXPECT_THAT(text, HasSubstr("  result = cuEventCreate(&event, 0);  // somewhere, a.c:1\n"
                              "  if (result != CUDA_SUCCESS) {  // the call that fails\n"
                              "    cuMemFree(memory);  // somewhere, a.c:1\n"));
  EXPECT_THAT(text, HasSubstr("    return 1;\n  }\n  cuEventDestroy(event);"));
}

// What a program calls its functions is no comment's end and no code.
TEST(ReducerText, HostileNamesStayInsideTheirLine) {
  const std::string hostile = std::string("x\n#include \"/etc/passwd\"\r\x01*/ \xff\xfe") + std::string(10000, 'n') + "\\";
  CallList list = LosesAStream();
  const std::string plain = ReducerText(list, {"heading"}, false);
  for (Step& step : list.stages[0].steps) step.place = hostile;
  list.stages[1].steps[0].place = "ends in a backslash \\";
  const std::string text = ReducerText(list, {hostile}, false);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), std::count(plain.begin(), plain.end(), '\n'));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LT(line.size(), 400U);
    EXPECT_FALSE(line.starts_with("#include \"")) << line;
    EXPECT_FALSE(!line.empty() && line.back() == '\\') << line;
    for (const char c : line) EXPECT_TRUE(c >= ' ' && c < 0x7f) << static_cast<int>(c);
  }
}

TEST(ReducerText, AnOldVersionOfACallIsDeclared) {
  CallList list;
  list.variables = {{"CUcontext"}};
  Stage only;
  only.steps = {Call(CallId::CtxCreate_v2, {To(0), Number(0), Number(0)}), Call(CallId::CtxDestroy_v2, {Of(0)})};
  list.stages = {only};
  const std::string text = ReducerText(list, {}, false);
  if (driver::kBases[driver::Index(driver::BaseId::CtxCreate)].current != CallId::CtxCreate_v2) {
    EXPECT_THAT(text, HasSubstr("CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev);\n"));
  }
  EXPECT_THAT(text, HasSubstr("cuCtxDestroy(context)"));
}

TEST(ReducerText, StandInsAreDefined) {
  CallList list;
  list.variables = {{"CUarray"}, {"CUmodule"}, {"CUtexObject"}, {"void *", {}, 5000}};
  Stage only;
  CallValue resource{Is::Structure};
  resource.variable = 0;
  resource.kind = driver::Kind::Array;
  only.steps = {Call(CallId::ModuleLoadData, {To(1), {Is::Image}}), Call(CallId::Array3DCreate_v2, {To(0), {Is::Structure}}),
                Call(CallId::TexObjectCreate, {To(2), resource, {Is::Structure}, {Is::Nothing}}),
                Call(CallId::MemHostRegister_v2, {Of(3), Number(5000), Number(0)}),
                Call(CallId::LaunchHostFunc, {Number(0), {Is::Function}, {Is::Nothing}})};
  list.stages = {only};
  const std::string text = ReducerText(list, {}, false);
  EXPECT_THAT(text, HasSubstr("static const char kModule[] ="));
  EXPECT_THAT(text, HasSubstr("cuModuleLoadData(&module, kModule)"));
  EXPECT_THAT(text, HasSubstr("&(CUDA_ARRAY3D_DESCRIPTOR){.Width = 64"));
  EXPECT_THAT(text, HasSubstr(".hArray = (CUarray)array"));
  EXPECT_THAT(text, HasSubstr("void *host = aligned_alloc(4096, 8192);"));
  EXPECT_THAT(text, HasSubstr("static void CUDA_CB nothing_CUhostFn(void *data) {}"));
  EXPECT_THAT(text, Not(HasSubstr("OBJECT")));
}

// Two calls of one instruction stay one where the rule compares places.
TEST(ReducerText, OneInstructionStaysOneWhereThatMatters) {
  CallList list;
  list.variables = {{"CUcontext"}};
  const auto has_instruction = [&list](const Step& step, const char* function) {
    Stage only;
    only.steps = {step, step};
    list.stages = {only};
    EXPECT_THAT(ReducerText(list, {}, true), HasSubstr(std::string("static CUresult instruction1(") + function));
    EXPECT_THAT(ReducerText(list, {}, false), Not(HasSubstr("instruction1")));
  };
  has_instruction(Call(CallId::DevicePrimaryCtxRelease_v2, {Number(0)}), "CUdevice dev) { return cuDevicePrimaryCtxRelease(dev); }");
  has_instruction(Call(CallId::CtxPopCurrent_v2, {To(0)}), "CUcontext *pctx) { return cuCtxPopCurrent(pctx); }");
  has_instruction(Call(CallId::CtxDisablePeerAccess, {Of(0)}), "CUcontext peerContext) { return cuCtxDisablePeerAccess(peerContext); }");
}

TEST(Structures, AreKnownByTypeAndKindOfTheirObject) {
  EXPECT_TRUE(KnowsStructure("CUmemAllocationProp", driver::Kind::None));
  EXPECT_TRUE(KnowsStructure("CUDA_RESOURCE_DESC", driver::Kind::Array));
  EXPECT_FALSE(KnowsStructure("CUDA_RESOURCE_DESC", driver::Kind::Stream));
  EXPECT_FALSE(KnowsStructure("struct of nobody", driver::Kind::None));
  EXPECT_EQ(StructureText("struct of nobody", driver::Kind::None, "a", "room"), "{0}");
}

}  // namespace
}  // namespace cuaudit::harness::lift_calls_test
