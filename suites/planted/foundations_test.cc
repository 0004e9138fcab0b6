// SPDX-License-Identifier: MIT
// Objects that are used after what they stand on was destroyed, or that live longer or shorter than a program may think.
// harness/ledger/README.md has the table of pairs.
#define __CUDA_API_VERSION_INTERNAL
#include <string>

#include "suites/support/cases/capturing.h"
#include "suites/support/cases/case.h"
#include "suites/support/cases/traces.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::foundations_test {
namespace {

using driver::CallId;
using driver::Kind;
using faults::HostCall;
using harness::Judgement;
using harness::Rule;
using harness::Verdict;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

CUAUDIT_CASE(DestroyedUnderUser, AKernelReadsATextureWhoseMemoryIsGone) {
  for (const TextureGround& ground : kTextureGrounds) {
    const CaseRow row(ground.kind);
    for (const CallId view : {CallId::TexObjectCreate, CallId::SurfObjectCreate}) {
      Trace t;
      t.Call(ground.make).Out(0, kArray).In(1, 0x1000);
      View(t, view, kTexture, ground.kind, kArray);
      t.Call(ground.destroy).In(0, kArray);
      LaunchWith(t, {0x500, kTexture});
      EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user " + std::string(driver::Name(ground.kind))));
    }
  }
}

CUAUDIT_CASE(DestroyedUnderUser, ATextureOfALevelOfAMipmappedArray) {
  Trace t;
  t.Call(CallId::MipmappedArrayCreate).Out(0, kMipmapped);
  t.Call(CallId::MipmappedArrayGetLevel).Out(0, kLevel).In(1, kMipmapped);
  View(t, CallId::TexObjectCreate, kTexture, Kind::Array, kLevel);
  t.Call(CallId::MipmappedArrayDestroy).In(0, kMipmapped);
  LaunchWith(t, {kTexture});
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user mipmapped_array"));
}

CUAUDIT_CASE(DestroyedUnderUser, ATextureOverAMappingAndOverMemoryOfAnotherProcess) {
  Trace mapped;
  mapped.Call(CallId::MemAddressReserve).Out(0, 0x200000).In(1, 0x1000);
  mapped.Call(CallId::MemCreate).Out(0, 0x5).In(1, 0x1000);
  mapped.Call(CallId::MemMap).In(0, 0x200000).In(1, 0x1000).In(3, 0x5);
  View(mapped, CallId::TexObjectCreate, kTexture, Kind::DeviceMemory, 0x200000);
  mapped.Call(CallId::MemUnmap).In(0, 0x200000).In(1, 0x1000);
  LaunchWith(mapped, {kTexture});
  EXPECT_THAT(Wrong(mapped.Fold()), ElementsAre("destroyed_under_user mapping"));
  Trace shared;
  shared.Call(CallId::IpcOpenMemHandle_v2).Out(0, 0x200000);
  View(shared, CallId::TexObjectCreate, kTexture, Kind::DeviceMemory, 0x200000);
  shared.Call(CallId::IpcCloseMemHandle).In(0, 0x200000);
  LaunchWith(shared, {kTexture});
  EXPECT_THAT(Wrong(shared.Fold()), ElementsAre("destroyed_under_user ipc_memory"));
}

// The finding names the use, and beside it the call that destroyed the array.
CUAUDIT_CASE(DestroyedUnderUser, OnlyWhereAFaultTakesThePath) {
  const auto run = [](bool fails) {
    Trace t;
    t.Call(CallId::ArrayCreate_v2).Out(0, kArray);
    View(t, CallId::TexObjectCreate, kTexture, Kind::Array, kArray);
    t.Call(CallId::EventCreate).Out(0, 0x11);
    if (fails) t.Last().Refused();
    if (fails) t.Call(CallId::ArrayDestroy).In(0, kArray);
    LaunchWith(t, {kTexture});
    t.Call(CallId::TexObjectDestroy).In(0, kTexture);
    if (!fails) t.Call(CallId::ArrayDestroy).In(0, kArray);
    if (!fails) t.Call(CallId::EventDestroy_v2).In(0, 0x11);
    return t;
  };
  const Judgement judgement = Judge(run(false), run(true));
  EXPECT_EQ(judgement.verdict, Verdict::Misuse) << Name(judgement.verdict);
  ASSERT_THAT(judgement.findings, SizeIs(1));
  EXPECT_EQ(judgement.findings[0].where.call, static_cast<std::uint16_t>(CallId::LaunchKernel));
  EXPECT_EQ(judgement.findings[0].other.call, static_cast<std::uint16_t>(CallId::ArrayDestroy));
}

CUAUDIT_CASE(DestroyedUnderUser, AGraphLaunchesAFunctionOfAnUnloadedModule) {
  Trace t;
  LoadFunction(t);
  GraphOf(t, kFunction);
  t.Call(CallId::GraphLaunch).In(0, kExecutable);  // first while all is well
  Unload(t);
  t.Call(CallId::GraphLaunch).In(0, kExecutable);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user module"));
}

CUAUDIT_CASE(DestroyedUnderUser, ACloneOfAGraphLaunchesAKernelOfAnUnloadedLibrary) {
  Trace t;
  t.Call(CallId::LibraryLoadData).Out(0, kLibrary);
  t.Call(CallId::LibraryGetKernel).Out(0, 0xf1).In(1, kLibrary);
  t.Call(CallId::KernelGetFunction).Out(0, kFunction).In(1, 0xf1);
  GraphOf(t, kFunction);
  t.Call(CallId::GraphClone).Out(0, 0x8).In(1, kGraph);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x9).In(1, 0x8);
  EndGraph(t);
  t.Call(CallId::LibraryUnload).In(0, kLibrary);
  t.Call(CallId::GraphLaunch).In(0, 0x9);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user library"));
}

