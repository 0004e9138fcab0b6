// SPDX-License-Identifier: MIT
#include "suites/support/cases/case.h"
#include "suites/support/cases/traces.h"

namespace cuaudit::testing::use_test {
namespace {

using driver::CallId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kGraph = 0x61;
constexpr std::uint64_t kClone = 0x62;
constexpr std::uint64_t kExecutable = 0x63;
constexpr std::uint64_t kNode = 0x64;
constexpr std::uint64_t kStream = 0x65;

void KernelNode(Trace& t, std::uint64_t graph, std::uint64_t address) {
  const Step node = t.Call(CallId::GraphAddKernelNode_v2).Out(0, kNode).In(1, graph);
  t.Arguments(node, {address, 0x3f});
}

void InstantiateAndLaunch(Trace& t, std::uint64_t graph) {
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, kExecutable).In(1, graph);
  t.Call(CallId::GraphLaunch).In(0, kExecutable).In(1, kStream);
}

CUAUDIT_CASE(UseAfterRelease, ADestroyedStreamIsSynchronised) {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10);
  t.Call(CallId::StreamSynchronize).In(0, 0x10).Fails(CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release stream"));
}

CUAUDIT_CASE(UseAfterRelease, NamesTheRelease) {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Stack(9);
  t.Call(CallId::StreamSynchronize).In(0, 0x10).Stack(8).Fails(CUDA_ERROR_INVALID_HANDLE);
  const harness::Ledger ledger = t.Fold();
  ASSERT_THAT(Wrong(ledger), ElementsAre("use_after_release stream"));
  EXPECT_EQ(ledger.violations[0].where.stack, 8U);
  EXPECT_EQ(ledger.violations[0].other.stack, 9U);
}

CUAUDIT_CASE(UseAfterRelease, WhatTheSimulatorProvesOfTheSameLaunchIsNotSaidAgain) {
  constexpr std::uint64_t memory = 0x7000;
  Trace t;
  t.Alloc(memory);
  t.Call(CallId::GraphCreate).Out(0, kGraph);
  KernelNode(t, kGraph, memory);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, kExecutable).In(1, kGraph);
  const Step free = t.Free(memory);
  const Step launch = t.Call(CallId::GraphLaunch).In(0, kExecutable).In(1, kStream);
  t.Misuse(driver::MisuseRule::GraphReadsFreed, driver::Kind::DeviceMemory, memory, 64, launch.begin(), free.begin());
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
}

CUAUDIT_CASE(UseAfterRelease, EachDeadHandleOfACallIsNamed) {
  Trace t;
  t.CreateStream(0x10);
  t.Call(CallId::EventCreate).Out(0, 0x11);
  t.DestroyStream(0x10);
  t.Call(CallId::EventDestroy_v2).In(0, 0x11);
  t.Call(CallId::StreamWaitEvent).In(0, 0x10).In(1, 0x11);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release stream", "use_after_release event"));
}

CUAUDIT_CASE(UseAfterRelease, AnInteriorPointerOfFreedMemory) {
  Trace t;
  t.Alloc(0x10000, 0x1000);
  t.Free(0x10000);
  t.Call(CallId::MemsetD8_v2).In(0, 0x10fff).In(2, 1);
  t.Call(CallId::MemsetD8_v2).In(0, 0x11000).In(2, 1);  // past its end: nothing is known there
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
}

CUAUDIT_CASE(UseAfterRelease, TheRestOfAPartlyReusedBlock) {
  Trace t;
  t.Alloc(0x10000, 0x1000);
  t.Free(0x10000);
  t.Alloc(0x10400, 0x400);
  t.Call(CallId::MemsetD8_v2).In(0, 0x10000).In(2, 1);
  t.Call(CallId::MemsetD8_v2).In(0, 0x10500).In(2, 1);
  t.Call(CallId::MemsetD8_v2).In(0, 0x10900).In(2, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory", "use_after_release device_memory"));
}

CUAUDIT_CASE(UseAfterRelease, AnUnmappedRange) {
  Trace t;
  t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5);
  t.Call(CallId::MemUnmap).In(0, 0x10000).In(1, 0x1000);
  t.Call(CallId::MemsetD8_v2).In(0, 0x10010).In(2, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release mapping"));
}

CUAUDIT_CASE(UseAfterRelease, ATextureObjectIsNotMistakenForAnAddress) {
  Trace t;
  t.Call(CallId::TexObjectCreate).Out(0, 0x5);
  t.Call(CallId::TexObjectDestroy).In(0, 0x5);
  t.Call(CallId::TexObjectGetTextureDesc).In(1, 0x5);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release texture_object"));
}

CUAUDIT_CASE(UseAfterRelease, ReleasedAfterItsContextWasDestroyed) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
  t.CreateStream(0x10).Context(0xa);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  t.DestroyStream(0x10).Context(0).Fails(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("use_after_release stream"));
  EXPECT_THAT(Left(ledger), IsEmpty());
}

