// SPDX-License-Identifier: MIT
// The tables of the driver's calls: what each one does to resources, what it answers, of which type it is, and which version
// cuGetProcAddress means.
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
#include "faults/driver/effects.h"
#include "faults/driver/proc_address.h"
#include "faults/driver/result.h"
#include "faults/driver/shape.h"

namespace cuaudit::driver::tables_test {
namespace {

bool WritesItsObject(Effect effect) {
  if (effect == Effect::PopsContext || effect == Effect::ReleasesPointee) return true;
  return IsAcquire(effect) && effect != Effect::AcquiresGiven && effect != Effect::RetainsCounted && effect != Effect::RetainsPrimary &&
         effect != Effect::PushesContext && effect != Effect::GraphRetains &&
         effect != Effect::MakesDescriptor;  // through an untyped pointer
}

TEST(Effects, ObjectArgumentCarriesAHandleOfTheRowsKind) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    const EffectRow& row = EffectOf(kCalls[i].base);
    if (row.object < 0) continue;
    const Shape& shape = ShapeOf(static_cast<CallId>(i));
    ASSERT_LT(static_cast<std::size_t>(row.object), shape.count) << kCalls[i].symbol;
    const Parameter& parameter = shape.parameter[row.object];
    EXPECT_EQ(parameter.output, WritesItsObject(row.effect)) << kCalls[i].symbol;
    // Some handles are plain numbers or untyped pointers in the C API; where the type says something, it must agree. The context
    // stack's entries are contexts, and peer access is named by one.
    const bool is_context = FamilyOf(row.kind) == Family::ContextStackEntry || FamilyOf(row.kind) == Family::PeerAccess;
    const Family expected = is_context ? Family::Context : FamilyOf(row.kind);
    if (parameter.family != Family::None && parameter.size == 8) {
      const bool address = parameter.family == Family::Pointer &&
                           (expected == Family::AddressReservation || expected == Family::Mapping || expected == Family::Pointer);
      EXPECT_TRUE(parameter.family == expected || address) << kCalls[i].symbol << ": argument " << int{row.object};
    }
  }
}

TEST(Effects, SizeArgumentExists) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    const EffectRow& row = EffectOf(kCalls[i].base);
    if (row.bytes >= 0) {
      EXPECT_LT(static_cast<std::size_t>(row.bytes), ShapeOf(static_cast<CallId>(i)).count) << kCalls[i].symbol;
    }
  }
}

TEST(Effects, EveryAcquiredKindHasARelease) {
  std::set<Family> acquired;
  std::set<Family> released;
  for (std::size_t i = 0; i < kBaseCount; ++i) {
    const EffectRow& row = EffectOf(static_cast<BaseId>(i));
    if (IsAcquire(row.effect) && row.kind != Kind::FileDescriptor) acquired.insert(FamilyOf(row.kind));  // closed by the host's close
    if (IsRelease(row.effect)) released.insert(FamilyOf(row.kind));
  }
  for (const Family family : acquired) EXPECT_TRUE(released.count(family)) << "family " << static_cast<int>(family);
}

TEST(Effects, CallsNamedLikeAcquisitionsAndReleasesAreClassifiedAsSuch) {
  for (std::size_t i = 0; i < kBaseCount; ++i) {
    const std::string name(kBases[i].name);
    const EffectRow& row = EffectOf(static_cast<BaseId>(i));
    if (name == "cuGraphConditionalHandleCreate") continue;  // a handle that dies with its graph and has no release of its own
    const bool creates =
        name.ends_with("Create") || name.ends_with("CreateWithPriority") || name.ends_with("Alloc") || name.ends_with("AllocAsync");
    const bool destroys = name.ends_with("Destroy") || name.ends_with("Unload") || name.ends_with("Free") || name.ends_with("FreeAsync");
    if (creates) {
      EXPECT_TRUE(IsAcquire(row.effect)) << name;
    }
    if (destroys) {
      EXPECT_TRUE(IsRelease(row.effect)) << name;
    }
  }
}

