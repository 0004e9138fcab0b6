// SPDX-License-Identifier: MIT
#include "suites/contract/stream/stage.h"

namespace cuaudit::contract::order_questions {
namespace {

void One(void* argument) { *static_cast<long long*>(argument) = *static_cast<long long*>(argument) * 10 + 1; }
void Two(CUstream, CUresult, void* argument) { *static_cast<long long*>(argument) = *static_cast<long long*>(argument) * 10 + 2; }

struct Told {
  CUstream stream;
  CUresult status;
};
void Tell(CUstream stream, CUresult status, void* argument) { *static_cast<Told*>(argument) = {stream, status}; }

// An event on `other`, recorded while `busy` is busy, is not ready before `busy` is done.
constexpr const char* kBehind = "SUCCESS NOT_READY SUCCESS 1";
void Behind(Stage& a, CUstream busy, CUstream other) {
  a.KeepBusy(busy);
  a(a.d.EventRecord(a.e, other));
  a(a.d.EventQuery(a.e));
  a.LetGoAndWait(a.e);
}

// An event on `other`, recorded while `busy` is busy, can be waited for.
constexpr const char* kBeside = "SUCCESS SUCCESS 0";
void Beside(Stage& a, CUstream busy, CUstream other) {
  a.KeepBusy(busy);
  a(a.d.EventRecord(a.e, other));
  a(a.d.EventSynchronize(a.e));
  a.Passed();
}

}  // namespace

void List(Questions& ask) {
  ask.Plain("order.legacy_behind_blocking", kBehind, [](BlockingStage& a) { Behind(a, a.s, nullptr); });
  ask.Plain("order.blocking_behind_legacy", kBehind, [](BlockingStage& a) { Behind(a, nullptr, a.s); });
  ask.Plain("order.non_blocking_beside_legacy", kBeside, [](Stage& a) { Beside(a, nullptr, a.s); });
  ask.Plain("order.legacy_beside_non_blocking", kBeside, [](Stage& a) { Beside(a, a.s, nullptr); });
  ask.Plain("order.blocking_beside_blocking", kBeside, [](BlockingStage& a) { Beside(a, a.s, a.t); });
  ask.Plain("order.legacy_work_between_two_blocking", "SUCCESS SUCCESS NOT_READY SUCCESS 1", [](BlockingStage& a) {
    a.KeepBusy(a.s);
    a(a.d.EventRecord(a.e, nullptr));
    a(a.d.EventRecord(a.f, a.t));
    a(a.d.EventQuery(a.f));
    a.LetGoAndWait(a.f);
  });
  ask.Plain("order.per_thread_behind_legacy", kBehind, [](Stage& a) { Behind(a, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD); });
  ask.Plain("order.legacy_behind_per_thread", kBehind, [](Stage& a) { Behind(a, CU_STREAM_PER_THREAD, CU_STREAM_LEGACY); });
  ask.Plain("order.per_thread_beside_non_blocking", kBeside, [](Stage& a) { Beside(a, CU_STREAM_PER_THREAD, a.s); });
  ask.Plain("order.legacy_query", "NOT_READY SUCCESS", [](BlockingStage& a) {
    a.KeepBusy(a.s);
    a(a.d.StreamQuery(nullptr));
    a.LetGo();
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a(a.d.StreamQuery(nullptr));
  });
  ask.Plain("order.legacy_query_beside_non_blocking", "SUCCESS 0", [](Stage& a) {
    a.KeepBusy(a.s);
    a(a.d.StreamQuery(nullptr));
    a.Passed();
  });
  ask.Plain("order.wait_across_streams", "SUCCESS x3 NOT_READY SUCCESS 1", [](Stage& a) {
    a.KeepBusy(a.s);
    a(a.d.EventRecord(a.e, a.s));
    a(a.d.StreamWaitEvent(a.t, a.e, 0));
    a(a.d.EventRecord(a.f, a.t));
    a(a.d.EventQuery(a.f));
    a.LetGoAndWait(a.f);
  });
  ask.Plain("order.wait_before_the_record", "SUCCESS x3 0", [](Stage& a) {
    a.KeepBusy(a.s);
    a(a.d.StreamWaitEvent(a.t, a.e, 0));
    a(a.d.EventRecord(a.e, a.s));
    a(a.d.StreamSynchronize(a.t));
    a.Passed();
  });
  ask.Plain("order.wait_then_record_again", "SUCCESS x4 0", [](Stage& a) {
    a(a.d.EventRecord(a.e, a.t));
    a.KeepBusy(a.s);
    a(a.d.StreamWaitEvent(a.t, a.e, 0));
    a(a.d.EventRecord(a.e, a.s));
    a(a.d.StreamSynchronize(a.t));
    a.Passed();
  });
  ask.Plain("order.query_sees_the_last_record", "NOT_READY SUCCESS SUCCESS 0", [](Stage& a) {
    a.KeepBusy(a.s);
    a.Prepare(a.d.EventRecord(a.f, a.s));
    a.Prepare(a.d.EventRecord(a.e, a.s));
    a(a.d.EventElapsedTime(kIgnored, a.e, a.f));
    a.Prepare(a.d.EventRecord(a.e, a.t));
    a(a.d.EventSynchronize(a.e));
    a(a.d.EventQuery(a.e));
    a.Passed();
  });
  ask.Plain("order.callbacks_and_host_functions", "SUCCESS x4 121", [](Stage& a) {
    static long long order = 0;
    order = 0;
    a(a.d.LaunchHostFunc(a.s, One, &order));
    a(a.d.StreamAddCallback(a.s, Two, &order, 0));
    a(a.d.LaunchHostFunc(a.s, One, &order));
    a(a.d.StreamSynchronize(a.s));
    a.Value(order);
  });
  ask.Plain("order.what_a_callback_is_told", "1 SUCCESS 1 SUCCESS", [](Stage& a) {
    static Told told[2];
    a.Prepare(a.d.StreamAddCallback(a.s, Tell, &told[0], 0));
    a.Prepare(a.d.StreamAddCallback(nullptr, Tell, &told[1], 0));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a.Value(told[0].stream == a.s);
    a(told[0].status);
    a.Value(told[1].stream == nullptr);
    a(told[1].status);
  });
  ask.Plain("order.priorities", "SUCCESS 0 -5 SUCCESS 0 SUCCESS 0", [](Stage& a) {
    int least = 9, greatest = 9, priority = 9;
    a(a.d.CtxGetStreamPriorityRange(&least, &greatest), least, greatest);
    a(a.d.StreamGetPriority(nullptr, &priority), priority);
    a(a.d.StreamGetPriority(CU_STREAM_PER_THREAD, &priority), priority);
  });
  ask.Risky("order.priority_range_into_nothing", "SUCCESS SUCCESS", [](Stage& a) {
    a(a.d.CtxGetStreamPriorityRange(kIgnored, nullptr));
    a(a.d.CtxGetStreamPriorityRange(nullptr, nullptr));
  });
  ask.Plain("order.default_stream_flags", "SUCCESS 0 SUCCESS 0 SUCCESS 0", [](Stage& a) {
    for (CUstream stream : {static_cast<CUstream>(nullptr), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
      unsigned flags = 9;
      a(a.d.StreamGetFlags(stream, &flags), flags);
    }
  });
  ask.Plain("order.default_stream_ids", "SUCCESS x3 1 0", [](Stage& a) {
    unsigned long long id[3] = {};
    a(a.d.StreamGetId(nullptr, &id[0]));
    a(a.d.StreamGetId(CU_STREAM_LEGACY, &id[1]));
    a(a.d.StreamGetId(CU_STREAM_PER_THREAD, &id[2]));
    a.Value(id[0] == id[1]);
    a.Value(id[0] == id[2]);
  });
  ask.Plain("order.default_stream_contexts", "SUCCESS 1 SUCCESS 1", [](Stage& a) {
    for (CUstream stream : {static_cast<CUstream>(nullptr), CU_STREAM_PER_THREAD}) {
      CUcontext context = nullptr;
      a(a.d.StreamGetCtx(stream, &context, kIgnored));
      a.Value(context == a.context);
    }
  });
  ask.Risky("order.null_answers", "INVALID_VALUE x3", [](Stage& a) {
    a(a.d.StreamGetFlags(a.s, nullptr));
    a(a.d.StreamGetPriority(a.s, nullptr));
    a(a.d.StreamGetId(a.s, nullptr));
  });
  ask.Plain("order.wait_flags", "SUCCESS ILLEGAL_STATE INVALID_VALUE", [](Stage& a) {
    a.Prepare(a.d.EventRecord(a.e, a.s));
    a(a.d.StreamWaitEvent(a.t, a.e, CU_EVENT_WAIT_DEFAULT));
    a(a.d.StreamWaitEvent(a.t, a.e, CU_EVENT_WAIT_EXTERNAL));
    a(a.d.StreamWaitEvent(a.t, a.e, 2));
  });
  ask.Plain("order.record_flags", "SUCCESS ILLEGAL_STATE INVALID_VALUE", [](Stage& a) {
    a(a.d.EventRecordWithFlags(a.e, a.s, CU_EVENT_RECORD_DEFAULT));
    a(a.d.EventRecordWithFlags(a.e, a.s, CU_EVENT_RECORD_EXTERNAL));
    a(a.d.EventRecordWithFlags(a.e, a.s, 2));
  });
  ask.Fresh("order.event_of_another_context", "INVALID_HANDLE SUCCESS x3", [](Stage& a) {
    a.Prepare(a.d.EventRecord(a.e, a.s));
    a.CtxCreate();
    const CUstream there = a.StreamCreate(0);
    a(a.d.EventRecord(a.e, there));
    a(a.d.StreamWaitEvent(there, a.e, 0));
    a(a.d.StreamSynchronize(there));
    a(a.d.EventQuery(a.e));
  });
  ask.Fresh("order.elapsed_across_contexts", "INVALID_HANDLE", [](Stage& a) {
    a.Prepare(a.d.EventRecord(a.e, a.s));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a.CtxCreate();
    const CUevent there = a.EventCreate();
    a.Prepare(a.d.EventRecord(there, nullptr));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a(a.d.EventElapsedTime(kIgnored, a.e, there));
  });
  ask.Fresh("order.graph_records_when_launched", "SUCCESS NOT_READY SUCCESS NOT_READY SUCCESS 1", [](Stage& a) {
    const CUgraph graph = a.GraphCreate();
    a.Prepare(a.d.GraphAddEventRecordNode(kIgnored, graph, nullptr, 0, a.e));
    const CUgraphExec exec = a.GraphInstantiate(graph);
    a.KeepBusy(a.s);
    a(a.d.GraphLaunch(exec, a.s));
    a(a.d.EventQuery(a.e));
    a(a.d.StreamWaitEvent(a.t, a.e, 0));
    a.Prepare(a.d.EventRecord(a.f, a.t));
    a(a.d.EventQuery(a.f));
    a.LetGoAndWait(a.f);
  });
  ask.Fresh("order.graph_waits_when_launched", "SUCCESS NOT_READY SUCCESS 1", [](Stage& a) {
    const CUgraph graph = a.GraphCreate();
    a.Prepare(a.d.GraphAddEventWaitNode(kIgnored, graph, nullptr, 0, a.e));
    const CUgraphExec exec = a.GraphInstantiate(graph);
    a.KeepBusy(a.s);
    a.Prepare(a.d.EventRecord(a.e, a.s));
    a(a.d.GraphLaunch(exec, a.t));
    a.Prepare(a.d.EventRecord(a.f, a.t));
    a(a.d.EventQuery(a.f));
    a.LetGoAndWait(a.f);
  });
  ask.Risky("order.graph_with_a_destroyed_event", "SUCCESS x3", [](Stage& a) {
    const CUgraph graph = a.GraphCreate();
    a.Prepare(a.d.GraphAddEventRecordNode(kIgnored, graph, nullptr, 0, a.e));
    const CUgraphExec exec = a.GraphInstantiate(graph);
    a(a.d.EventDestroy(a.e));
    a.e = nullptr;
    a(a.d.GraphLaunch(exec, a.s));
    a(a.d.StreamSynchronize(a.s));
  });
  ask.Risky("order.kernel_of_another_context", "INVALID_HANDLE", [](Stage& a) {
    const CUfunction function = a.ModuleGetFunction("plain");
    a.CtxCreate();
    const CUstream there = a.StreamCreate(0);
    a(a.d.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, there, nullptr, nullptr));
  });
  ask.Fresh("order.pinned_free_beside_a_busy_context", "SUCCESS 0", [](Stage& a) {
    a.KeepBusy(a.s);
    a.CtxCreate();
    void* const h = a.MemAllocHost(4096);
    a(a.d.MemFreeHost(h));
    a.Passed();
    a.LetGo();
  });
  ask.Fresh("order.memory_of_another_context", "SUCCESS SUCCESS", [](Stage& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    a.CtxCreate();
    const CUstream there = a.StreamCreate(0);
    a(a.d.MemsetD8Async(p, 1, 4096, there));
    a(a.d.StreamSynchronize(there));
  });
}

}  // namespace cuaudit::contract::order_questions