// Whoever gives it back, the last reference that the program was told of ends the context.
CUAUDIT_CASE(UseAfterRelease, ReleasedAfterTheLastPrimaryReferenceThatTheProgramKnowsOf) {
  struct Shape {
    const char* label;
    std::uint32_t denied, first, second;  // threads
  };
  constexpr Shape kShapes[] = {{"the owner's", 2, 1, 0}, {"a third one's", 2, 3, 0}, {"both", 2, 2, 1}, {"both of one thread", 1, 1, 1}};
  for (const Shape& shape : kShapes) {
    const CaseRow row(shape.label);
    Trace t;
    t.Retain().Thread(1);
    t.CreateStream(0x10).Thread(1);
    t.Retain().Thread(shape.denied).After();
    t.ReleasePrimary().Thread(shape.first);
    if (shape.second != 0) t.ReleasePrimary().Thread(shape.second);
    t.DestroyStream(0x10).Thread(1);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release stream"));
  }
}

// The pinned scope lets the release succeed; without the pin the stream would be gone.
CUAUDIT_CASE(UseAfterRelease, ReleasedAfterTheLastPrimaryReference) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.ReleasePrimary();
  t.DestroyStream(0x10);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("use_after_release stream"));
  EXPECT_THAT(Left(ledger), IsEmpty());
}

// It came too late, and nothing else is wrong: not that it was forgotten, nor that it is tried again when it was refused.
CUAUDIT_CASE(UseAfterRelease, ReleasedTooLateHoweverThatIsAnswered) {
  for (const char* const answer : {"refused", "after", "failed"}) {
    Trace t;
    t.Retain();
    t.CreateStream(0x10);
    t.ReleasePrimary();
    for (int tries = 0; tries < 2; ++tries) {
      Step release = t.DestroyStream(0x10);
      if (*answer == 'r') release.Refused();
      if (*answer == 'a') release.After();
      if (*answer == 'f' || tries == 1) release.Fails(CUDA_ERROR_INVALID_HANDLE);
    }
    const harness::Ledger ledger = t.Fold();
    EXPECT_THAT(Wrong(ledger), ElementsAre("use_after_release stream")) << answer;
    EXPECT_THAT(Left(ledger), IsEmpty()) << answer;
  }
}

// cuIpcCloseMemHandle closes memory of another process. Of the program's own memory it is no release, so that memory is still missing.
CUAUDIT_CASE(UseAfterRelease, ClosedAsIfOpenedAfterTheLastPrimaryReference) {
  Also(harness::Rule::Orphaned, driver::Kind::DeviceMemory);
  Trace t;
  t.Retain();
  t.Alloc(0x10000, 64);
  t.ReleasePrimary();
  t.Call(CallId::IpcCloseMemHandle).In(0, 0x10000).Fails(CUDA_ERROR_INVALID_VALUE);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("use_after_release device_memory"));
  EXPECT_THAT(Left(ledger), ElementsAre("device_memory 1 orphaned"));
}

CUAUDIT_CASE(UseAfterRelease, ADestroyedContextIsPushed) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  t.Push(0xa).Context(0).Fails(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release context"));
}

// Where the host's own blocks are recorded, nobody else can have got the address unseen.
CUAUDIT_CASE(UseAfterRelease, PinnedMemoryWhereTheHostIsSeen) {
  const CaseRow row(driver::Kind::PinnedMemory);
  Trace t;
  t.Host(faults::HostCall::Allocate, 0x5000, 64);
  t.Call(CallId::MemHostAlloc).Out(0, 0x20000).In(1, 0x1000);
  t.Call(CallId::MemFreeHost).In(0, 0x20000);
  t.Call(CallId::MemsetD8_v2).In(0, 0x20010).In(2, 16);
  t.Host(faults::HostCall::Deallocate, 0x5000);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release pinned_memory"));
}