TEST(Effects, LegalCodesComeFromTheHeaders) {
  EXPECT_TRUE(IsLegalCode(BaseId::MemAlloc, CUDA_ERROR_OUT_OF_MEMORY));
  EXPECT_FALSE(IsLegalCode(BaseId::MemFree, CUDA_ERROR_OUT_OF_MEMORY));
  EXPECT_FALSE(IsLegalCode(BaseId::MemAlloc, CUDA_SUCCESS));
  EXPECT_TRUE(IsLegalCode(BaseId::Init, CUDA_ERROR_NO_DEVICE));  // observed, not documented
  EXPECT_EQ(DefaultCode(BaseId::StreamCreate), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(Effects, EveryCallButTheExportTableHasALegalFailure) {
  std::set<std::string> without;
  for (std::size_t i = 0; i < kBaseCount; ++i) {
    if (DefaultCode(static_cast<BaseId>(i)) == CUDA_SUCCESS) without.insert(std::string(kBases[i].name));
  }
  EXPECT_EQ(without, std::set<std::string>{"cuGetExportTable"});
}

TEST(Effects, DefaultCodeIsLegal) {
  for (std::size_t i = 0; i < kBaseCount; ++i) {
    const BaseId base = static_cast<BaseId>(i);
    const CUresult code = DefaultCode(base);
    if (code != CUDA_SUCCESS) {
      EXPECT_TRUE(IsLegalCode(base, code)) << kBases[i].name;
    }
  }
}

TEST(Result, NamesRoundTripInBothSpellings) {
  EXPECT_EQ(ResultName(CUDA_ERROR_OUT_OF_MEMORY), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(ShortResultName(CUDA_ERROR_OUT_OF_MEMORY), "OUT_OF_MEMORY");
  EXPECT_EQ(ShortResultName(CUDA_SUCCESS), "SUCCESS");
  for (const char* name : {"OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY"}) {
    CUresult result = CUDA_SUCCESS;
    ASSERT_TRUE(ResultFromName(name, &result)) << name;
    EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
  }
}

TEST(Result, UnknownNamesAndValuesAreRefused) {
  CUresult result = CUDA_SUCCESS;
  EXPECT_FALSE(ResultFromName("OUT_OF_LUCK", &result));
  EXPECT_FALSE(ResultFromName("", &result));
  EXPECT_TRUE(ResultName(static_cast<CUresult>(998)).empty());
}

TEST(Result, OnlyLostContextsAreSticky) {
  EXPECT_TRUE(IsSticky(CUDA_ERROR_ILLEGAL_ADDRESS));
  EXPECT_TRUE(IsSticky(CUDA_ERROR_LAUNCH_FAILED));
  EXPECT_FALSE(IsSticky(CUDA_ERROR_OUT_OF_MEMORY));
  EXPECT_FALSE(IsSticky(CUDA_SUCCESS));
}

void ExpectFound(const char* name, int version, std::uint64_t flags, const char* symbol) {
  const ProcAddress found = ResolveProcAddress(name, version, flags);
  ASSERT_EQ(found.status, ProcStatus::Found) << name << " @ " << version;
  EXPECT_EQ(Name(found.id), symbol) << name << " @ " << version << " flags " << flags;
}

TEST(ProcAddress, PicksTheNewestAbiThatTheVersionAllows) {
  ExpectFound("cuMemAlloc", 2000, 0, "cuMemAlloc");
  ExpectFound("cuMemAlloc", 3019, 0, "cuMemAlloc");
  ExpectFound("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
  ExpectFound("cuMemAlloc", 99000, 0, "cuMemAlloc_v2");
}

TEST(ProcAddress, DiffersFromTheHeaderMacrosWhereDriversDo) {
  ExpectFound("cuGraphInstantiate", 12000, 0, "cuGraphInstantiate_v2");
  ExpectFound("cuCtxCreate", 11040, 0, "cuCtxCreate_v3");
}

TEST(ProcAddress, PerThreadFlagPicksTheVariantFromItsOwnVersionOn) {
  ExpectFound("cuStreamSynchronize", 12000, 2, "cuStreamSynchronize_ptsz");
  EXPECT_EQ(ResolveProcAddress("cuStreamSynchronize", 2000, 2).status, ProcStatus::VersionNotSufficient);  // no fall-back, seen on 580.159
  ExpectFound("cuStreamCreate", 12000, 2, "cuStreamCreate");
  ExpectFound("cuStreamSynchronize", 12000, 1, "cuStreamSynchronize");
}

TEST(ProcAddress, RefusesWhatDriversRefuse) {
  EXPECT_EQ(ResolveProcAddress("cuMemAlloc_v2", 12000, 0).status, ProcStatus::NotFound);
  EXPECT_EQ(ResolveProcAddress("", 0, 0).status, ProcStatus::NotFound);
  EXPECT_EQ(ResolveProcAddress("cuMemAlloc", 1000, 0).status, ProcStatus::VersionNotSufficient);
  EXPECT_EQ(ResolveProcAddress("cuMemAllocAsync", 11010, 0).status, ProcStatus::VersionNotSufficient);
  EXPECT_EQ(ResolveProcAddress("cuMemAlloc", 12000, 7).status, ProcStatus::BadFlags);
  EXPECT_EQ(ResolveProcAddress("cuMemAlloc", 12000, 3).status, ProcStatus::BadFlags);
}

TEST(ProcAddress, ResolvesEverySymbolAtItsOwnVersion) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    const CallRow& row = kCalls[i];
    if (row.version == 0) continue;
    ExpectFound(Name(row.base).data(), row.version, row.per_thread ? 2 : 0, row.symbol.data());
  }
}

// The types taken from the headers' declarations equal the vendor's typedefs of the version that the table pairs them with.

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

TEST(CallShape, KnowsOpaqueTypesAndArraysOfThem) {
  const auto handle = [](CallId call, std::size_t parameter) { return ShapeOf(call).parameter[parameter].handle; };
  EXPECT_TRUE(handle(CallId::StreamCreate, 0));
  EXPECT_FALSE(handle(CallId::StreamCreate, 1));  // flags
  EXPECT_TRUE(handle(CallId::FuncGetAttribute, 2));
  EXPECT_TRUE(handle(CallId::GraphAddEmptyNode, 2));     // dependencies
  EXPECT_TRUE(handle(CallId::GraphicsMapResources, 1));  // resources
  EXPECT_FALSE(handle(CallId::MemFree_v2, 0));           // an address is an integer
  EXPECT_FALSE(handle(CallId::LaunchHostFunc, 1));       // a function
  EXPECT_FALSE(handle(CallId::MemcpyHtoD_v2, 1));        // host memory
  EXPECT_FALSE(handle(CallId::ArrayCreate_v2, 1));       // a structure that is defined
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
}  // namespace cuaudit::driver::tables_test