CUAUDIT_CASE(DestroyedUnderUser, ANodeThatWasSetToAFunctionOfALibrarysModule) {
  Trace t;
  LoadFunction(t);
  t.Call(CallId::LibraryLoadData).Out(0, kLibrary);
  t.Call(CallId::LibraryGetModule).Out(0, 0x32).In(1, kLibrary);
  t.Call(CallId::ModuleGetFunction).Out(0, 0xf1).In(1, 0x32);
  GraphOf(t, kFunction);
  const Step set = t.Call(CallId::GraphExecKernelNodeSetParams_v2).In(0, kExecutable).In(1, kNode);
  t.NodeContent(set, faults::kStandsOn, static_cast<std::uint64_t>(Kind::Module), 0xf1);
  t.Call(CallId::LibraryUnload).In(0, kLibrary);
  t.Call(CallId::GraphLaunch).In(0, kExecutable);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user library"));
}

// Declined by the driver, or its last call.
CUAUDIT_CASE(DestroyedUnderUser, AFunctionIsLaunchedAfterItsModuleWasUnloaded) {
  for (const bool dies : {false, true}) {
    Trace t;
    LoadFunction(t);
    Unload(t);
    t.Call(CallId::LaunchKernel).In(0, kFunction);
    if (dies) t.Last().Unfinished();
    if (!dies) t.Last().Fails(CUDA_ERROR_INVALID_HANDLE);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user module"));
  }
}

CUAUDIT_CASE(DestroyedUnderUser, ALevelOfADestroyedMipmappedArray) {
  for (const CallId use : {CallId::ArrayGetDescriptor_v2, CallId::MemcpyAtoD_v2, CallId::ArrayDestroy}) {
    Trace t;
    t.Call(CallId::MipmappedArrayCreate).Out(0, kMipmapped);
    t.Call(CallId::MipmappedArrayGetLevel).Out(0, kLevel).In(1, kMipmapped);
    t.Call(CallId::MipmappedArrayDestroy).In(0, kMipmapped);
    t.Call(use).In(use == CallId::ArrayDestroy ? 0 : 1, kLevel);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user mipmapped_array"));
  }
}