CUAUDIT_CASE(UseAfterRelease, ExternalMemoryIsMapped) {
  const CaseRow row(driver::Kind::ExternalMemory);
  Trace t;
  t.Call(CallId::ImportExternalMemory).Out(0, 0x5);
  t.Call(CallId::DestroyExternalMemory).In(0, 0x5);
  t.Call(CallId::ExternalMemoryGetMappedBuffer).In(1, 0x5).Fails(CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release external_memory"));
}

CUAUDIT_CASE(UseAfterRelease, AKernelArgumentOfALaunch) {
  Trace t;
  t.Alloc(0x10000);
  t.Free(0x10000);
  const Step launch = t.Call(CallId::LaunchKernel).In(8, kStream);
  t.Arguments(launch, {0x10010, 0x10020});
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
}

CUAUDIT_CASE(UseAfterRelease, TheOwnerIsFreedBeforeTheGraphRuns) {
  Trace t;
  t.Alloc(0x10000);
  t.Call(CallId::GraphCreate).Out(0, kGraph);
  KernelNode(t, kGraph, 0x10000);
  t.Free(0x10000);
  InstantiateAndLaunch(t, kGraph);
  const harness::Ledger ledger = t.Fold();
  ASSERT_THAT(Wrong(ledger), ElementsAre("use_after_release device_memory"));
  EXPECT_EQ(ledger.violations[0].where.call, static_cast<std::uint16_t>(CallId::GraphLaunch));
  EXPECT_EQ(ledger.violations[0].object, 0);
}

CUAUDIT_CASE(UseAfterRelease, ACloneCarriesTheArguments) {
  Trace t;
  t.Alloc(0x10000);
  t.Call(CallId::GraphCreate).Out(0, kGraph);
  KernelNode(t, kGraph, 0x10000);
  t.Call(CallId::GraphClone).Out(0, kClone).In(1, kGraph);
  t.Call(CallId::GraphDestroy).In(0, kGraph);
  t.Free(0x10000);
  InstantiateAndLaunch(t, kClone);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
}

CUAUDIT_CASE(UseAfterRelease, EveryLaunchCounts) {
  Trace t;
  t.Alloc(0x10000);
  t.Call(CallId::GraphCreate).Out(0, kGraph);
  KernelNode(t, kGraph, 0x10000);
  InstantiateAndLaunch(t, kGraph);
  t.Free(0x10000);
  t.Call(CallId::GraphLaunch).In(0, kExecutable).In(1, kStream);
  t.Call(CallId::GraphLaunch).In(0, kExecutable).In(1, kStream);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory", "use_after_release device_memory"));
}

CUAUDIT_CASE(UseAfterRelease, ACapturedNodeHasNoOwner) {
  Trace t;
  t.CreateStream(kStream);
  t.Alloc(0x10000);
  t.Call(CallId::StreamBeginCapture_v2).In(0, kStream);
  t.Call(CallId::MemsetD8Async).In(0, 0x10000).In(2, 16).In(3, kStream);
  t.Call(CallId::StreamEndCapture).In(0, kStream).Out(1, kGraph);
  t.Free(0x10000);
  InstantiateAndLaunch(t, kGraph);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
}

CUAUDIT_CASE(UseAfterRelease, ACaptureForksToAnotherStream) {
  Trace t;
  t.Alloc(0x10000);
  t.Call(CallId::StreamBeginCapture_v2).In(0, kStream);
  t.Call(CallId::EventRecord).In(0, 0xe).In(1, kStream);
  t.Call(CallId::StreamWaitEvent).In(0, 0x99).In(1, 0xe);
  const Step launch = t.Call(CallId::LaunchKernel).In(8, 0x99);
  t.Arguments(launch, {0x10000});
  t.Call(CallId::StreamEndCapture).In(0, kStream).Out(1, kGraph);
  t.Free(0x10000);
  InstantiateAndLaunch(t, kGraph);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
}

CUAUDIT_CASE(UseAfterRelease, ANodeOfADestroyedGraph) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, kGraph);
  KernelNode(t, kGraph, 0);
  t.Call(CallId::GraphDestroy).In(0, kGraph);
  t.Call(CallId::GraphKernelNodeSetParams_v2).In(0, kNode);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release graph_node"));
}

CUAUDIT_CASE(UseAfterRelease, AUserObjectThatNobodyHolds) {
  Causes(2);  // two calls are wrong
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, kGraph);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 1);
  t.Call(CallId::GraphRetainUserObject).In(0, kGraph).In(1, 0x9).In(2, 1).In(3, 0);
  t.Call(CallId::UserObjectRetain).In(0, 0x9).In(1, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release user_object", "use_after_release user_object"));
}

CUAUDIT_CASE(UseAfterRelease, AUserObjectDiesWithTheChildGraphNodeThatHeldIt) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, kGraph);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
  t.Call(CallId::GraphRetainUserObject).In(0, kGraph).In(1, 0x9).In(2, 1).In(3, CU_GRAPH_USER_OBJECT_MOVE);
  t.Call(CallId::GraphCreate).Out(0, kClone);
  t.Call(CallId::GraphAddChildGraphNode).Out(0, kNode).In(1, kClone).In(4, kGraph);
  t.Call(CallId::GraphDestroy).In(0, kGraph);
  t.Call(CallId::UserObjectRetain).In(0, 0x9).In(1, 1);  // the node holds it
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 1);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  t.Call(CallId::GraphDestroyNode).In(0, kNode);
  t.Call(CallId::UserObjectRetain).In(0, 0x9).In(1, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release user_object"));
}

