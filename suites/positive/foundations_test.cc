// SPDX-License-Identifier: MIT
// Objects that are destroyed under others without harm, and lifetimes that overlap.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <string>

#include "suites/support/cases/capturing.h"
#include "suites/support/cases/case.h"
#include "suites/support/cases/traces.h"

namespace cuaudit::testing::foundations_test {
namespace {

// Objects that are destroyed under others without harm: nobody uses those any more, or the manual allows it.

using driver::CallId;
using driver::Kind;
using faults::HostCall;
using ::testing::IsEmpty;

// A driver accepts it (contract question texture.of_destroyed_array), and nothing reads the texture any more.
CUAUDIT_CASE(DestroyedUnderUser, ATearDownThatTakesTheArrayBeforeItsTexture) {
  for (const TextureGround& ground : kTextureGrounds) {
    Trace t;
    t.Call(ground.make).Out(0, kArray).In(1, 0x1000);
    View(t, CallId::TexObjectCreate, kTexture, ground.kind, kArray);
    View(t, CallId::SurfObjectCreate, kTexture, ground.kind, kArray);  // another object under the same number
    t.Call(ground.destroy).In(0, kArray);
    t.Call(CallId::TexObjectDestroy).In(0, kTexture);
    t.Call(CallId::SurfObjectDestroy).In(0, kTexture);
    LaunchWith(t, {kTexture});
    ExpectSilent(t);
  }
}

CUAUDIT_CASE(DestroyedUnderUser, AKernelOfAnotherTexture) {
  Trace t;
  t.Call(CallId::ArrayCreate_v2).Out(0, kArray);
  t.Call(CallId::ArrayCreate_v2).Out(0, 0xa1);
  View(t, CallId::TexObjectCreate, kTexture, Kind::Array, kArray);
  View(t, CallId::TexObjectCreate, kTexture + 1, Kind::Array, 0xa1);
  t.Call(CallId::ArrayDestroy).In(0, kArray);
  LaunchWith(t, {kTexture + 1, 0x500});
  t.Call(CallId::TexObjectDestroy).In(0, kTexture);
  t.Call(CallId::TexObjectDestroy).In(0, kTexture + 1);
  t.Call(CallId::ArrayDestroy).In(0, 0xa1);
  ExpectSilent(t);
}

// A driver that counts its textures from 1. The kernel is handed a length, and nobody uses the texture any more.
CUAUDIT_CASE(DestroyedUnderUser, ANumberThatEqualsTheHandleOfATexture) {
  for (const CallId view : {CallId::TexObjectCreate, CallId::SurfObjectCreate}) {
    Trace t;
    t.Call(CallId::ArrayCreate_v2).Out(0, kArray);
    View(t, view, 1, Kind::Array, kArray);
    t.Call(CallId::ArrayDestroy).In(0, kArray);
    LaunchWith(t, {0x7f0000000000, 1});
    t.Call(view == CallId::TexObjectCreate ? CallId::TexObjectDestroy : CallId::SurfObjectDestroy).In(0, 1);
    ExpectSilent(t);
  }
}

CUAUDIT_CASE(DestroyedUnderUser, ATextureThatWasMadeAnewOfAnotherArray) {
  Trace t;
  for (const std::uint64_t array : {std::uint64_t{0xa1}, kArray}) {
    t.Call(CallId::ArrayCreate_v2).Out(0, array);
    View(t, CallId::TexObjectCreate, kTexture, Kind::Array, array);
    if (array == kArray) LaunchWith(t, {kTexture});
    t.Call(CallId::ArrayDestroy).In(0, array);
    t.Call(CallId::TexObjectDestroy).In(0, kTexture);
  }
  ExpectSilent(t);
}

// The plan is to blame: the array is there although the program was told otherwise, or gone although it was told that it is there.
CUAUDIT_CASE(DestroyedUnderUser, AnArrayWhoseDestructionDidNotHappenOrWasDenied) {
  for (const bool happened : {false, true}) {
    Trace t;
    t.Call(CallId::ArrayCreate_v2).Out(0, kArray);
    View(t, CallId::TexObjectCreate, kTexture, Kind::Array, kArray);
    t.Call(CallId::ArrayDestroy).In(0, kArray);
    if (happened) t.Last().After();
    if (!happened) t.Last().Refused();
    LaunchWith(t, {kTexture});
    t.Call(CallId::TexObjectDestroy).In(0, kTexture);
    if (!happened) t.Call(CallId::ArrayDestroy).In(0, kArray);
    ExpectSilent(t);
  }
}

CUAUDIT_CASE(DestroyedUnderUser, AModuleIsUnloadedBeforeItsGraphIsDestroyed) {
  Trace t;
  LoadFunction(t);
  GraphOf(t, kFunction);
  t.Call(CallId::GraphLaunch).In(0, kExecutable);
  Unload(t);
  EndGraph(t);
  ExpectSilent(t);
}

CUAUDIT_CASE(DestroyedUnderUser, ANodeThatWasSetToAnotherModulesFunction) {
  Trace t;
  LoadFunction(t);
  t.Call(CallId::ModuleLoadData).Out(0, 0x32);
  t.Call(CallId::ModuleGetFunction).Out(0, 0xf1).In(1, 0x32);
  GraphOf(t, kFunction);
  const Step set = t.Call(CallId::GraphExecKernelNodeSetParams_v2).In(0, kExecutable).In(1, kNode);
  t.NodeContent(set, faults::kStandsOn, static_cast<std::uint64_t>(Kind::Module), 0xf1);
  Unload(t);
  t.Call(CallId::GraphLaunch).In(0, kExecutable);
  EndGraph(t);
  t.Call(CallId::ModuleUnload).In(0, 0x32);
  ExpectSilent(t);
}

// The driver accepts the launch, so the function is another one: the CUDA runtime got it by a way without a record.
CUAUDIT_CASE(DestroyedUnderUser, AFunctionsHandleIsGivenAnew) {
  Trace t;
  LoadFunction(t);
  Unload(t);
  t.Call(CallId::LaunchKernel).In(0, kFunction);
  GraphOf(t, kFunction);
  t.Call(CallId::GraphLaunch).In(0, kExecutable);
  EndGraph(t);
  LoadFunction(t);  // under the same handles
  t.Call(CallId::LaunchKernel).In(0, kFunction).Fails(CUDA_ERROR_INVALID_VALUE);
  Unload(t);
  t.Call(CallId::LaunchKernel).In(0, kFunction).Refused();
  ExpectSilent(t);
}

CUAUDIT_CASE(DestroyedUnderUser, ALevelWhileItsArrayLivesAndAnArrayAtItsHandle) {
  Trace t;
  t.Call(CallId::MipmappedArrayCreate).Out(0, kMipmapped);
  t.Call(CallId::MipmappedArrayGetLevel).Out(0, kLevel).In(1, kMipmapped);
  t.Call(CallId::ArrayGetDescriptor_v2).In(1, kLevel);
  t.Call(CallId::MipmappedArrayDestroy).In(0, kMipmapped);
  t.Call(CallId::ArrayCreate_v2).Out(0, kLevel);
  t.Call(CallId::ArrayGetDescriptor_v2).In(1, kLevel);
  t.Call(CallId::ArrayDestroy).In(0, kLevel);
  ExpectSilent(t);
}

// An H200 goes on reading (contract question external.destroy_while_mapped).
CUAUDIT_CASE(DestroyedUnderUser, ABufferOutlivesItsExternalMemory) {
  Trace t;
  t.Call(CallId::ImportExternalMemory).Out(0, 0xe0);
  t.Call(CallId::ExternalMemoryGetMappedBuffer).Out(0, 0x40000).In(1, 0xe0);
  t.Call(CallId::DestroyExternalMemory).In(0, 0xe0);
  t.Call(CallId::MemcpyDtoH_v2).In(1, 0x40000).In(2, 16);
  t.Free(0x40000);
  ExpectSilent(t);
}

// "The generic memory handle can be freed when there are still outstanding mappings" (cuMemRelease).
CUAUDIT_CASE(DestroyedUnderUser, MemoryIsReleasedUnderItsMapping) {
  Trace t;
  t.Call(CallId::MemAddressReserve).Out(0, 0x200000).In(1, 0x1000);
  t.Call(CallId::MemCreate).Out(0, 0x5).In(1, 0x1000);
  t.Call(CallId::MemMap).In(0, 0x200000).In(1, 0x1000).In(3, 0x5);
  t.Call(CallId::MemRelease).In(0, 0x5);
  t.Call(CallId::MemsetD8_v2).In(0, 0x200000).In(2, 16);
  t.Call(CallId::MemUnmap).In(0, 0x200000).In(1, 0x1000);
  t.Call(CallId::MemAddressFree).In(0, 0x200000).In(1, 0x1000);
  ExpectSilent(t);
}

// "... will be released automatically once there are no more outstanding allocations" (cuMemPoolDestroy).
CUAUDIT_CASE(DestroyedUnderUser, APoolIsDestroyedUnderItsBlocks) {
  Trace t;
  t.Call(CallId::MemPoolCreate).Out(0, 0x33);
  t.Call(CallId::MemAllocFromPoolAsync).Out(0, 0x7000).In(1, 64).In(2, 0x33);
  t.Call(CallId::MemPoolDestroy).In(0, 0x33);
  t.Call(CallId::MemsetD8_v2).In(0, 0x7000).In(2, 16);
  t.Call(CallId::MemFreeAsync).In(0, 0x7000);
  ExpectSilent(t);
}

// "An event may be destroyed before it is complete" (cuEventDestroy); the wait that was queued stays in order
// (busy.destroyed_event_still_orders).
CUAUDIT_CASE(DestroyedUnderUser, AnEventIsDestroyedUnderAWait) {
  Trace t;
  t.CreateStream(0x51);
  t.Call(CallId::EventCreate).Out(0, 0x11);
  t.Call(CallId::StreamWaitEvent).In(0, 0x51).In(1, 0x11);
  t.Call(CallId::EventDestroy_v2).In(0, 0x11);
  t.Call(CallId::StreamSynchronize).In(0, 0x51);
  t.DestroyStream(0x51);
  ExpectSilent(t);
}

// The driver drops the capture with its stream (capture.destroy_stream).
CUAUDIT_CASE(DestroyedUnderUser, AStreamIsDestroyedUnderItsCapture) {
  Trace t;
  t.CreateStream(0x51);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x51);
  t.DestroyStream(0x51);
  ExpectSilent(t);
}

// The registration ends before its memory, or right after it, or could not be ended then.
CUAUDIT_CASE(DestroyedUnderUser, ARegistrationAndItsMemoryEndTogether) {
  enum class Ends { Before, After, RefusedBefore, RefusedAfter };
  for (const Ends ends : {Ends::Before, Ends::After, Ends::RefusedBefore, Ends::RefusedAfter}) {
    const bool after = ends == Ends::After || ends == Ends::RefusedAfter;
    const bool refused = ends == Ends::RefusedBefore || ends == Ends::RefusedAfter;
    for (const HostCall gives_back : {HostCall::Unmap, HostCall::Deallocate}) {
      Trace t;
      t.Host(gives_back == HostCall::Unmap ? HostCall::Map : HostCall::Allocate, 0x10000, 0x4000);
      t.Call(CallId::MemHostRegister_v2).In(0, 0x10000).In(1, 0x4000);
      if (after) t.Host(gives_back, 0x10000, gives_back == HostCall::Unmap ? 0x4000 : 0);
      Step unregister = t.Call(CallId::MemHostUnregister).In(0, 0x10000);
      if (refused) unregister.Refused(CUDA_ERROR_INVALID_VALUE);
      if (!after) t.Host(gives_back, 0x10000, gives_back == HostCall::Unmap ? 0x4000 : 0);
      t.Host(HostCall::Allocate, 0x10000, 0x4000);
      t.Call(CallId::MemcpyHtoDAsync_v2).In(0, 0x500000).In(1, 0x10010).In(2, 16);
      if (refused) t.Call(CallId::MemHostRegister_v2).In(0, 0x10000).In(1, 0x4000).Fails(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
      EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
    }
  }
}

// mremap leaves the mapping where it is, and with it the pages that stay.
CUAUDIT_CASE(DestroyedUnderUser, ARegisteredMappingThatGrowsOrShrinksInItsPlace) {
  for (const std::uint64_t length : {0x8000U, 0x2000U}) {
    const CaseRow row(std::to_string(length));
    const std::uint64_t kept = std::min<std::uint64_t>(length, 0x4000);
    Trace t;
    t.Host(HostCall::Map, 0x10000, 0x4000);
    t.Call(CallId::MemHostRegister_v2).In(0, 0x10000).In(1, 0x2000);
    t.Host(HostCall::Unmap, 0x10000, 0x4000).In(2, kept);
    t.Host(HostCall::Map, 0x10000, length).In(2, kept);
    t.Call(CallId::MemcpyHtoDAsync_v2).In(0, 0x500000).In(1, 0x11000).In(2, 0x1000);
    t.Call(CallId::MemHostUnregister).In(0, 0x10000);
    t.Host(HostCall::Unmap, 0x10000, length);
    ExpectSilent(t);
  }
}

CUAUDIT_CASE(DestroyedUnderUser, APartOfARegistrationThatIsStillMapped) {
  Trace t;
  t.Host(HostCall::Map, 0x10000, 0x4000);
  t.Host(HostCall::Map, 0x14000, 0x4000);
  t.Call(CallId::MemHostRegister_v2).In(0, 0x10000).In(1, 0x8000);
  t.Host(HostCall::Unmap, 0x14000, 0x4000);
  t.Call(CallId::MemcpyHtoDAsync_v2).In(0, 0x500000).In(1, 0x10000).In(2, 0x4000);
  t.Call(CallId::MemHostUnregister).In(0, 0x10000);
  t.Host(HostCall::Unmap, 0x10000, 0x4000);
  ExpectSilent(t);
}

// Another block is there, on pages that the C library may have kept. Other memory is used, and asked about.
CUAUDIT_CASE(DestroyedUnderUser, ABlockInThePlaceOfARegisteredOneIsUsed) {
  Trace t;
  t.Host(HostCall::Allocate, 0x10000, 0x4000);
  t.Call(CallId::MemHostRegister_v2).In(0, 0x10000).In(1, 0x4000);
  t.Host(HostCall::Deallocate, 0x10000);
  t.Call(CallId::MemHostGetFlags).In(1, 0x10010);
  t.Call(CallId::MemcpyHtoDAsync_v2).In(0, 0x500000).In(1, 0x14000).In(2, 16);
  t.Host(HostCall::Allocate, 0x13000, 0x4000);
  t.Call(CallId::MemcpyHtoDAsync_v2).In(0, 0x500000).In(1, 0x13010).In(2, 16);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(DestroyedUnderUser, ARegistrationOfLiveMemoryIsInTheWay) {
  Trace t;
  t.Host(HostCall::Allocate, 0x10000, 0x4000);
  t.Call(CallId::MemHostRegister_v2).In(0, 0x10000).In(1, 0x4000);
  t.Call(CallId::MemHostRegister_v2).In(0, 0x11000).In(1, 0x4000).Fails(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  t.Call(CallId::MemHostUnregister).In(0, 0x10000);
  t.Host(HostCall::Deallocate, 0x10000);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(DestroyedUnderUser, AProgramThatTakesTheTextureFirst) {
  const Capturing p;
  CUarray array = nullptr;
  CUtexObject texture = 0;
  const CUDA_ARRAY_DESCRIPTOR shape = {16, 4, CU_AD_FORMAT_FLOAT, 1};
  CUDA_RESOURCE_DESC resource = {};
  const CUDA_TEXTURE_DESC how = {};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(p.d.ArrayCreate(&array, &shape), CUDA_SUCCESS);
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    EXPECT_EQ(p.d.TexObjectCreate(&texture, &resource, &how, nullptr), CUDA_SUCCESS);
    p.Kernel(texture, p.stream);
    EXPECT_EQ(p.d.TexObjectDestroy(texture), CUDA_SUCCESS);
    EXPECT_EQ(p.d.ArrayDestroy(array), CUDA_SUCCESS);
    p.Kernel(texture, p.stream);
  }
  EXPECT_THAT(Wrong(p.Fold()), IsEmpty());
}

// Lifetimes that overlap: of host memory and its registration, of graphs and what was made of them, of cycles and what came before.

Step KernelNode(Trace& t, std::uint64_t node, std::uint64_t graph, std::uint64_t address) {
  Step step = t.Call(CallId::GraphAddKernelNode_v2).Out(0, node).In(1, graph);
  t.Arguments(step, {address});
  return step;
}

CUAUDIT_CASE(UseAfterRelease, HostMemoryOutlivesItsRegistration) {
  Trace t;
  t.Call(CallId::MemHostRegister_v2).In(0, 0x1000).In(1, 0x1000);
  t.Call(CallId::MemHostUnregister).In(0, 0x1000);
  t.Call(CallId::Memcpy).In(0, 0x1010).In(1, 0x500000).In(2, 16);
  ExpectSilent(t);
}

// One executable graph is set to other memory: its sister and the graph itself go on using the first.
CUAUDIT_CASE(UseAfterRelease, OneExecutableGraphIsChangedAndItsSisterIsNot) {
  Trace t;
  t.Alloc(0x10000);
  t.Alloc(0x20000);
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  KernelNode(t, 0x2, 0x1, 0x10000);
  for (const std::uint64_t executable : {0x3U, 0x4U}) t.Call(CallId::GraphInstantiateWithFlags).Out(0, executable).In(1, 0x1);
  t.Arguments(t.Call(CallId::GraphExecKernelNodeSetParams_v2).In(0, 0x3).In(1, 0x2), {0x20000});
  t.Free(0x20000);
  t.Call(CallId::GraphLaunch).In(0, 0x4);
  for (const std::uint64_t executable : {0x3U, 0x4U}) t.Call(CallId::GraphExecDestroy).In(0, executable);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  t.Free(0x10000);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, ANodeThatWasSetToUseNoMemory) {
  Trace t;
  t.Alloc(0x10000);
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  KernelNode(t, 0x2, 0x1, 0x10000);
  t.Call(CallId::GraphKernelNodeSetParams_v2).In(0, 0x2);
  t.Free(0x10000);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x3).In(1, 0x1);
  t.Call(CallId::GraphLaunch).In(0, 0x3);
  t.Call(CallId::GraphExecDestroy).In(0, 0x3);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  ExpectSilent(t);
}

CUAUDIT_CASE(WrongContext, AnErrorThatSaysNothingOfTheContext) {
  Trace t;
  t.Call(CallId::ModuleLoadData).Out(0, 0x30).Context(0xa);
  t.Call(CallId::ModuleUnload).In(0, 0x30).Context(0xb).Fails(CUDA_ERROR_NOT_PERMITTED);
  t.Call(CallId::ModuleUnload).In(0, 0x30).Context(0xa);
  ExpectSilent(t);
}

CUAUDIT_CASE(ContextStack, PushedBeforeTheCycle) {
  Trace t;
  t.Push(0xa).Context(0);
  t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  t.Pop(0xa).Context(0xa);
  ExpectSilent(t);
}

// The mark of the begin is inside of a pair.
CUAUDIT_CASE(ContextStack, PushedBeforeTheCycleAndPoppedInIt) {
  for (const std::uint32_t cycles : {1U, 3U}) {
    const CaseRow row(std::to_string(cycles));
    Trace t;
    for (std::uint32_t cycle = 1; cycle <= cycles; ++cycle) {
      t.Push(0xa).Context(0).Cycle(cycle - 1);
      t.Mark(faults::MarkKind::CycleBegin).Cycle(cycle);
      t.Pop(0xa).Context(0xa).Cycle(cycle);
      t.Mark(faults::MarkKind::CycleEnd).Cycle(cycle);
    }
    ExpectSilent(t);
  }
}

CUAUDIT_CASE(ContextStack, SetBeforeEachCycleAndPoppedInIt) {
  Trace t;
  for (std::uint32_t cycle = 1; cycle <= 3; ++cycle) {
    t.Call(CallId::CtxSetCurrent).In(0, 0xa).Context(0).Cycle(cycle - 1);
    t.Mark(faults::MarkKind::CycleBegin).Cycle(cycle);
    t.Pop(0xa).Context(0xa).Cycle(cycle);
    t.Mark(faults::MarkKind::CycleEnd).Cycle(cycle);
  }
  ExpectSilent(t);
}

}  // namespace
}  // namespace cuaudit::testing::foundations_test
