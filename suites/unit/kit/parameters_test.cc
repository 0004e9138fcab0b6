// SPDX-License-Identifier: MIT
#include "harness/kit/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "faults/driver/shape.h"

namespace cuaudit::harness::parameters_test {
namespace {

using driver::CallId;

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

}  // namespace
}  // namespace cuaudit::harness::parameters_test