CUAUDIT_CASE(UseAfterRelease, AChildGraphCopiedByTheGenericCallReadsFreedMemory) {
  for (const bool set_later : {false, true}) {
    Trace t;
    t.Alloc(0x10000);
    t.Call(CallId::GraphCreate).Out(0, kGraph);
    const Step fill = t.Call(CallId::GraphAddMemsetNode).Out(0, 0x71).In(1, kGraph);
    t.Arguments(fill, {0x10000});
    t.Call(CallId::GraphCreate).Out(0, kClone);
    const Step add = t.Call(CallId::GraphAddNode_v2).Out(0, kNode).In(1, kClone);
    if (!set_later) t.NodeContent(add, faults::kCopiedGraph, kGraph);
    t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x72).In(1, kClone);
    if (set_later) t.NodeContent(t.Call(CallId::GraphExecNodeSetParams).In(0, 0x72).In(1, kNode), faults::kCopiedGraph, kGraph);
    t.Call(CallId::GraphLaunch).In(0, 0x72).In(1, 0x5);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
    t.Free(0x10000);
    t.Call(CallId::GraphLaunch).In(0, 0x72).In(1, 0x5);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
  }
}

constexpr CallId kCopies[] = {CallId::Memcpy2D_v2, CallId::Memcpy2DUnaligned_v2, CallId::Memcpy2DAsync_v2, CallId::Memcpy3D_v2,
                              CallId::Memcpy3DAsync_v2};

CUAUDIT_CASE(UseAfterRelease, ACopyOfTwoOrThreeDimensions) {
  for (const CallId copy : kCopies) {
    const CaseRow row(driver::Name(driver::BaseOf(copy)));
    {
      Trace t;
      t.Alloc(0x5000);
      t.Free(0x5000);
      const Step declined = t.Call(copy).Fails(CUDA_ERROR_INVALID_VALUE);
      t.NodeContent(declined, faults::kNames, static_cast<std::uint64_t>(driver::Kind::DeviceMemory), 0x5010);
      EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
    }
    Trace t;
    t.Call(CallId::ArrayCreate_v2).Out(0, 0x80);
    t.Call(CallId::ArrayDestroy).In(0, 0x80);
    const Step declined = t.Call(copy).Fails(CUDA_ERROR_INVALID_HANDLE);
    t.NodeContent(declined, faults::kNames, static_cast<std::uint64_t>(driver::Kind::Array), 0x80);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release array"));
  }
}

// Whether anybody else has the memory by then is known by the driver's answer, or where blocks of the host are recorded.
CUAUDIT_CASE(UseAfterRelease, PinnedMemoryByItsDeviceAddress) {
  for (const CallId use : {CallId::MemsetD8_v2, CallId::MemcpyHtoD_v2, CallId::MemcpyDtoDAsync_v2}) {
    const CaseRow row(driver::Name(driver::BaseOf(use)));
    Trace t;
    t.Call(CallId::MemAllocHost_v2).Out(0, 0x9000).In(1, 0x1000);
    t.Call(CallId::MemHostGetDevicePointer_v2).Out(0, 0x9000).In(1, 0x9000);
    t.Call(CallId::MemFreeHost).In(0, 0x9000);
    t.Call(use).In(0, 0x9010).Fails(CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release pinned_memory"));
  }
}

// The registration is ended after its context, so the driver declines. That is no reason to keep the memory.
CUAUDIT_CASE(UseAfterRelease, ARegistrationOfMemoryThatIsThenLeft) {
  Causes(2);
  Also(harness::Rule::Leak, Kind::HostHeap);
  const auto program = [](bool fails) {
    Trace t;
    t.Retain().Stack(5);
    TakeGround(t, Ground::Heap, 0x10000);
    Cover(t, Ground::Heap, 0x10000);
    if (!fails) Uncover(t, Ground::Heap, 0x10000);
    if (!fails) GiveGround(t, Ground::Heap, 0x10000);
    Step alloc = t.Alloc(0x2000).Stack(6);
    fails ? alloc.Refused() : t.Free(0x2000).Stack(7);
    t.ReleasePrimary().Stack(8);
    if (fails) Uncover(t, Ground::Heap, 0x10000).Fails(CUDA_ERROR_INVALID_CONTEXT);
    return t;
  };
  const harness::Judgement judgement = Judge(program(false), program(true));
  ASSERT_EQ(judgement.findings.size(), 2U);
  for (const harness::TrialFinding& one : judgement.findings) {
    EXPECT_TRUE(one.kind == Kind::HostHeap ? one.rule == harness::Rule::Leak : one.rule == harness::Rule::UseAfterRelease);
  }
}

}  // namespace
}  // namespace cuaudit::testing::use_test
