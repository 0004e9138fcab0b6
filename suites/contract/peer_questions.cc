// SPDX-License-Identifier: MIT
// Access between devices. What needs two of them answers "one device" where there is only one.
#include "suites/contract/question.h"

namespace cuaudit::contract::peer_questions {
namespace {

bool TwoDevices(Asker& a) {
  int count = 0;
  a.Prepare(a.d.Init(0));
  a.Prepare(a.d.DeviceGetCount(&count));
  if (count < 2) a.Text("one device");
  return count >= 2;
}

// A context of each device; that of device 0 is current.
struct Pair {
  explicit Pair(Asker& a) {
    a.Prepare(a.d.CtxCreate(&second, nullptr, 0, 1));
    a.Prepare(a.d.CtxCreate(&first, nullptr, 0, 0));
  }
  CUcontext first = nullptr;
  CUcontext second = nullptr;
};

constexpr Question kQuestions[] = {
    {"peer.same_device", "PEER_ACCESS_UNSUPPORTED PEER_ACCESS_UNSUPPORTED PEER_ACCESS_NOT_ENABLED PEER_ACCESS_NOT_ENABLED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUcontext other = nullptr;
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a(a.d.CtxEnablePeerAccess(ready.context, 0));
       a(a.d.CtxEnablePeerAccess(other, 0));
       a(a.d.CtxDisablePeerAccess(ready.context));
       a(a.d.CtxDisablePeerAccess(other));
     }},
    {"peer.arguments", "INVALID_CONTEXT INVALID_VALUE INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.CtxEnablePeerAccess(nullptr, 0));
       a(a.d.CtxEnablePeerAccess(ready.context, 1));
       a(a.d.CtxDisablePeerAccess(nullptr));
     }},
    {"peer.destroyed", "CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUcontext other = nullptr;
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a.Prepare(a.d.CtxDestroy(other));
       a(a.d.CtxEnablePeerAccess(other, 0));
     }},
    {"peer.can_access", "SUCCESS 0 INVALID_DEVICE INVALID_DEVICE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       int can = -1;
       a(a.d.DeviceCanAccessPeer(&can, 0, 0));
       a.Value(can);
       a(a.d.DeviceCanAccessPeer(&can, 0, 99));
       a(a.d.DeviceCanAccessPeer(&can, -1, 0));
       a(a.d.DeviceCanAccessPeer(nullptr, 0, 0));
     }},
    {"peer.copy_between_contexts", "SUCCESS SUCCESS 7 SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       CUdeviceptr q = 0;
       CUcontext other = nullptr;
       int in = 7;
       int out = 0;
       a.Prepare(a.d.MemAlloc(&p, 4096));
       a.Prepare(a.d.MemcpyHtoD(p, &in, sizeof(in)));
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a.Prepare(a.d.MemAlloc(&q, 4096));
       a(a.d.MemcpyPeer(q, other, p, ready.context, sizeof(in)));
       a(a.d.MemcpyDtoH(&out, q, sizeof(out)));
       a.Value(out);
       a(a.d.MemcpyPeer(q, nullptr, p, ready.context, sizeof(in)));
       a(a.d.MemcpyPeer(q, other, p, nullptr, sizeof(in)));
     }},
    {"peer.copy_wrong_contexts", "SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       CUcontext other = nullptr;
       a.Prepare(a.d.MemAlloc(&p, 4096));
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a(a.d.MemcpyPeer(p, other, p + 2048, other, 64));
       a(a.d.MemcpyPeer(p, ready.context, p + 2048, ready.context, 4096));
     }},
    {"peer.pool_access", "SUCCESS 3 INVALID_DEVICE INVALID_DEVICE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmemoryPool pool = nullptr;
       a.Prepare(a.d.DeviceGetDefaultMemPool(&pool, 0));
       CUmemLocation here = {};
       here.type = CU_MEM_LOCATION_TYPE_DEVICE;
       CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
       a(a.d.MemPoolGetAccess(&flags, pool, &here));
       a.Value(flags);
       CUmemAccessDesc desc = {};
       desc.location = here;
       desc.location.id = 99;
       desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
       a(a.d.MemPoolSetAccess(pool, &desc, 1));
       desc.location.id = 0;
       desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
       a(a.d.MemPoolSetAccess(pool, &desc, 1));
     }},
    {"peer.two_enable", "one device", Manner::Risky,
     [](Asker& a) {
       if (!TwoDevices(a)) return;
       const Pair pair(a);
       int can = -1;
       a(a.d.DeviceCanAccessPeer(&can, 0, 1));
       a.Value(can);
       a(a.d.CtxDisablePeerAccess(pair.second));
       a(a.d.CtxEnablePeerAccess(pair.second, 0));
       a(a.d.CtxEnablePeerAccess(pair.second, 0));
       a(a.d.CtxDisablePeerAccess(pair.second));
       a(a.d.CtxDisablePeerAccess(pair.second));
     }},
    {"peer.two_one_way", "one device", Manner::Risky,
     [](Asker& a) {
       if (!TwoDevices(a)) return;
       const Pair pair(a);
       CUcontext popped = nullptr;
       a(a.d.CtxEnablePeerAccess(pair.second, 0));
       a.Prepare(a.d.CtxPopCurrent(&popped));
       a(a.d.CtxDisablePeerAccess(pair.first));
       a(a.d.CtxEnablePeerAccess(pair.first, 0));
     }},
    {"peer.two_enable_dies", "one device", Manner::Risky,
     [](Asker& a) {
       if (!TwoDevices(a)) return;
       const Pair pair(a);
       a.Prepare(a.d.CtxEnablePeerAccess(pair.second, 0));
       a(a.d.CtxDestroy(pair.second));
       a(a.d.CtxDisablePeerAccess(pair.second));
     }},
    {"peer.two_copies", "one device", Manner::Risky,
     [](Asker& a) {
       if (!TwoDevices(a)) return;
       const Pair pair(a);
       CUdeviceptr p = 0;
       CUdeviceptr q = 0;
       CUcontext popped = nullptr;
       int in = 7;
       int out = 0;
       a.Prepare(a.d.MemAlloc(&p, 4096));
       a.Prepare(a.d.MemcpyHtoD(p, &in, sizeof(in)));
       a.Prepare(a.d.CtxPopCurrent(&popped));
       a.Prepare(a.d.MemAlloc(&q, 4096));
       a(a.d.MemcpyPeer(q, pair.second, p, pair.first, sizeof(in)));
       a(a.d.MemcpyDtoH(&out, q, sizeof(out)));
       a.Value(out);
       a(a.d.MemcpyDtoD(q + 64, p, sizeof(in)));
       a(a.d.Memcpy(q + 64, p, sizeof(in)));
       a(a.d.MemcpyPeerAsync(q + 128, pair.second, p, pair.first, sizeof(in), nullptr));
       a(a.d.CtxSynchronize(nullptr));
     }},
    {"peer.two_attributes", "one device", Manner::Risky,
     [](Asker& a) {
       if (!TwoDevices(a)) return;
       for (unsigned i = 1; i <= 4; ++i) {
         int value = -1;
         if (a(a.d.DeviceGetP2PAttribute(&value, Beyond<CUdevice_P2PAttribute>(i), 0, 1)) == CUDA_SUCCESS) a.Value(value);
       }
     }},
    {"peer.two_pool_access", "one device", Manner::Risky,
     [](Asker& a) {
       if (!TwoDevices(a)) return;
       const Pair pair(a);
       CUmemoryPool pool = nullptr;
       a.Prepare(a.d.DeviceGetDefaultMemPool(&pool, 0));
       CUmemAccessDesc desc = {};
       desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
       desc.location.id = 1;
       CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
       a(a.d.MemPoolGetAccess(&flags, pool, &desc.location));
       a.Value(flags);
       for (const CUmemAccess_flags each :
            {CU_MEM_ACCESS_FLAGS_PROT_READ, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_NONE}) {
         desc.flags = each;
         a(a.d.MemPoolSetAccess(pool, &desc, 1));
         a.Prepare(a.d.MemPoolGetAccess(&flags, pool, &desc.location));
         a.Value(flags);
       }
     }},
    {"peer.two_wrong_device", "one device", Manner::Risky,
     [](Asker& a) {
       if (!TwoDevices(a)) return;
       const Pair pair(a);
       CUstream s = nullptr;
       CUevent e = nullptr;
       CUcontext popped = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.CtxPopCurrent(&popped));
       a.Prepare(a.d.EventCreate(&e, 0));
       a(a.d.EventRecord(e, s));
       a(a.d.StreamWaitEvent(s, e, 0));
       CUdeviceptr p = 0;
       a(a.d.MemAllocAsync(&p, 4096, s));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::peer_questions

namespace cuaudit::contract {
std::span<const Question> PeerQuestions() { return peer_questions::kQuestions; }
}  // namespace cuaudit::contract