// The memory of a registration goes back to the system. The driver still copies from and to the pages that were there.
CUAUDIT_CASE(DestroyedUnderUser, ARegistrationWhoseMappingIsGone) {
  for (const bool mapped_anew : {false, true}) {
    const CaseRow row(mapped_anew ? "mapped anew" : "unmapped");
    Trace t;
    t.Host(HostCall::Map, 0x10000, 0x4000);
    t.Call(CallId::MemHostRegister_v2).In(0, 0x11000).In(1, 0x1000);
    if (!mapped_anew) t.Host(HostCall::Unmap, 0x10000, 0x4000);
    if (mapped_anew) t.Host(HostCall::Map, 0x10000, 0x4000);
    const Step copy = t.Call(CallId::MemcpyHtoDAsync_v2).In(0, 0x500000).In(1, 0x11010).In(2, 16);
    const Step end = t.Call(CallId::MemHostUnregister).In(0, 0x11000);
    t.Misuse(driver::MisuseRule::HostFreedInUse, Kind::HostRegistration, 0x11000, 0x1000, end.begin(), copy.begin());  // the same
    const harness::Ledger ledger = t.Fold();
    EXPECT_THAT(Wrong(ledger), ElementsAre("destroyed_under_user host_registration"));
    EXPECT_EQ(ledger.violations[0].other.record_kind, faults::RecordKind::Host);
  }
}

// Of two registrations the first begins before what is unmapped, or a mapping shrinks in its place.
CUAUDIT_CASE(DestroyedUnderUser, APartOfAMappingUnderRegistrations) {
  enum class Use { OfFirst, OfSecond, AcrossItsBegin, OfTail };
  for (const Use use : {Use::OfFirst, Use::OfSecond, Use::AcrossItsBegin, Use::OfTail}) {
    const CaseRow row(std::to_string(static_cast<int>(use)));
    Trace t;
    t.Host(HostCall::Map, 0x10000, 0x8000);
    t.Call(CallId::MemHostRegister_v2).In(0, 0x10000).In(1, 0x3000);
    t.Call(CallId::MemHostRegister_v2).In(0, 0x13000).In(1, 0x3000);
    if (use == Use::OfTail) {
      t.Host(HostCall::Unmap, 0x10000, 0x8000).In(2, 0x2000);
      t.Host(HostCall::Map, 0x10000, 0x2000).In(2, 0x2000);
    } else {
      t.Host(HostCall::Unmap, 0x12000, 0x3000);
    }
    const std::uint64_t from = use == Use::OfFirst || use == Use::OfTail ? 0x12010 : use == Use::OfSecond ? 0x13010 : 0x11ff0;
    t.Call(CallId::MemcpyHtoDAsync_v2).In(0, 0x500000).In(1, from).In(2, 32);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user host_registration"));
  }
}

CUAUDIT_CASE(DestroyedUnderUser, ARegistrationWhoseBlockWasFreed) {
  for (const CallId use : {CallId::MemcpyDtoHAsync_v2, CallId::LaunchKernel}) {
    const CaseRow row(driver::Name(driver::BaseOf(use)));
    Trace t;
    t.Host(HostCall::Allocate, 0x10000, 0x4000);
    t.Call(CallId::MemHostRegister_v2).In(0, 0x10000).In(1, 0x4000);
    t.Host(HostCall::Deallocate, 0x10000);
    if (use == CallId::MemcpyDtoHAsync_v2) t.Call(use).In(0, 0x10010).In(1, 0x500000).In(2, 16);
    if (use == CallId::LaunchKernel) t.Arguments(t.Call(use), {0x10010});
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user host_registration"));
  }
}

