// SPDX-License-Identifier: MIT
#include "harness/kit/reducer_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "harness/kit/structures.h"
#include "suites/unit/kit/kit_lists.h"

namespace cuaudit::harness::reducer_text_test {
namespace {

using kit_lists::Call;
using kit_lists::CallId;
using kit_lists::Is;
using kit_lists::LosesAStream;
using kit_lists::Number;
using kit_lists::Of;
using kit_lists::To;
using ::testing::HasSubstr;
using ::testing::Not;

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
  Step release = Call(CallId::DevicePrimaryCtxRelease_v2, {Number(0)});
  Stage only;
  only.steps = {release, release};
  list.stages = {only};
  EXPECT_THAT(ReducerText(list, {}, true),
              HasSubstr("static CUresult instruction1(CUdevice dev) { return cuDevicePrimaryCtxRelease(dev); }"));
  EXPECT_THAT(ReducerText(list, {}, false), Not(HasSubstr("instruction1")));
}

TEST(Structures, AreKnownByTypeAndKindOfTheirObject) {
  EXPECT_TRUE(KnowsStructure("CUmemAllocationProp", driver::Kind::None));
  EXPECT_TRUE(KnowsStructure("CUDA_RESOURCE_DESC", driver::Kind::Array));
  EXPECT_FALSE(KnowsStructure("CUDA_RESOURCE_DESC", driver::Kind::Stream));
  EXPECT_FALSE(KnowsStructure("struct of nobody", driver::Kind::None));
  EXPECT_EQ(StructureText("struct of nobody", driver::Kind::None, "a", "room"), "{0}");
}

}  // namespace
}  // namespace cuaudit::harness::reducer_text_test
