// SPDX-License-Identifier: MIT
// Attributes of streams, and operations of streams on values in memory: waits, writes, batches.
#include "suites/contract/question.h"

namespace cuaudit::contract::stream_value_questions {
namespace {

// A stream, device words, and a host word with its device address. Everything 0.
struct Words {
  explicit Words(Asker& a) : asker(a) {
    a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    a.Prepare(a.d.MemAlloc(&p, 4096));
    a.Prepare(a.d.MemsetD8(p, 0, 4096));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    void* memory = nullptr;
    a.Prepare(a.d.MemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    host = static_cast<volatile unsigned*>(memory);
    for (int i = 0; i < 16; ++i) host[i] = 0;
    a.Prepare(a.d.MemHostGetDevicePointer(&h, memory, 0));
  }
  ~Words() {
    (void)asker.d.StreamDestroy(s);
    (void)asker.d.MemFree(p);
    (void)asker.d.MemFreeHost(const_cast<unsigned*>(host));
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  unsigned Read(std::size_t offset = 0) {
    unsigned value = 0;
    asker.Prepare(asker.d.MemcpyDtoH(&value, p + offset, sizeof(value)));
    return value;
  }
  Asker& asker;
  CUstream s = nullptr;
  CUdeviceptr p = 0;
  CUdeviceptr h = 0;
  volatile unsigned* host = nullptr;
};

CUstreamBatchMemOpParams Write(CUdeviceptr p, unsigned value) {
  CUstreamBatchMemOpParams op = {};
  op.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  op.writeValue.address = p;
  op.writeValue.value = value;
  return op;
}

CUstreamBatchMemOpParams Wait(CUdeviceptr p, unsigned value, unsigned flags) {
  CUstreamBatchMemOpParams op = {};
  op.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  op.waitValue.address = p;
  op.waitValue.value = value;
  op.waitValue.flags = flags;
  return op;
}

constexpr Question kQuestions[] = {
    {"stream_value.write", "SUCCESS SUCCESS SUCCESS 7 9 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       a(a.d.StreamWriteValue32(w.s, w.p, 7, CU_STREAM_WRITE_VALUE_DEFAULT));
       a(a.d.StreamWriteValue64(w.s, w.p + 8, 0x100000009, CU_STREAM_WRITE_VALUE_DEFAULT));
       a(a.d.StreamSynchronize(w.s));
       a.Value(w.Read());
       a.Value(w.Read(8));
       a.Value(w.Read(12));
     }},
    {"stream_value.satisfied_waits", "SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       a.Prepare(a.d.StreamWriteValue32(w.s, w.p, 7, 0));
       a(a.d.StreamWaitValue32(w.s, w.p, 7, CU_STREAM_WAIT_VALUE_EQ));
       a(a.d.StreamWaitValue32(w.s, w.p, 6, CU_STREAM_WAIT_VALUE_GEQ));
       a(a.d.StreamWaitValue32(w.s, w.p, 4, CU_STREAM_WAIT_VALUE_AND));
       a(a.d.StreamWaitValue32(w.s, w.p, 7, CU_STREAM_WAIT_VALUE_NOR));
       a(a.d.StreamWaitValue64(w.s, w.p, 5, CU_STREAM_WAIT_VALUE_GEQ));
       a(a.d.StreamSynchronize(w.s));
     }},
    {"stream_value.cyclic", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       a.Prepare(a.d.StreamWriteValue32(w.s, w.p, 3, 0));
       a(a.d.StreamWaitValue32(w.s, w.p, 0xfffffff0U, CU_STREAM_WAIT_VALUE_GEQ));
       a(a.d.StreamSynchronize(w.s));
     }},
    {"stream_value.released_by_host", "SUCCESS NOT_READY SUCCESS 5", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       a(a.d.StreamWaitValue32(w.s, w.h, 1, CU_STREAM_WAIT_VALUE_EQ));
       a.Prepare(a.d.StreamWriteValue32(w.s, w.p, 5, 0));
       a(a.d.StreamQuery(w.s));
       w.host[0] = 1;
       a(a.d.StreamSynchronize(w.s));
       a.Value(w.Read());
     }},
    {"stream_value.released_by_stream", "SUCCESS NOT_READY NOT_READY SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       CUstream t = nullptr;
       a.Prepare(a.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
       a(a.d.StreamWaitValue32(w.s, w.p, 1, CU_STREAM_WAIT_VALUE_EQ));
       a(a.d.StreamQuery(w.s));
       a(a.d.StreamQuery(w.s));
       a(a.d.StreamWriteValue32(t, w.p, 1, 0));
       a(a.d.StreamSynchronize(t));
       a(a.d.StreamSynchronize(w.s));
       (void)a.d.StreamDestroy(t);
     }},
    {"stream_value.event_behind_wait", "NOT_READY SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
       a.Prepare(a.d.StreamWaitValue32(w.s, w.h, 1, CU_STREAM_WAIT_VALUE_EQ));
       a.Prepare(a.d.EventRecord(e, w.s));
       a(a.d.EventQuery(e));
       w.host[0] = 1;
       a(a.d.EventSynchronize(e));
       a(a.d.EventDestroy(e));
     }},
    {"stream_value.addresses",
     "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE SUCCESS INVALID_VALUE INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       unsigned local = 0;
       CUdeviceptr managed = 0;
       a.Prepare(a.d.MemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
       a(a.d.StreamWriteValue32(w.s, 0, 1, 0));
       a(a.d.StreamWriteValue32(w.s, w.p + 2, 1, 0));
       a(a.d.StreamWriteValue64(w.s, w.p + 4, 1, 0));
       a(a.d.StreamWriteValue32(w.s, reinterpret_cast<CUdeviceptr>(&local), 1, 0));
       a(a.d.StreamWriteValue32(w.s, managed, 1, 0));
       a(a.d.StreamWriteValue32(w.s, w.p + 4092, 1, 0));
       a(a.d.StreamWaitValue32(w.s, 0, 1, 0));
       a(a.d.StreamWaitValue32(w.s, w.p + 2, 0, 0));
       a(a.d.StreamSynchronize(w.s));
     }},
    {"stream_value.flags", "INVALID_VALUE INVALID_VALUE INVALID_VALUE NOT_SUPPORTED INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       a(a.d.StreamWriteValue32(w.s, w.p, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
       a(a.d.StreamWriteValue32(w.s, w.p, 1, 2));
       a(a.d.StreamWaitValue32(w.s, w.p, 1, 4));
       a(a.d.StreamWaitValue32(w.s, w.p, 1, CU_STREAM_WAIT_VALUE_FLUSH));
       a(a.d.StreamWaitValue32(w.s, w.p, 1, 1U << 29));
       a(a.d.StreamSynchronize(w.s));
     }},
    {"stream_value.default_streams", "SUCCESS SUCCESS SUCCESS SUCCESS 3", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       a(a.d.StreamWriteValue32(nullptr, w.p, 1, 0));
       a(a.d.StreamWriteValue32(CU_STREAM_LEGACY, w.p, 2, 0));
       a(a.d.CtxSynchronize(nullptr));
       a(a.d.StreamWriteValue32(CU_STREAM_PER_THREAD, w.p, 3, 0));
       a.Prepare(a.d.StreamSynchronize(CU_STREAM_PER_THREAD));
       a.Value(w.Read());
     }},
    {"stream_value.batch", "SUCCESS SUCCESS 4 5", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       CUstreamBatchMemOpParams ops[4] = {Write(w.p, 4), Wait(w.p, 4, CU_STREAM_WAIT_VALUE_EQ), {}, Write(w.p + 64, 5)};
       ops[2].operation = CU_STREAM_MEM_OP_BARRIER;
       ops[2].memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_SYS;
       a(a.d.StreamBatchMemOp(w.s, 4, ops, 0));
       a(a.d.StreamSynchronize(w.s));
       a.Value(w.Read());
       a.Value(w.Read(64));
     }},
    {"stream_value.batch_words", "SUCCESS INVALID_VALUE INVALID_VALUE INVALID_VALUE NOT_SUPPORTED INVALID_VALUE SUCCESS 0", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       CUstreamBatchMemOpParams op = Write(w.p, 4);
       a(a.d.StreamBatchMemOp(w.s, 0, &op, 0));
       a(a.d.StreamBatchMemOp(w.s, 1, &op, 1));
       op.operation = Beyond<CUstreamBatchMemOpType>(77);
       a(a.d.StreamBatchMemOp(w.s, 1, &op, 0));
       op = {};
       op.operation = CU_STREAM_MEM_OP_BARRIER;
       op.memoryBarrier.flags = 7;
       a(a.d.StreamBatchMemOp(w.s, 1, &op, 0));
       op = {};
       op.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
       a(a.d.StreamBatchMemOp(w.s, 1, &op, 0));
       CUstreamBatchMemOpParams pair[2] = {Write(w.p, 8), Write(0, 9)};
       a(a.d.StreamBatchMemOp(w.s, 2, pair, 0));
       a(a.d.StreamSynchronize(w.s));
       a.Value(w.Read());
     }},
    {"stream_value.batch_sizes", "SUCCESS SUCCESS INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       static CUstreamBatchMemOpParams ops[300];
       for (CUstreamBatchMemOpParams& op : ops) op = Write(w.p, 4);
       a(a.d.StreamBatchMemOp(w.s, 128, ops, 0));
       a(a.d.StreamBatchMemOp(w.s, 255, ops, 0));
       a(a.d.StreamBatchMemOp(w.s, 256, ops, 0));
       a(a.d.StreamSynchronize(w.s));
     }},
    {"stream_value.captured", "SUCCESS SUCCESS 1 12", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       CUgraph g = nullptr;
       std::size_t nodes = 0;
       CUgraphNode node = nullptr;
       CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
       a.Prepare(a.d.StreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.StreamWriteValue32(w.s, w.p, 7, 0));
       a(a.d.StreamEndCapture(w.s, &g));
       a.Prepare(a.d.GraphGetNodes(g, nullptr, &nodes));
       a.Value(static_cast<long long>(nodes));
       nodes = 1;
       a.Prepare(a.d.GraphGetNodes(g, &node, &nodes));
       a.Prepare(a.d.GraphNodeGetType(node, &type));
       a.Value(type);
       (void)a.d.GraphDestroy(g);
     }},
    {"stream_value.free_under_wait", "SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       CUstream t = nullptr;
       CUdeviceptr q = 0;
       a.Prepare(a.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAllocAsync(&q, 4096, t));
       a.Prepare(a.d.StreamSynchronize(t));
       a.Prepare(a.d.StreamWaitValue32(w.s, w.h, 1, CU_STREAM_WAIT_VALUE_EQ));
       a(a.d.MemFreeAsync(q, t));
       const CUresult state = a.d.StreamQuery(w.s);
       a.Value(state == CUDA_ERROR_NOT_READY);
       w.host[0] = 1;
       a.Prepare(a.d.StreamSynchronize(w.s));
       (void)a.d.StreamDestroy(t);
     }},
    {"stream_value.destroy_waiting_stream", "SUCCESS SUCCESS 6", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Words w(a);
       CUstream t = nullptr;
       a.Prepare(a.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamWaitValue32(t, w.h, 1, CU_STREAM_WAIT_VALUE_EQ));
       a.Prepare(a.d.StreamWriteValue32(t, w.p, 6, 0));
       a(a.d.StreamDestroy(t));
       w.host[0] = 1;
       a(a.d.CtxSynchronize(nullptr));
       a.Value(w.Read());
     }},
};

}  // namespace
}  // namespace cuaudit::contract::stream_value_questions

namespace cuaudit::contract {
std::span<const Question> StreamValueQuestions() { return stream_value_questions::kQuestions; }
}  // namespace cuaudit::contract
