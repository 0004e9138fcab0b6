// SPDX-License-Identifier: MIT
// The types taken from the headers' declarations equal the vendor's typedefs of the version that the table pairs them with.
#define __CUDA_API_VERSION_INTERNAL
#include <cudaEGL.h>
#include <cudaEGLTypedefs.h>
#include <cudaGL.h>
#include <cudaGLTypedefs.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>

#include "faults/driver/call_shape.h"

namespace cuaudit::driver::call_types_test {
namespace {

#define CUAUDIT_PFN(id, pfn) static_assert(std::is_same_v<CallType<CallId::id>::Function*, pfn>, "cu" #id " is not " #pfn);
#include "driver_typedefs.inc"
#undef CUAUDIT_PFN

TEST(DriverTable, HasEverySymbolOnce) {
  std::set<std::string> symbols;
  for (const CallRow& row : kCalls) EXPECT_TRUE(symbols.insert(std::string(row.symbol)).second) << row.symbol;
  EXPECT_GE(symbols.size(), 588u);  // 12.4's count; 667 with 13.0
}

TEST(DriverTable, FindsBasesByWholeNameOnly) {
  EXPECT_EQ(FindBase("cuMemAlloc"), Index(BaseId::MemAlloc));
  EXPECT_EQ(FindBase("cuMemAlloc_v2"), kBaseCount);
  EXPECT_EQ(FindBase("cudnnCreate"), kBaseCount);
  EXPECT_EQ(FindBase(""), kBaseCount);
  for (std::size_t i = 0; i < kBaseCount; ++i) EXPECT_EQ(FindBase(kBases[i].name), i) << kBases[i].name;
}

TEST(DriverTable, CurrentSymbolIsWhatTheHeadersPick) {
  EXPECT_EQ(Name(kBases[Index(BaseId::MemAlloc)].current), "cuMemAlloc_v2");
  EXPECT_EQ(Name(kBases[Index(BaseId::DevicePrimaryCtxRelease)].current), "cuDevicePrimaryCtxRelease_v2");
}

TEST(CallShape, KnowsHandlesAndOutputs) {
  const Shape& create = ShapeOf(CallId::StreamCreate);
  ASSERT_EQ(create.count, 2u);
  EXPECT_EQ(create.parameter[0].family, Family::Stream);
  EXPECT_TRUE(create.parameter[0].output);
  const Shape& record = ShapeOf(CallId::EventRecord);
  EXPECT_EQ(record.parameter[0].family, Family::Event);
  EXPECT_FALSE(record.parameter[0].output);
  EXPECT_EQ(record.parameter[1].family, Family::Stream);
  const Shape& old = ShapeOf(CallId::MemAlloc);  // CUdeviceptr_v1 is 32 bits wide
  EXPECT_TRUE(old.parameter[0].output);
  EXPECT_EQ(old.parameter[0].size, 4);
  const Shape& host = ShapeOf(CallId::MemHostAlloc);
  EXPECT_TRUE(host.parameter[0].output);
  EXPECT_EQ(host.parameter[0].size, 8);
}

TEST(CallShape, ArraysAndInputsAreNoOutputs) {
  EXPECT_FALSE(ShapeOf(CallId::LaunchKernelEx).parameter[2].output);    // kernelParams
  EXPECT_FALSE(ShapeOf(CallId::ModuleLoadDataEx).parameter[3].output);  // options
  EXPECT_FALSE(ShapeOf(CallId::ModuleLoadDataEx).parameter[4].output);  // optionValues
  EXPECT_FALSE(ShapeOf(CallId::GraphicsMapResources).parameter[1].output);
  EXPECT_FALSE(ShapeOf(CallId::GraphGetNodes).parameter[1].output);
  EXPECT_TRUE(ShapeOf(CallId::GraphGetNodes).parameter[2].output);  // the count
}

// An output is one value. Names in the plural are arrays; a new one in a newer toolkit must be looked at by a person.
TEST(CallShape, NoOutputHasAPluralName) {
  struct Named {
    CallId id;
    const char* parameters;
  };
  const Named rows[] = {
#define CUAUDIT_PARAMS(id, parameters, arguments) {CallId::id, #arguments},
#include "driver_params.inc"
#undef CUAUDIT_PARAMS
  };
  const std::set<std::string> single = {"bytes",
                                        "flags",
                                        "pFlags",
                                        "numDependencies_out",
                                        "numBlocks",
                                        "numClusters",
                                        "numDependencies",
                                        "numDependentNodes",
                                        "numEdges",
                                        "numNodes",
                                        "numRootNodes",
                                        "pNumChannels",
                                        "maxWidthInElements",
                                        "nbGroups",
                                        "pMilliseconds",
                                        "captureStatus",
                                        "captureStatus_out",
                                        "symbolStatus",
                                        "pSharedMemConfig",
                                        "pbias"};
  for (const Named& row : rows) {
    std::string text(row.parameters + 1);
    text.back() = ',';
    const Shape& shape = ShapeOf(row.id);
    std::size_t at = 0;
    for (std::size_t i = 0; i < shape.count; ++i) {
      const std::size_t stop = text.find(',', at);
      const std::string name = text.substr(at, stop - at);
      at = stop + 2;
      if (!shape.parameter[i].output || single.count(name) != 0) continue;
      EXPECT_NE(name.back(), 's') << Name(row.id) << ": " << name;
    }
  }
}

}  // namespace
}  // namespace cuaudit::driver::call_types_test
