// SPDX-License-Identifier: MIT
// What the gate writes, and that it changes nothing when no fault is planned.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/gate.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "faults/shim/call_record.h"
#include "faults/shim/captures.h"
#include "faults/shim/thread_identity.h"
#include "suites/support/gated_world.h"

namespace cuaudit::faults::gate_test {
namespace {

using driver::BaseId;
using driver::CallId;
using driver::Effect;

TEST(Gate, RecordHoldsArgumentsAndWhatTheCallWrote) {
  StartedWorld world;
  CUdeviceptr memory = 0;
  ASSERT_EQ(world.driver().MemAlloc(&memory, 4096), CUDA_SUCCESS);
  const Record record = world.Last(BaseId::MemAlloc);
  EXPECT_EQ(static_cast<CallId>(record.call), CallId::MemAlloc_v2);
  EXPECT_EQ(record.argument[0], memory);
  EXPECT_EQ(record.argument[1], 4096u);
  EXPECT_EQ(record.result, CUDA_SUCCESS);
  EXPECT_EQ(record.flags, kForwarded);
  EXPECT_EQ(record.occurrence, 1u);
  EXPECT_NE(record.context, 0u);
  EXPECT_NE(record.stack, 0u);
  EXPECT_NE(record.pid, 0u);
  EXPECT_LT(record.begin, record.end);
}

TEST(Gate, FailedCallRecordsNoOutput) {
  StartedWorld world;
  CUdeviceptr memory = 77;
  EXPECT_EQ(world.driver().MemAlloc(&memory, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(world.Last(BaseId::MemAlloc).argument[0], 0u);
  EXPECT_EQ(world.Last(BaseId::MemAlloc).result, CUDA_ERROR_INVALID_VALUE);
}

TEST(Gate, EntryPointsNobodyModelsAreMarked) {
  StartedWorld world;
  char luid[8] = {};
  unsigned mask = 0;
  EXPECT_EQ(world.driver().DeviceGetLuid(luid, &mask, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(world.Last(BaseId::DeviceGetLuid).flags & kUnmodelled);
  EXPECT_FALSE(world.Last(BaseId::Init).flags & kUnmodelled);
}

TEST(Gate, CountsCallsPerBaseEntryPoint) {
  StartedWorld world;
  CUstream stream = nullptr;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(world.Last(BaseId::StreamCreate).occurrence, 3u);
}

TEST(Gate, PinnedScopeKeepsThePrimaryContextAlive) {
  GatedWorld pinned({}, Scope::Pinned);
  GatedWorld process({}, Scope::Process);
  for (GatedWorld* world : {&pinned, &process}) {
    world->Start();
    ASSERT_EQ(world->driver().DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    unsigned flags = 0;
    int active = -1;
    ASSERT_EQ(world->below().DevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
    EXPECT_EQ(active, world == &pinned ? 1 : 0);
  }
}

TEST(Gate, MarksSetCycleAndPhaseOfLaterRecords) {
  StartedWorld world;
  world.gate().Mark(MarkKind::CycleBegin, 0);
  world.gate().Mark(MarkKind::CycleEnd, 0);
  world.gate().Mark(MarkKind::CycleBegin, 0);
  world.gate().Mark(MarkKind::Phase, static_cast<std::uint32_t>(Phase::Teardown));
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(world.Last(BaseId::StreamSynchronize).cycle, 2u);
  EXPECT_EQ(world.Last(BaseId::StreamSynchronize).phase, Phase::Teardown);
  world.gate().Mark(MarkKind::CycleEnd, 0);
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(world.Last(BaseId::StreamSynchronize).phase, Phase::Any);
}

TEST(Gate, LeavesErrnoAlone) {
  StartedWorld world;
  errno = 1234;
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(errno, 1234);
}

TEST(Gate, ThreadsWriteTheirOwnIds) {
  StartedWorld world;
  const std::uint32_t here = world.Last(BaseId::Init).tid;
  std::thread([&] { EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_ERROR_INVALID_CONTEXT); }).join();
  EXPECT_NE(world.Last(BaseId::StreamSynchronize).tid, here);
  EXPECT_EQ(world.Last(BaseId::StreamSynchronize).pid, world.Last(BaseId::Init).pid);
}

TEST(Gate, GraphNodeAddressesFollowTheCall) {
  StartedWorld world;
  CUdeviceptr memory = 0;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  ASSERT_EQ(world.driver().MemAlloc(&memory, 256), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().GraphCreate(&graph, 0), CUDA_SUCCESS);
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = memory;
  fill.elementSize = 1;
  fill.width = 256;
  fill.height = 1;
  CUcontext context = nullptr;
  ASSERT_EQ(world.driver().CtxGetCurrent(&context), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().GraphAddMemsetNode(&node, graph, nullptr, 0, &fill, context), CUDA_SUCCESS);
  const Record call = world.Last(BaseId::GraphAddMemsetNode);
  bool found = false;
  for (const Record& record : world.Records()) {
    found = found || (record.kind == RecordKind::Argument && record.context == call.begin && record.argument[0] == memory);
  }
  EXPECT_TRUE(found);
}

TEST(Gate, NeverReadsThroughArraysAndOptionalInputs) {
  StartedWorld world;
  const auto junk = [](auto* type) { return reinterpret_cast<decltype(type)>(0x10); };
  CUmodule module = nullptr;
  const char* image = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k() { ret; }\n";
  ASSERT_EQ(
      world.driver().ModuleLoadDataEx(&module, image, 0, junk(static_cast<CUjit_option*>(nullptr)), junk(static_cast<void**>(nullptr))),
      CUDA_SUCCESS);
  CUfunction function = nullptr;
  ASSERT_EQ(world.driver().ModuleGetFunction(&function, module, "k"), CUDA_SUCCESS);
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  EXPECT_EQ(world.driver().LaunchKernelEx(&config, function, junk(static_cast<void**>(nullptr)), nullptr), CUDA_SUCCESS);
}

TEST(Gate, AddressesOfAChangedNodeFollowTheCall) {
  StartedWorld world;
  CUdeviceptr memory[2] = {};
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUcontext context = nullptr;
  for (CUdeviceptr& address : memory) ASSERT_EQ(world.driver().MemAlloc(&address, 256), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().CtxGetCurrent(&context), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().GraphCreate(&graph, 0), CUDA_SUCCESS);
  CUDA_MEMSET_NODE_PARAMS fill = {memory[0], 0, 0, 1, 256, 1};
  ASSERT_EQ(world.driver().GraphAddMemsetNode(&node, graph, nullptr, 0, &fill, context), CUDA_SUCCESS);
  fill.dst = memory[1];
  ASSERT_EQ(world.driver().GraphMemsetNodeSetParams(node, &fill), CUDA_SUCCESS);
  const Record call = world.Last(BaseId::GraphMemsetNodeSetParams);
  bool found = false;
  for (const Record& record : world.Records()) {
    found = found || (record.kind == RecordKind::Argument && record.context == call.begin && record.argument[0] == memory[1]);
  }
  EXPECT_TRUE(found);
}

TEST(Gate, WithoutJournalAndPlanCallsGoStraightThrough) {
  sim::World* world = sim::CreateWorld(sim::WorldOptions());
  Gate gate;
  gate.Arm(sim::Driver(world), nullptr, nullptr, Plan(), Scope::Pinned);
  EXPECT_FALSE(gate.armed());
  EXPECT_EQ(Driver(&gate).Init(0), CUDA_SUCCESS);
  sim::DestroyWorld(world);
}

struct Seen {
  Gate* gate;
  std::uint64_t inside = 0;
};

TEST(Gate, NamesTheCallUnderWay) {
  StartedWorld world;
  Seen seen{&world.gate()};
  const auto ask = [](void* data) {
    Seen* const asked = static_cast<Seen*>(data);
    asked->inside = Gate::CallUnderWay(asked->gate);
  };
  CUstream stream = nullptr;
  ASSERT_EQ(world.driver().StreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().LaunchHostFunc(stream, ask, &seen), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().StreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(seen.inside, world.Last(BaseId::StreamSynchronize).begin);
  EXPECT_EQ(Gate::CallUnderWay(&world.gate()), 0u);
}

TEST(Gate, AnotherGatesCallIsNotUnderWayHere) {
  GatedWorld world;
  GatedWorld other;
  world.Start();
  Seen seen{&other.gate(), 7};
  const auto ask = [](void* data) {
    Seen* const asked = static_cast<Seen*>(data);
    asked->inside = Gate::CallUnderWay(asked->gate);
  };
  ASSERT_EQ(world.driver().LaunchHostFunc(nullptr, ask, &seen), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().CtxSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(seen.inside, 0u);
}

TEST(Gate, WritesDownProvedMisuse) {
  StartedWorld world;
  Gate::NoteMisuse(&world.gate(), {driver::MisuseRule::FreedInUse, driver::Kind::DeviceMemory, 0x1000, 64, 5, 3});
  const Record record = world.Records().back();
  EXPECT_EQ(record.kind, RecordKind::Misuse);
  EXPECT_EQ(record.call, static_cast<std::uint16_t>(driver::MisuseRule::FreedInUse));
  EXPECT_EQ(record.argument[0], static_cast<std::uint64_t>(driver::Kind::DeviceMemory));
  EXPECT_EQ(record.argument[1], 0x1000u);
  EXPECT_EQ(record.argument[2], 64u);
  EXPECT_EQ(record.argument[3], 5u);
  EXPECT_EQ(record.argument[4], 3u);
  EXPECT_NE(record.end, 0u);
}

TEST(CallRecord, WithoutAJournalThereIsNone) {
  EXPECT_EQ(NewRecord(nullptr, RecordKind::Mark, 0), nullptr);
  WriteMark(nullptr, MarkKind::CycleBegin, 0, nullptr);
  WriteBlock(nullptr, nullptr, MarkKind::BlockOut, 1, 2);
}

TEST(CallRecord, StandsInTheNameOfItsProcessAndCycle) {
  GatedWorld world;
  Journal* const journal = &world.journal();
  WriteMark(journal, MarkKind::CycleBegin, 0, nullptr);
  WriteMark(journal, MarkKind::Phase, static_cast<std::uint32_t>(Phase::Work), nullptr);
  const Record* const record = NewRecord(journal, RecordKind::Call, 7);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(record->cycle, 1U);
  EXPECT_EQ(record->phase, Phase::Work);
  WriteMark(journal, MarkKind::CycleEnd, 0, nullptr);
  EXPECT_EQ(NewRecord(journal, RecordKind::Call, 7)->phase, Phase::Any) << "a phase ends with its cycle";
}

TEST(CallRecord, ANestedCallIsMarkedAndHasNoNumber) {
  StartedWorld world;
  Passage passage{};
  passage.id = driver::CallId::DeviceGetCount;
  for (const bool nested : {true, false, true}) {
    passage.record = NewRecord(&world.journal(), RecordKind::Call, static_cast<std::uint16_t>(passage.id));
    passage.occurrence = nested ? 0 : CountCall(passage.id, &world.journal());
    FillArguments(passage, nested, world.below(), &world.journal());
    EXPECT_EQ(passage.record->occurrence, nested ? 0U : 1U);
    EXPECT_EQ(passage.record->flags, nested ? kNested : 0);
  }
}

TEST(CallRecord, GarbageGoesToOutputsOnly) {
  std::uint64_t stream = 1;
  Passage passage{};
  passage.id = driver::CallId::StreamCreate;
  passage.value[0] = reinterpret_cast<std::uintptr_t>(&stream);
  passage.value[1] = 5;
  WriteGarbage(passage);
  EXPECT_EQ(stream, 0xA5A5A5A5A5A5A5A5U);
  EXPECT_EQ(passage.value[1], 5U);
}

std::uint32_t RealTid() { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

// What `check` answers in a forked child.
template <typename Check>
bool InAChild(Check check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ThreadIdentity, IsOfEachThreadItsOwn) {
  EXPECT_EQ(Pid(), static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(Tid(), RealTid());
  std::thread([] {
    EXPECT_EQ(Pid(), static_cast<std::uint32_t>(getpid()));
    EXPECT_EQ(Tid(), RealTid());
  }).join();
}

TEST(ThreadIdentity, AForkedChildThatForgetsHasNamesOfItsOwn) {
  const std::uint32_t parent = Pid();
  EXPECT_TRUE(InAChild([parent] {
    thread_state.begin = 7;
    ForgetThread();
    return thread_state.begin == 0 && Pid() != parent && Pid() == static_cast<std::uint32_t>(getpid()) && Tid() == RealTid();
  }));
}

TEST(ThreadIdentity, AForkedChildThatGoesOnAsItsParentKeepsTheName) {
  const std::uint32_t parent = Pid();
  EXPECT_TRUE(InAChild([parent] {
    GoOnAsParent();
    ForgetThread();
    return Pid() == parent && Tid() == parent && NameOf(static_cast<std::uint32_t>(getpid())) == parent && NameOf(1) == 1;
  }));
}

TEST(Captures, AreOpenFromABeginThatSucceededToTheEnd) {
  Captures captures;
  captures.Count(Effect::BeginsCapture, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(captures.any());
  for (int i = 0; i < 2; ++i) captures.Count(Effect::BeginsCapture, CUDA_SUCCESS);
  captures.Count(Effect::EndsCapture, CUDA_SUCCESS);
  EXPECT_TRUE(captures.any()) << "one of two";
  captures.Count(Effect::EndsCapture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_FALSE(captures.any()) << "an invalid one is over when it is ended";
  captures.Count(Effect::EndsCapture, CUDA_SUCCESS);
  captures.Count(Effect::BeginsCapture, CUDA_SUCCESS);
  EXPECT_TRUE(captures.any()) << "one that was begun past the gate takes none away";
}

TEST(Captures, OnlyWorkOnTheStreamUnderCaptureIsCaptured) {
  StartedWorld world;
  const driver::DriverRef d = world.below();
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(d.MemAlloc(&memory, 64), CUDA_SUCCESS);
  const auto seen = [&](driver::CallId id) {
    Passage passage{};
    passage.id = id;
    passage.value[0] = memory;
    passage.value[3] = reinterpret_cast<std::uintptr_t>(stream);
    Captures::See(d, &passage);
    return passage.captured;
  };
  EXPECT_FALSE(seen(driver::CallId::MemsetD8Async));
  ASSERT_EQ(d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_TRUE(seen(driver::CallId::MemsetD8Async));
  EXPECT_FALSE(seen(driver::CallId::MemFree_v2)) << "it queues nothing";
}

}  // namespace
}  // namespace cuaudit::faults::gate_test
