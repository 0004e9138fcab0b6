// SPDX-License-Identifier: MIT
// Lifetimes that overlap: of host memory and its registration, of graphs and what was made of them, of cycles and what came before.
#include "suites/support/cases/case.h"

namespace cuaudit::testing::lifetimes_test {
namespace {

using driver::CallId;
using faults::HostCall;
using ::testing::IsEmpty;

void ExpectSilent(const Trace& t) {
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_THAT(Left(ledger), IsEmpty());
}

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

// One thread's free has not returned yet when another is given the same address.
CUAUDIT_CASE(DoubleRelease, AHostBlockIsRecycledAcrossThreads) {
  Trace t;
  t.Host(HostCall::Allocate, 0x5000, 64).Thread(1).At(1, 2);
  t.Host(HostCall::Deallocate, 0x5000).Thread(1).At(10, 13);
  t.Host(HostCall::Allocate, 0x5000, 64).Thread(2).At(11, 12);
  t.Host(HostCall::Deallocate, 0x5000).Thread(2).At(20, 21);
  ExpectSilent(t);
}

CUAUDIT_CASE(Leak, AThreadThatDetachesItself) {
  Trace t;
  t.Host(HostCall::ThreadCreate, 0x7001);
  t.Host(HostCall::ThreadDetachSelf, 0x7001);
  ExpectSilent(t);
}

}  // namespace
}  // namespace cuaudit::testing::lifetimes_test