CUAUDIT_CASE(DestroyedUnderUser, ABlockInThePlaceOfARegisteredOneIsRegistered) {
  Trace t;
  t.Host(HostCall::Allocate, 0x10000, 0x4000);
  t.Call(CallId::MemHostRegister_v2).In(0, 0x10000).In(1, 0x4000);
  t.Host(HostCall::Deallocate, 0x10000);
  t.Host(HostCall::Allocate, 0x12000, 0x4000);
  t.Call(CallId::MemHostRegister_v2).In(0, 0x12000).In(1, 0x4000).Fails(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user host_registration"));
}

// Whole programs on the simulated driver, which answers these calls with success and, here, is asked for no proof.
struct TexturedArray {
  Capturing p;
  CUarray array = nullptr;
  CUtexObject texture = 0;

  TexturedArray() {
    CUDA_ARRAY_DESCRIPTOR shape = {16, 4, CU_AD_FORMAT_FLOAT, 1};
    EXPECT_EQ(p.d.ArrayCreate(&array, &shape), CUDA_SUCCESS);
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    const CUDA_TEXTURE_DESC how = {};
    EXPECT_EQ(p.d.TexObjectCreate(&texture, &resource, &how, nullptr), CUDA_SUCCESS);
  }
};

CUAUDIT_CASE(DestroyedUnderUser, AProgramLaunchesWithTheTextureInEveryWay) {
  Causes(2);  // two launches
  const TexturedArray one;
  EXPECT_EQ(one.p.d.ArrayDestroy(one.array), CUDA_SUCCESS);
  one.p.Kernel(one.texture, one.p.stream);
  one.p.KernelEx(one.texture, one.p.stream);
  EXPECT_EQ(one.p.d.TexObjectDestroy(one.texture), CUDA_SUCCESS);
  one.p.Kernel(one.texture, one.p.stream);  // nothing tells that this one is a texture
  EXPECT_THAT(Wrong(one.p.Fold()), ElementsAre("destroyed_under_user array", "destroyed_under_user array"));
}

CUAUDIT_CASE(DestroyedUnderUser, AProgramUnloadsTheModuleUnderACapturedLaunch) {
  const Capturing p;
  p.Begin(p.stream);
  p.Kernel(p.Memory(), p.stream);
  CUgraphExec executable = p.Instantiate(p.End(p.stream));
  EXPECT_EQ(p.d.ModuleUnload(p.module), CUDA_SUCCESS);
  (void)p.d.GraphLaunch(executable, p.stream);
  EXPECT_THAT(Wrong(p.Fold()), ElementsAre("destroyed_under_user module"));
}

CUAUDIT_CASE(DestroyedUnderUser, AProgramUnloadsTheModuleUnderANode) {
  const Capturing p;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUdeviceptr memory = p.Memory();
  void* arguments[] = {&memory};
  const CUDA_KERNEL_NODE_PARAMS kernel = p.With(arguments);
  ASSERT_EQ(p.d.GraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(p.d.GraphAddKernelNode(&node, graph, nullptr, 0, &kernel), CUDA_SUCCESS);
  CUgraphExec executable = p.Instantiate(graph);
  EXPECT_EQ(p.d.ModuleUnload(p.module), CUDA_SUCCESS);
  (void)p.d.GraphLaunch(executable, p.stream);
  EXPECT_THAT(Wrong(p.Fold()), ElementsAre("destroyed_under_user module"));
}

CUAUDIT_CASE(DestroyedUnderUser, AProgramLaunchesAnUnloadedFunction) {
  const Capturing p;
  EXPECT_EQ(p.d.ModuleUnload(p.module), CUDA_SUCCESS);
  CUdeviceptr memory = p.Memory();
  void* arguments[] = {&memory};
  EXPECT_EQ(p.d.LaunchKernel(p.function, 1, 1, 1, 1, 1, 1, 0, p.stream, arguments, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(Wrong(p.Fold()), ElementsAre("destroyed_under_user module"));
}

// The proof of the simulated driver names the call that made the node, and stays alone.
TEST(Foundations, AProvedUseIsToldOnce) {
  Trace t;
  LoadFunction(t);
  GraphOf(t, kFunction);
  Unload(t);
  const Step launch = t.Call(CallId::GraphLaunch).In(0, kExecutable);
  t.Misuse(driver::MisuseRule::DestroyedInUse, Kind::Module, kFunction, 0, launch.begin(), launch.begin() - 4);
  const harness::Ledger ledger = t.Fold();
  ASSERT_THAT(ledger.violations, SizeIs(1));
  EXPECT_EQ(ledger.violations[0].rule, Rule::DestroyedInUse);
}

// Objects that live longer or shorter than a program may think: references, ranges, contexts in contexts.

CUAUDIT_CASE(UseAfterRelease, AUserObjectIsNotHeldByTheGraphsOfAnotherAtItsAddress) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  for (int i = 0; i < 2; ++i) {
    t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
    if (i == 0) t.Call(CallId::GraphRetainUserObject).In(0, 0x1).In(1, 0x9).In(2, 1).In(3, CU_GRAPH_USER_OBJECT_MOVE);
  }
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 1);
  t.Call(CallId::UserObjectRetain).In(0, 0x9).In(1, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release user_object"));
}

CUAUDIT_CASE(UseAfterRelease, AReleasedAllocationIsMapped) {
  Trace t;
  t.Call(CallId::MemCreate).Out(0, 0x5).In(1, 0x1000);
  t.Call(CallId::MemRelease).In(0, 0x5);
  t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5).Fails(CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release physical_memory"));
}

CUAUDIT_CASE(Leak, TheMappingBehindTheOneThatWasUnmapped) {
  Trace t;
  t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5);
  t.Call(CallId::MemMap).In(0, 0x11000).In(1, 0x1000).In(3, 0x5);
  t.Call(CallId::MemUnmap).In(0, 0x10000).In(1, 0x1000);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("mapping 1"));
}

CUAUDIT_CASE(DoubleRelease, OfAPoolThatAQueryAnsweredToo) {
  Trace t;
  t.Call(CallId::MemPoolCreate).Out(0, 0x33);
  t.Call(CallId::DeviceGetMemPool).Out(0, 0x33);
  t.Call(CallId::MemPoolDestroy).In(0, 0x33);
  t.Call(CallId::MemPoolDestroy).In(0, 0x33).Fails(CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("double_release memory_pool"));
}

CUAUDIT_CASE(Leak, OneOfTwoAttachmentsOfAContext) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
  t.Call(CallId::CtxAttach).Out(0, 0xa);
  t.Call(CallId::CtxDetach).In(0, 0xa).Context(0xa);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("context 1"));
  const Aside aside;
  t.Call(CallId::CtxAttach).Out(0, 0xa);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  EXPECT_THAT(Left(t.Fold()), IsEmpty()) << "destroying ends it for all";
}

