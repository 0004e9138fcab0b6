// SPDX-License-Identifier: MIT
#include "suites/contract/stage.h"

namespace cuaudit::contract::order_questions {
namespace {

void One(void* argument) { *static_cast<long long*>(argument) = *static_cast<long long*>(argument) * 10 + 1; }
void Two(CUstream, CUresult, void* argument) { *static_cast<long long*>(argument) = *static_cast<long long*>(argument) * 10 + 2; }

struct Told {
  CUstream stream;
  CUresult status;
};
void Tell(CUstream stream, CUresult status, void* argument) { *static_cast<Told*>(argument) = {stream, status}; }

constexpr Question kQuestions[] = {
    {"order.legacy_behind_blocking", "SUCCESS NOT_READY SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       stage.KeepBusy(stage.s);
       a(a.d.EventRecord(stage.e, nullptr));
       a(a.d.EventQuery(stage.e));
       stage.LetGo();
       a(a.d.EventSynchronize(stage.e));
       stage.Passed();
     }},
    {"order.blocking_behind_legacy", "SUCCESS NOT_READY SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       stage.KeepBusy(nullptr);
       a(a.d.EventRecord(stage.e, stage.s));
       a(a.d.EventQuery(stage.e));
       stage.LetGo();
       a(a.d.EventSynchronize(stage.e));
       stage.Passed();
     }},
    {"order.non_blocking_beside_legacy", "SUCCESS SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(nullptr);
       a(a.d.EventRecord(stage.e, stage.s));
       a(a.d.EventSynchronize(stage.e));
       stage.Passed();
     }},
    {"order.legacy_beside_non_blocking", "SUCCESS SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(stage.s);
       a(a.d.EventRecord(stage.e, nullptr));
       a(a.d.EventSynchronize(stage.e));
       stage.Passed();
     }},
    {"order.blocking_beside_blocking", "SUCCESS SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       stage.KeepBusy(stage.s);
       a(a.d.EventRecord(stage.e, stage.t));
       a(a.d.EventSynchronize(stage.e));
       stage.Passed();
     }},
    {"order.legacy_work_between_two_blocking", "SUCCESS SUCCESS NOT_READY SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       stage.KeepBusy(stage.s);
       a(a.d.EventRecord(stage.e, nullptr));
       a(a.d.EventRecord(stage.f, stage.t));
       a(a.d.EventQuery(stage.f));
       stage.LetGo();
       a(a.d.EventSynchronize(stage.f));
       stage.Passed();
     }},
    {"order.per_thread_behind_legacy", "SUCCESS NOT_READY SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(CU_STREAM_LEGACY);
       a(a.d.EventRecord(stage.e, CU_STREAM_PER_THREAD));
       a(a.d.EventQuery(stage.e));
       stage.LetGo();
       a(a.d.EventSynchronize(stage.e));
       stage.Passed();
     }},
    {"order.legacy_behind_per_thread", "SUCCESS NOT_READY SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(CU_STREAM_PER_THREAD);
       a(a.d.EventRecord(stage.e, CU_STREAM_LEGACY));
       a(a.d.EventQuery(stage.e));
       stage.LetGo();
       a(a.d.EventSynchronize(stage.e));
       stage.Passed();
     }},
    {"order.per_thread_beside_non_blocking", "SUCCESS SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(CU_STREAM_PER_THREAD);
       a(a.d.EventRecord(stage.e, stage.s));
       a(a.d.EventSynchronize(stage.e));
       stage.Passed();
     }},
    {"order.legacy_query", "NOT_READY SUCCESS", Manner::Plain,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       stage.KeepBusy(stage.s);
       a(a.d.StreamQuery(nullptr));
       stage.LetGo();
       a.Prepare(a.d.CtxSynchronize(nullptr));
       a(a.d.StreamQuery(nullptr));
     }},
    {"order.legacy_query_beside_non_blocking", "SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(stage.s);
       a(a.d.StreamQuery(nullptr));
       stage.Passed();
     }},
    {"order.wait_across_streams", "SUCCESS SUCCESS SUCCESS NOT_READY SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(stage.s);
       a(a.d.EventRecord(stage.e, stage.s));
       a(a.d.StreamWaitEvent(stage.t, stage.e, 0));
       a(a.d.EventRecord(stage.f, stage.t));
       a(a.d.EventQuery(stage.f));
       stage.LetGo();
       a(a.d.EventSynchronize(stage.f));
       stage.Passed();
     }},
    {"order.wait_before_the_record", "SUCCESS SUCCESS SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(stage.s);
       a(a.d.StreamWaitEvent(stage.t, stage.e, 0));
       a(a.d.EventRecord(stage.e, stage.s));
       a(a.d.StreamSynchronize(stage.t));
       stage.Passed();
     }},
    {"order.wait_then_record_again", "SUCCESS SUCCESS SUCCESS SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       a(a.d.EventRecord(stage.e, stage.t));
       stage.KeepBusy(stage.s);
       a(a.d.StreamWaitEvent(stage.t, stage.e, 0));
       a(a.d.EventRecord(stage.e, stage.s));
       a(a.d.StreamSynchronize(stage.t));
       stage.Passed();
     }},
    {"order.query_sees_the_last_record", "NOT_READY SUCCESS SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.EventRecord(stage.f, stage.s));
       a.Prepare(a.d.EventRecord(stage.e, stage.s));
       float ms = 0;
       a(a.d.EventElapsedTime(&ms, stage.e, stage.f));
       a.Prepare(a.d.EventRecord(stage.e, stage.t));
       a(a.d.EventSynchronize(stage.e));
       a(a.d.EventQuery(stage.e));
       stage.Passed();
     }},
    {"order.callbacks_and_host_functions", "SUCCESS SUCCESS SUCCESS SUCCESS 121", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       static long long order = 0;
       order = 0;
       a(a.d.LaunchHostFunc(stage.s, One, &order));
       a(a.d.StreamAddCallback(stage.s, Two, &order, 0));
       a(a.d.LaunchHostFunc(stage.s, One, &order));
       a(a.d.StreamSynchronize(stage.s));
       a.Value(order);
     }},
    {"order.what_a_callback_is_told", "1 SUCCESS 1 SUCCESS", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       static Told told[2];
       a.Prepare(a.d.StreamAddCallback(stage.s, Tell, &told[0], 0));
       a.Prepare(a.d.StreamAddCallback(nullptr, Tell, &told[1], 0));
       a.Prepare(a.d.CtxSynchronize(nullptr));
       a.Value(told[0].stream == stage.s);
       a(told[0].status);
       a.Value(told[1].stream == nullptr);
       a(told[1].status);
     }},
    {"order.priorities", "SUCCESS 0 -5 SUCCESS 0 SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       int least = 9;
       int greatest = 9;
       int priority = 9;
       a(a.d.CtxGetStreamPriorityRange(&least, &greatest));
       a.Value(least);
       a.Value(greatest);
       a(a.d.StreamGetPriority(nullptr, &priority));
       a.Value(priority);
       a(a.d.StreamGetPriority(CU_STREAM_PER_THREAD, &priority));
       a.Value(priority);
     }},
    {"order.priority_range_into_nothing", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       Stage stage(a);
       int one = 0;
       a(a.d.CtxGetStreamPriorityRange(&one, nullptr));
       a(a.d.CtxGetStreamPriorityRange(nullptr, nullptr));
     }},
    {"order.default_stream_flags", "SUCCESS 0 SUCCESS 0 SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       for (CUstream stream : {static_cast<CUstream>(nullptr), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
         unsigned flags = 9;
         a(a.d.StreamGetFlags(stream, &flags));
         a.Value(flags);
       }
     }},
    {"order.default_stream_ids", "SUCCESS SUCCESS SUCCESS 1 0", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       unsigned long long id[3] = {};
       a(a.d.StreamGetId(nullptr, &id[0]));
       a(a.d.StreamGetId(CU_STREAM_LEGACY, &id[1]));
       a(a.d.StreamGetId(CU_STREAM_PER_THREAD, &id[2]));
       a.Value(id[0] == id[1]);
       a.Value(id[0] == id[2]);
     }},
    {"order.default_stream_contexts", "SUCCESS 1 SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       for (CUstream stream : {static_cast<CUstream>(nullptr), CU_STREAM_PER_THREAD}) {
         CUcontext context = nullptr;
         CUgreenCtx green = nullptr;
         a(a.d.StreamGetCtx(stream, &context, &green));
         a.Value(context == stage.ready.context);
       }
     }},
    {"order.null_answers", "INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       Stage stage(a);
       a(a.d.StreamGetFlags(stage.s, nullptr));
       a(a.d.StreamGetPriority(stage.s, nullptr));
       a(a.d.StreamGetId(stage.s, nullptr));
     }},
    {"order.wait_flags", "SUCCESS ILLEGAL_STATE INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       a.Prepare(a.d.EventRecord(stage.e, stage.s));
       a(a.d.StreamWaitEvent(stage.t, stage.e, CU_EVENT_WAIT_DEFAULT));
       a(a.d.StreamWaitEvent(stage.t, stage.e, CU_EVENT_WAIT_EXTERNAL));
       a(a.d.StreamWaitEvent(stage.t, stage.e, 2));
     }},
    {"order.record_flags", "SUCCESS ILLEGAL_STATE INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       a(a.d.EventRecordWithFlags(stage.e, stage.s, CU_EVENT_RECORD_DEFAULT));
       a(a.d.EventRecordWithFlags(stage.e, stage.s, CU_EVENT_RECORD_EXTERNAL));
       a(a.d.EventRecordWithFlags(stage.e, stage.s, 2));
     }},
    {"order.event_of_another_context", "INVALID_HANDLE SUCCESS SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUcontext other = nullptr;
       CUstream there = nullptr;
       a.Prepare(a.d.EventRecord(stage.e, stage.s));
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a.Prepare(a.d.StreamCreate(&there, 0));
       a(a.d.EventRecord(stage.e, there));
       a(a.d.StreamWaitEvent(there, stage.e, 0));
       a(a.d.StreamSynchronize(there));
       a(a.d.EventQuery(stage.e));
       (void)a.d.CtxDestroy(other);
     }},
    {"order.elapsed_across_contexts", "INVALID_HANDLE", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUcontext other = nullptr;
       CUevent there = nullptr;
       float ms = 0;
       a.Prepare(a.d.EventRecord(stage.e, stage.s));
       a.Prepare(a.d.CtxSynchronize(nullptr));
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a.Prepare(a.d.EventCreate(&there, 0));
       a.Prepare(a.d.EventRecord(there, nullptr));
       a.Prepare(a.d.CtxSynchronize(nullptr));
       a(a.d.EventElapsedTime(&ms, stage.e, there));
       (void)a.d.CtxDestroy(other);
     }},
    {"order.graph_records_when_launched", "SUCCESS NOT_READY SUCCESS NOT_READY SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUgraph graph = nullptr;
       CUgraphNode node = nullptr;
       CUgraphExec exec = nullptr;
       a.Prepare(a.d.GraphCreate(&graph, 0));
       a.Prepare(a.d.GraphAddEventRecordNode(&node, graph, nullptr, 0, stage.e));
       a.Prepare(a.d.GraphInstantiateWithFlags(&exec, graph, 0));
       stage.KeepBusy(stage.s);
       a(a.d.GraphLaunch(exec, stage.s));
       a(a.d.EventQuery(stage.e));
       a(a.d.StreamWaitEvent(stage.t, stage.e, 0));
       a.Prepare(a.d.EventRecord(stage.f, stage.t));
       a(a.d.EventQuery(stage.f));
       stage.LetGo();
       a(a.d.EventSynchronize(stage.f));
       stage.Passed();
     }},
    {"order.graph_waits_when_launched", "SUCCESS NOT_READY SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUgraph graph = nullptr;
       CUgraphNode node = nullptr;
       CUgraphExec exec = nullptr;
       a.Prepare(a.d.GraphCreate(&graph, 0));
       a.Prepare(a.d.GraphAddEventWaitNode(&node, graph, nullptr, 0, stage.e));
       a.Prepare(a.d.GraphInstantiateWithFlags(&exec, graph, 0));
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.EventRecord(stage.e, stage.s));
       a(a.d.GraphLaunch(exec, stage.t));
       a.Prepare(a.d.EventRecord(stage.f, stage.t));
       a(a.d.EventQuery(stage.f));
       stage.LetGo();
       a(a.d.EventSynchronize(stage.f));
       stage.Passed();
     }},
    {"order.graph_with_a_destroyed_event", "SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       Stage stage(a);
       CUgraph graph = nullptr;
       CUgraphNode node = nullptr;
       CUgraphExec exec = nullptr;
       a.Prepare(a.d.GraphCreate(&graph, 0));
       a.Prepare(a.d.GraphAddEventRecordNode(&node, graph, nullptr, 0, stage.e));
       a.Prepare(a.d.GraphInstantiateWithFlags(&exec, graph, 0));
       a(a.d.EventDestroy(stage.e));
       stage.e = nullptr;
       a(a.d.GraphLaunch(exec, stage.s));
       a(a.d.StreamSynchronize(stage.s));
     }},
    {"order.kernel_of_another_context", "INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       Stage stage(a);
       CUcontext other = nullptr;
       CUmodule module = nullptr;
       CUfunction function = nullptr;
       CUstream there = nullptr;
       a.Prepare(a.d.ModuleLoadData(&module, kPtx));
       a.Prepare(a.d.ModuleGetFunction(&function, module, "plain"));
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a.Prepare(a.d.StreamCreate(&there, 0));
       a(a.d.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, there, nullptr, nullptr));
     }},
    {"order.pinned_free_beside_a_busy_context", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUcontext other = nullptr;
       void* h = nullptr;
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a.Prepare(a.d.MemAllocHost(&h, 4096));
       a(a.d.MemFreeHost(h));
       stage.Passed();
       stage.LetGo();
       (void)a.d.CtxDestroy(other);
     }},
    {"order.memory_of_another_context", "SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUcontext other = nullptr;
       CUstream there = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAlloc(&p, 4096));
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a.Prepare(a.d.StreamCreate(&there, 0));
       a(a.d.MemsetD8Async(p, 1, 4096, there));
       a(a.d.StreamSynchronize(there));
       (void)a.d.CtxDestroy(other);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::order_questions

namespace cuaudit::contract {
std::span<const Question> OrderQuestions() { return order_questions::kQuestions; }
}  // namespace cuaudit::contract
