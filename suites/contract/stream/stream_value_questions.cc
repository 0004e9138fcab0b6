// SPDX-License-Identifier: MIT
// Attributes of streams, and values that a stream writes to memory or waits for there.
#include "suites/contract/question.h"

namespace cuaudit::contract::stream_value_questions {
namespace {

struct Two {
  explicit Two(Asker& a) : s(a.StreamCreate()) { a.Prepare(a.d.StreamCreateWithPriority(&t, 0, -2)); }
  const CUstream s;
  CUstream t = nullptr;
};

CUstreamAttrValue Window(CUdeviceptr p, std::size_t bytes, float ratio, CUaccessProperty hit) {
  CUstreamAttrValue value = {};
  value.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(p);
  value.accessPolicyWindow.num_bytes = bytes;
  value.accessPolicyWindow.hitRatio = ratio;
  value.accessPolicyWindow.hitProp = hit;
  value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
  return value;
}

// A stream, device words, and a host word with its device address. Everything 0.
struct Words {
  explicit Words(Asker& a) : asker(a), s(a.StreamCreate()), p(a.MemAlloc(4096)) {
    a.Prepare(a.d.MemsetD8(p, 0, 4096));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    void* memory = nullptr;
    a.Prepare(a.d.MemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    host = static_cast<volatile unsigned*>(memory);
    for (int i = 0; i < 16; ++i) host[i] = 0;
    a.Prepare(a.d.MemHostGetDevicePointer(&h, memory, 0));
  }
  unsigned Read(std::size_t offset = 0) {
    unsigned value = 0;
    asker.Prepare(asker.d.MemcpyDtoH(&value, p + offset, sizeof(value)));
    return value;
  }
  Asker& asker;
  const CUstream s;
  const CUdeviceptr p;
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

}  // namespace

void List(Questions& ask) {
  ask.Risky("stream_attribute.known", "INVALID_VALUE SUCCESS INVALID_VALUE SUCCESS INVALID_VALUE x4 SUCCESS x3 INVALID_VALUE x9",
            [](Ready& a, const Two& two) {
              for (unsigned i = 0; i < 20; ++i) {
                CUstreamAttrValue value = {};
                a(a.d.StreamGetAttribute(two.s, Beyond<CUstreamAttrID>(i), &value));
              }
            });
  ask.Risky("stream_attribute.defaults", "SUCCESS 4294967295 SUCCESS -2 SUCCESS 0 SUCCESS 0 1 SUCCESS 0 0 0 0",
            [](Ready& a, const Two& two) {
              CUstreamAttrValue value = {};
              a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), value.syncPolicy);
              value = {};
              a(a.d.StreamGetAttribute(two.t, CU_STREAM_ATTRIBUTE_PRIORITY, &value), value.priority);
              value = {};
              a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value), value.memSyncDomain);
              value = {};
              a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value), value.memSyncDomainMap.default_,
                value.memSyncDomainMap.remote);
              value = {};
              a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value), value.accessPolicyWindow.num_bytes,
                value.accessPolicyWindow.hitProp, value.accessPolicyWindow.missProp);
              a.Value(static_cast<long long>(value.accessPolicyWindow.hitRatio * 100));
            });
  ask.Risky("stream_attribute.policy", "INVALID_VALUE 4294967295 SUCCESS 1 SUCCESS 2 SUCCESS 3 SUCCESS 4 INVALID_VALUE 4",
            [](Ready& a, const Two& two) {
              for (unsigned policy = 0; policy <= 5; ++policy) {
                CUstreamAttrValue value = {};
                value.syncPolicy = Beyond<CUsynchronizationPolicy>(policy);
                a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
                value = {};
                a.Values(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), value.syncPolicy);
              }
            });
  ask.Risky("stream_attribute.priority", "SUCCESS -3 SUCCESS 0 SUCCESS -5", [](Ready& a, const Two& two) {
    for (const int priority : {-3, 5, -50}) {
      CUstreamAttrValue value = {};
      value.priority = priority;
      a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
      int now = 9;
      a.Values(a.d.StreamGetPriority(two.s, &now), now);
    }
  });
  ask.Risky("stream_attribute.domains", "SUCCESS SUCCESS INVALID_VALUE SUCCESS 0 0 SUCCESS 0 1 SUCCESS 0 3 INVALID_VALUE 0 3",
            [](Ready& a, const Two& two) {
              CUstreamAttrValue value = {};
              for (unsigned domain = 0; domain < 3; ++domain) {
                value = {};
                value.memSyncDomain = Beyond<CUlaunchMemSyncDomain>(domain);
                a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
              }
              for (const unsigned char remote : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{3}, std::uint8_t{4}}) {
                value = {};
                value.memSyncDomainMap.remote = remote;
                a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
                value = {};
                a.Values(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value), value.memSyncDomainMap.default_,
                         value.memSyncDomainMap.remote);
              }
            });
  ask.Risky("stream_attribute.window", "SUCCESS SUCCESS 1 1048576 2 SUCCESS SUCCESS INVALID_VALUE x3 SUCCESS",
            [](Ready& a, const Two& two) {
              const CUdeviceptr p = a.MemAlloc(1 << 20);
              const auto set = [&](CUstreamAttrValue value) {
                a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
              };
              set(Window(p, 1 << 20, 0.5F, CU_ACCESS_PROPERTY_PERSISTING));
              CUstreamAttrValue value = {};
              a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
              a.Value(value.accessPolicyWindow.base_ptr == reinterpret_cast<void*>(p));
              a.Value(static_cast<long long>(value.accessPolicyWindow.num_bytes));
              a.Value(value.accessPolicyWindow.hitProp);
              set(Window(p, 134213632, 1, CU_ACCESS_PROPERTY_STREAMING));
              set(Window(p, 134213633, 1, CU_ACCESS_PROPERTY_STREAMING));
              set(Window(p, 4096, 2, CU_ACCESS_PROPERTY_PERSISTING));
              set(Window(p, 4096, -1, CU_ACCESS_PROPERTY_PERSISTING));
              CUstreamAttrValue miss = Window(p, 4096, 1, CU_ACCESS_PROPERTY_NORMAL);
              miss.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_PERSISTING;
              set(miss);
              set(Window(0, 0, 0, CU_ACCESS_PROPERTY_NORMAL));
            });
  ask.Risky("stream_attribute.copy", "SUCCESS 3 -2 SUCCESS x3", [](Ready& a, const Two& two) {
    CUstreamAttrValue value = {};
    value.syncPolicy = CU_SYNC_POLICY_YIELD;
    a.Prepare(a.d.StreamSetAttribute(two.t, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    a(a.d.StreamCopyAttributes(two.s, two.t));
    value = {};
    a.Values(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), value.syncPolicy);
    int priority = 9;
    a.Values(a.d.StreamGetPriority(two.s, &priority), priority);
    a(a.d.StreamCopyAttributes(nullptr, two.t));
    a(a.d.StreamCopyAttributes(two.s, nullptr));
    a(a.d.StreamCopyAttributes(two.s, two.s));
  });
  ask.Risky("stream_attribute.copy_across_contexts", "INVALID_VALUE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a.CtxCreate();
    const CUstream t = a.StreamCreate();
    a(a.d.StreamCopyAttributes(s, t));
  });
  ask.Risky("stream_attribute.default_stream", "SUCCESS 4294967295 SUCCESS SUCCESS 2 SUCCESS 4294967295", [](Ready& a) {
    CUstreamAttrValue value = {};
    a(a.d.StreamGetAttribute(nullptr, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), value.syncPolicy);
    value.syncPolicy = CU_SYNC_POLICY_SPIN;
    a(a.d.StreamSetAttribute(nullptr, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    a(a.d.StreamGetAttribute(CU_STREAM_LEGACY, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), value.syncPolicy);
    a(a.d.StreamGetAttribute(CU_STREAM_PER_THREAD, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), value.syncPolicy);
  });
  ask.Risky("stream_attribute.captured", "SUCCESS x4", [](Ready& a, const Two& two) {
    CUstreamAttrValue value = {};
    a.Prepare(a.d.StreamBeginCapture(two.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    value.syncPolicy = CU_SYNC_POLICY_SPIN;
    a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    a(a.d.StreamCopyAttributes(two.s, two.t));
    a(a.d.StreamEndCapture(two.s, kIgnored));
  });
  ask.Risky("stream_value.write", "SUCCESS x3 7 9 1", [](Ready& a, Words& w) {
    a(a.d.StreamWriteValue32(w.s, w.p, 7, CU_STREAM_WRITE_VALUE_DEFAULT));
    a(a.d.StreamWriteValue64(w.s, w.p + 8, 0x100000009, CU_STREAM_WRITE_VALUE_DEFAULT));
    a(a.d.StreamSynchronize(w.s));
    a.Value(w.Read());
    a.Value(w.Read(8));
    a.Value(w.Read(12));
  });
  ask.Risky("stream_value.satisfied_waits", "SUCCESS x6", [](Ready& a, Words& w) {
    a.Prepare(a.d.StreamWriteValue32(w.s, w.p, 7, 0));
    a(a.d.StreamWaitValue32(w.s, w.p, 7, CU_STREAM_WAIT_VALUE_EQ));
    a(a.d.StreamWaitValue32(w.s, w.p, 6, CU_STREAM_WAIT_VALUE_GEQ));
    a(a.d.StreamWaitValue32(w.s, w.p, 4, CU_STREAM_WAIT_VALUE_AND));
    a(a.d.StreamWaitValue32(w.s, w.p, 7, CU_STREAM_WAIT_VALUE_NOR));
    a(a.d.StreamWaitValue64(w.s, w.p, 5, CU_STREAM_WAIT_VALUE_GEQ));
    a(a.d.StreamSynchronize(w.s));
  });
  ask.Risky("stream_value.cyclic", "SUCCESS SUCCESS", [](Ready& a, Words& w) {
    a.Prepare(a.d.StreamWriteValue32(w.s, w.p, 3, 0));
    a(a.d.StreamWaitValue32(w.s, w.p, 0xfffffff0U, CU_STREAM_WAIT_VALUE_GEQ));
    a(a.d.StreamSynchronize(w.s));
  });
  ask.Risky("stream_value.released_by_host", "SUCCESS NOT_READY SUCCESS 5", [](Ready& a, Words& w) {
    a(a.d.StreamWaitValue32(w.s, w.h, 1, CU_STREAM_WAIT_VALUE_EQ));
    a.Prepare(a.d.StreamWriteValue32(w.s, w.p, 5, 0));
    a(a.d.StreamQuery(w.s));
    w.host[0] = 1;
    a(a.d.StreamSynchronize(w.s));
    a.Value(w.Read());
  });
  ask.Risky("stream_value.released_by_stream", "SUCCESS NOT_READY NOT_READY SUCCESS x3", [](Ready& a, Words& w) {
    const CUstream t = a.StreamCreate();
    a(a.d.StreamWaitValue32(w.s, w.p, 1, CU_STREAM_WAIT_VALUE_EQ));
    a(a.d.StreamQuery(w.s));
    a(a.d.StreamQuery(w.s));
    a(a.d.StreamWriteValue32(t, w.p, 1, 0));
    a(a.d.StreamSynchronize(t));
    a(a.d.StreamSynchronize(w.s));
  });
  ask.Risky("stream_value.event_behind_wait", "NOT_READY SUCCESS SUCCESS", [](Ready& a, Words& w) {
    const CUevent e = a.EventCreate(CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.StreamWaitValue32(w.s, w.h, 1, CU_STREAM_WAIT_VALUE_EQ));
    a.Prepare(a.d.EventRecord(e, w.s));
    a(a.d.EventQuery(e));
    w.host[0] = 1;
    a(a.d.EventSynchronize(e));
    a(a.d.EventDestroy(e));
  });
  ask.Risky("stream_value.addresses", "INVALID_VALUE x5 SUCCESS INVALID_VALUE INVALID_VALUE SUCCESS", [](Ready& a, Words& w) {
    const CUdeviceptr managed = a.MemAllocManaged(4096);
    a(a.d.StreamWriteValue32(w.s, 0, 1, 0));
    a(a.d.StreamWriteValue32(w.s, w.p + 2, 1, 0));
    a(a.d.StreamWriteValue64(w.s, w.p + 4, 1, 0));
    unsigned local = 0;
    a(a.d.StreamWriteValue32(w.s, reinterpret_cast<CUdeviceptr>(&local), 1, 0));
    a(a.d.StreamWriteValue32(w.s, managed, 1, 0));
    a(a.d.StreamWriteValue32(w.s, w.p + 4092, 1, 0));
    a(a.d.StreamWaitValue32(w.s, 0, 1, 0));
    a(a.d.StreamWaitValue32(w.s, w.p + 2, 0, 0));
    a(a.d.StreamSynchronize(w.s));
  });
  ask.Risky("stream_value.flags", "INVALID_VALUE x3 NOT_SUPPORTED INVALID_VALUE SUCCESS", [](Ready& a, Words& w) {
    a(a.d.StreamWriteValue32(w.s, w.p, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
    a(a.d.StreamWriteValue32(w.s, w.p, 1, 2));
    a(a.d.StreamWaitValue32(w.s, w.p, 1, 4));
    a(a.d.StreamWaitValue32(w.s, w.p, 1, CU_STREAM_WAIT_VALUE_FLUSH));
    a(a.d.StreamWaitValue32(w.s, w.p, 1, 1U << 29));
    a(a.d.StreamSynchronize(w.s));
  });
  ask.Risky("stream_value.default_streams", "SUCCESS x4 3", [](Ready& a, Words& w) {
    a(a.d.StreamWriteValue32(nullptr, w.p, 1, 0));
    a(a.d.StreamWriteValue32(CU_STREAM_LEGACY, w.p, 2, 0));
    a(a.d.CtxSynchronize(nullptr));
    a(a.d.StreamWriteValue32(CU_STREAM_PER_THREAD, w.p, 3, 0));
    a.Prepare(a.d.StreamSynchronize(CU_STREAM_PER_THREAD));
    a.Value(w.Read());
  });
  ask.Risky("stream_value.batch", "SUCCESS SUCCESS 4 5", [](Ready& a, Words& w) {
    CUstreamBatchMemOpParams ops[4] = {Write(w.p, 4), Wait(w.p, 4, CU_STREAM_WAIT_VALUE_EQ), {}, Write(w.p + 64, 5)};
    ops[2].operation = CU_STREAM_MEM_OP_BARRIER;
    ops[2].memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_SYS;
    a(a.d.StreamBatchMemOp(w.s, 4, ops, 0));
    a(a.d.StreamSynchronize(w.s));
    a.Value(w.Read());
    a.Value(w.Read(64));
  });
  ask.Risky("stream_value.batch_words", "SUCCESS INVALID_VALUE x3 NOT_SUPPORTED INVALID_VALUE SUCCESS 0", [](Ready& a, Words& w) {
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
  });
  ask.Risky("stream_value.batch_sizes", "SUCCESS SUCCESS INVALID_VALUE SUCCESS", [](Ready& a, Words& w) {
    static CUstreamBatchMemOpParams ops[300];
    for (CUstreamBatchMemOpParams& op : ops) op = Write(w.p, 4);
    a(a.d.StreamBatchMemOp(w.s, 128, ops, 0));
    a(a.d.StreamBatchMemOp(w.s, 255, ops, 0));
    a(a.d.StreamBatchMemOp(w.s, 256, ops, 0));
    a(a.d.StreamSynchronize(w.s));
  });
  ask.Risky("stream_value.captured", "SUCCESS SUCCESS 1 12", [](Ready& a, Words& w) {
    CUgraph g = nullptr;
    std::size_t nodes = 0;
    CUgraphNode node = nullptr;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    a.Prepare(a.d.StreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a(a.d.StreamWriteValue32(w.s, w.p, 7, 0));
    a(a.d.StreamEndCapture(w.s, &g));
    a.Values(a.d.GraphGetNodes(g, nullptr, &nodes), nodes);
    nodes = 1;
    a.Prepare(a.d.GraphGetNodes(g, &node, &nodes));
    a.Values(a.d.GraphNodeGetType(node, &type), type);
  });
  ask.Risky("stream_value.free_under_wait", "SUCCESS 1", [](Ready& a, Words& w) {
    const CUstream t = a.StreamCreate();
    const CUdeviceptr q = a.MemAllocAsync(4096, t);
    a.Prepare(a.d.StreamSynchronize(t));
    a.Prepare(a.d.StreamWaitValue32(w.s, w.h, 1, CU_STREAM_WAIT_VALUE_EQ));
    a(a.d.MemFreeAsync(q, t));
    const CUresult state = a.d.StreamQuery(w.s);
    a.Value(state == CUDA_ERROR_NOT_READY);
    w.host[0] = 1;
    a.Prepare(a.d.StreamSynchronize(w.s));
  });
  ask.Risky("stream_value.destroy_waiting_stream", "SUCCESS SUCCESS 6", [](Ready& a, Words& w) {
    const CUstream t = a.StreamCreate();
    a.Prepare(a.d.StreamWaitValue32(t, w.h, 1, CU_STREAM_WAIT_VALUE_EQ));
    a.Prepare(a.d.StreamWriteValue32(t, w.p, 6, 0));
    a(a.d.StreamDestroy(t));
    w.host[0] = 1;
    a(a.d.CtxSynchronize(nullptr));
    a.Value(w.Read());
  });
}

}  // namespace cuaudit::contract::stream_value_questions