CUAUDIT_CASE(ContextStack, ADestroyedContextIsOffTheStack) {
  Trace t;
  t.Push(0xd).Context(0xc);
  t.Pop(0xd).Context(0xd);
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0xc);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  t.Pop(0xc).Context(0xc);  // the caller's
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
}

CUAUDIT_CASE(Leak, ALibraryThatCouldNotBeClosed) {
  Trace t;
  t.Host(HostCall::Dlopen, 0x7);
  t.Host(HostCall::Dlclose, 0x7).Fails(CUDA_ERROR_UNKNOWN);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("dlopen_reference 1"));
}

CUAUDIT_CASE(Orphaned, WhatOutlivedItsGreenContextDiesWithThePrimaryOne) {
  Trace t;
  t.Retain();
  t.Call(CallId::GreenCtxCreate).Out(0, 0x6e).In(1, 0x77).In(2, 0).In(3, 1);
  t.Call(CallId::CtxFromGreenCtx).Out(0, 0x6f).In(1, 0x6e);
  t.Call(CallId::EventCreate).Out(0, 0x11).Context(0x6f);
  t.Call(CallId::GreenCtxDestroy).In(0, 0x6e);
  t.ReleasePrimary();
  EXPECT_THAT(Left(t.Fold()), ElementsAre("event 1 orphaned"));
}

#if CUDA_VERSION >= 12050
CUAUDIT_CASE(Leak, MemoryOfAGreenContextsStreamOutlivesThePrimaryOne) {
  Trace t;
  t.Retain();
  t.Call(CallId::GreenCtxCreate).Out(0, 0x6e).In(1, 0x77).In(2, 0).In(3, 1);
  t.Call(CallId::GreenCtxStreamCreate).Out(0, 0x51).In(1, 0x6e).In(2, 1).In(3, 0);
  t.Call(CallId::MemAllocAsync).Out(0, 0x7000).In(1, 64).In(2, 0x51);
  t.DestroyStream(0x51);
  t.Call(CallId::GreenCtxDestroy).In(0, 0x6e);
  t.ReleasePrimary();
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}
#endif

// The plan is to blame for the one whose destruction it refused, also where its handle came back.
CUAUDIT_CASE(ReleaseRefused, AChildOfAContextThatIsGone) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Refused(CUDA_ERROR_INVALID_CONTEXT);
  t.ReleasePrimary();
  t.Retain();
  t.CreateStream(0x10);
  t.DestroyStream(0x10);
  t.ReleasePrimary();
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 release_refused"));
}

}  // namespace
}  // namespace cuaudit::testing::foundations_test
