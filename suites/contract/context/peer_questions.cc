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
  CUcontext first = nullptr, second = nullptr;
};

}  // namespace

void List(Questions& ask) {
  ask.Risky("peer.same_device", "PEER_ACCESS_UNSUPPORTED PEER_ACCESS_UNSUPPORTED PEER_ACCESS_NOT_ENABLED PEER_ACCESS_NOT_ENABLED",
            [](Ready& a) {
              const CUcontext other = a.CtxCreate();
              a(a.d.CtxEnablePeerAccess(a.context, 0));
              a(a.d.CtxEnablePeerAccess(other, 0));
              a(a.d.CtxDisablePeerAccess(a.context));
              a(a.d.CtxDisablePeerAccess(other));
            });
  ask.Risky("peer.arguments", "INVALID_CONTEXT INVALID_VALUE INVALID_CONTEXT", [](Ready& a) {
    a(a.d.CtxEnablePeerAccess(nullptr, 0));
    a(a.d.CtxEnablePeerAccess(a.context, 1));
    a(a.d.CtxDisablePeerAccess(nullptr));
  });
  ask.Risky("peer.destroyed", "CONTEXT_IS_DESTROYED", [](Ready& a) {
    const CUcontext other = a.CtxCreate();
    a.Prepare(a.d.CtxDestroy(other));
    a(a.d.CtxEnablePeerAccess(other, 0));
  });
  ask.Risky("peer.can_access", "SUCCESS 0 INVALID_DEVICE INVALID_DEVICE INVALID_VALUE", [](Ready& a) {
    int can = -1;
    a(a.d.DeviceCanAccessPeer(&can, 0, 0), can);
    a(a.d.DeviceCanAccessPeer(&can, 0, 99));
    a(a.d.DeviceCanAccessPeer(&can, -1, 0));
    a(a.d.DeviceCanAccessPeer(nullptr, 0, 0));
  });
  ask.Risky("peer.copy_between_contexts", "SUCCESS SUCCESS 7 SUCCESS SUCCESS", [](Ready& a) {
    int in = 7, out = 0;
    const CUdeviceptr p = a.MemAlloc(4096);
    a.Prepare(a.d.MemcpyHtoD(p, &in, sizeof(in)));
    const CUcontext other = a.CtxCreate();
    const CUdeviceptr q = a.MemAlloc(4096);
    a(a.d.MemcpyPeer(q, other, p, a.context, sizeof(in)));
    a(a.d.MemcpyDtoH(&out, q, sizeof(out)), out);
    a(a.d.MemcpyPeer(q, nullptr, p, a.context, sizeof(in)));
    a(a.d.MemcpyPeer(q, other, p, nullptr, sizeof(in)));
  });
  ask.Risky("peer.copy_wrong_contexts", "SUCCESS INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    const CUcontext other = a.CtxCreate();
    a(a.d.MemcpyPeer(p, other, p + 2048, other, 64));
    a(a.d.MemcpyPeer(p, a.context, p + 2048, a.context, 4096));
  });
  ask.Risky("peer.pool_access", "SUCCESS 3 INVALID_DEVICE INVALID_DEVICE", [](Ready& a) {
    CUmemoryPool pool = nullptr;
    a.Prepare(a.d.DeviceGetDefaultMemPool(&pool, 0));
    CUmemLocation here = {};
    here.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    a(a.d.MemPoolGetAccess(&flags, pool, &here), flags);
    CUmemAccessDesc desc = {};
    desc.location = here;
    desc.location.id = 99;
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    a(a.d.MemPoolSetAccess(pool, &desc, 1));
    desc.location.id = 0;
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    a(a.d.MemPoolSetAccess(pool, &desc, 1));
  });
  ask.Risky("peer.two_enable", "one device", [](Asker& a) {
    if (!TwoDevices(a)) return;
    const Pair pair(a);
    int can = -1;
    a(a.d.DeviceCanAccessPeer(&can, 0, 1), can);
    a(a.d.CtxDisablePeerAccess(pair.second));
    a(a.d.CtxEnablePeerAccess(pair.second, 0));
    a(a.d.CtxEnablePeerAccess(pair.second, 0));
    a(a.d.CtxDisablePeerAccess(pair.second));
    a(a.d.CtxDisablePeerAccess(pair.second));
  });
  ask.Risky("peer.two_one_way", "one device", [](Asker& a) {
    if (!TwoDevices(a)) return;
    const Pair pair(a);
    a(a.d.CtxEnablePeerAccess(pair.second, 0));
    a.CtxPopCurrent();
    a(a.d.CtxDisablePeerAccess(pair.first));
    a(a.d.CtxEnablePeerAccess(pair.first, 0));
  });
  ask.Risky("peer.two_enable_dies", "one device", [](Asker& a) {
    if (!TwoDevices(a)) return;
    const Pair pair(a);
    a.Prepare(a.d.CtxEnablePeerAccess(pair.second, 0));
    a(a.d.CtxDestroy(pair.second));
    a(a.d.CtxDisablePeerAccess(pair.second));
  });
  ask.Risky("peer.two_copies", "one device", [](Asker& a) {
    if (!TwoDevices(a)) return;
    const Pair pair(a);
    int in = 7, out = 0;
    const CUdeviceptr p = a.MemAlloc(4096);
    a.Prepare(a.d.MemcpyHtoD(p, &in, sizeof(in)));
    a.CtxPopCurrent();
    const CUdeviceptr q = a.MemAlloc(4096);
    a(a.d.MemcpyPeer(q, pair.second, p, pair.first, sizeof(in)));
    a(a.d.MemcpyDtoH(&out, q, sizeof(out)), out);
    a(a.d.MemcpyDtoD(q + 64, p, sizeof(in)));
    a(a.d.Memcpy(q + 64, p, sizeof(in)));
    a(a.d.MemcpyPeerAsync(q + 128, pair.second, p, pair.first, sizeof(in), nullptr));
    a(a.d.CtxSynchronize(nullptr));
  });
  ask.Risky("peer.two_attributes", "one device", [](Asker& a) {
    if (!TwoDevices(a)) return;
    for (unsigned i = 1; i <= 4; ++i) {
      int value = -1;
      if (a(a.d.DeviceGetP2PAttribute(&value, Beyond<CUdevice_P2PAttribute>(i), 0, 1)) == CUDA_SUCCESS) a.Value(value);
    }
  });
  ask.Risky("peer.two_pool_access", "one device", [](Asker& a) {
    if (!TwoDevices(a)) return;
    const Pair pair(a);
    CUmemoryPool pool = nullptr;
    a.Prepare(a.d.DeviceGetDefaultMemPool(&pool, 0));
    CUmemAccessDesc desc = {};
    desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc.location.id = 1;
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    a(a.d.MemPoolGetAccess(&flags, pool, &desc.location), flags);
    for (const CUmemAccess_flags each :
         {CU_MEM_ACCESS_FLAGS_PROT_READ, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_NONE}) {
      desc.flags = each;
      a(a.d.MemPoolSetAccess(pool, &desc, 1));
      a.Values(a.d.MemPoolGetAccess(&flags, pool, &desc.location), flags);
    }
  });
  ask.Risky("peer.two_wrong_device", "one device", [](Asker& a) {
    if (!TwoDevices(a)) return;
    const Pair pair(a);
    const CUstream s = a.StreamCreate();
    a.CtxPopCurrent();
    const CUevent e = a.EventCreate();
    a(a.d.EventRecord(e, s));
    a(a.d.StreamWaitEvent(s, e, 0));
    a(a.d.MemAllocAsync(kIgnored, 4096, s));
  });
}

}  // namespace cuaudit::contract::peer_questions
