// SPDX-License-Identifier: MIT
// away.h: objects of the primary context, and questions about them that are asked while no context is current ("none.") or while another
// context is current ("elsewhere.").
#pragma once

#include <string>

#include "suites/contract/question.h"

namespace cuaudit::contract {

// Makes objects in the primary context, then makes another context current, or none.
struct Away : Ready {
  Away(const Asker& asker, bool elsewhere) : Ready(asker) {
    const CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    s = StreamCreate();
    e = EventCreate();
    p = MemAlloc(4096);
    ordered = MemAllocAsync(64, s);
    h = MemAllocHost(64);
    Prepare(d.MemHostRegister(page, sizeof(page), 0));
    array = ArrayCreate(shape);
    m = ModuleLoadData();
    l = LibraryLoadData();
    Prepare(d.LinkCreate(0, nullptr, nullptr, &link));
    pool = MemPoolCreate();
    g = GraphCreate();
    GraphAddEmptyNode(g);
    x = GraphInstantiate(g);
    elsewhere ? CtxCreate() : CtxPopCurrent();
  }
  // Makes the context of the objects current again.
  void Return() { Prepare(d.CtxSetCurrent(context)); }

  CUstream s;
  CUevent e;
  CUdeviceptr p, ordered;
  void* h;
  alignas(4096) static inline char page[4096];
  CUarray array;
  CUmodule m;
  CUlibrary l;
  CUlinkState link = nullptr;
  CUmemoryPool pool;
  CUgraph g;
  CUgraphExec x;
};

// More objects of the context that is left.
struct Held : Away {
  Held(const Asker& asker, bool elsewhere) : Away(asker, elsewhere) {
    Prepare(d.CtxPushCurrent(context));
    const CUDA_ARRAY3D_DESCRIPTOR levels{16, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    managed = MemAllocManaged(4096);
    Prepare(d.EventRecord(e, s));
    Prepare(d.StreamSynchronize(s));
    shared = EventCreate(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    Prepare(d.MemsetD8(p, 0, 4096));
    Prepare(d.MipmappedArrayCreate(&mipmap, &levels, 2));
    const CUDA_ARRAY3D_DESCRIPTOR bound{16, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_SURFACE_LDST};
    Prepare(d.Array3DCreate(&surfaced, &bound));
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = surfaced;
    Prepare(d.TexObjectCreate(&texture, &resource, &sampling, nullptr));
    Prepare(d.SurfObjectCreate(&surface, &resource));
    f = ModuleGetFunction(m, "plain");
    Prepare(d.LibraryGetKernel(&k, l, "plain"));
    plane.srcMemoryType = plane.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    plane.srcDevice = p;
    plane.dstDevice = p + 2048;
    plane.srcPitch = plane.dstPitch = 64;
    plane.WidthInBytes = 16;
    plane.Height = 4;
    volume.srcMemoryType = volume.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    volume.srcDevice = p;
    volume.dstDevice = p + 2048;
    volume.srcPitch = volume.dstPitch = 64;
    volume.srcHeight = volume.dstHeight = 4;
    volume.WidthInBytes = 16;
    volume.Height = 4;
    volume.Depth = 2;
    CtxPopCurrent();
  }

  CUdeviceptr managed = 0;
  CUevent shared = nullptr;
  CUmipmappedArray mipmap = nullptr;
  CUarray surfaced = nullptr;
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC sampling{};
  CUtexObject texture = 0;
  CUsurfObject surface = 0;
  CUfunction f = nullptr;
  CUkernel k = nullptr;
  CUDA_MEMCPY2D plane{};
  CUDA_MEMCPY3D volume{};
  CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  unsigned yes = 1;
  unsigned word = 0;
};

// One call as two questions: the answers with no context and with another one.
template <typename Place>
struct AwayRow {
  const char* name;
  const char* none;
  const char* elsewhere;
  CUresult (*call)(Place&);
};

template <typename Place, std::size_t count>
void AskAway(Questions& ask, const AwayRow<Place> (&rows)[count]) {
  for (const AwayRow<Place>& row : rows) {
    for (const bool elsewhere : {false, true}) {
      ask.Risky(std::string(elsewhere ? "elsewhere." : "none.") + row.name, elsewhere ? row.elsewhere : row.none,
                [call = row.call, elsewhere](Asker& asker) {
                  Place a(asker, elsewhere);
                  a(call(a));
                  a.Return();
                  (void)a.d.CtxSynchronize(nullptr);
                });
    }
  }
}

// Green contexts of device 0. Nothing here is released.

// A descriptor of one group of at least `count` multiprocessors of device 0.
inline CUdevResourceDesc Group(Asker& a, unsigned count, CUdevResource* group = nullptr) {
  CUdevResource all = {}, part = {}, rest = {};
  unsigned groups = 1;
  CUdevResourceDesc desc = nullptr;
  a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  a.Prepare(a.d.DevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, count));
  a.Prepare(a.d.DevResourceGenerateDesc(&desc, &part, 1));
  if (group != nullptr) *group = part;
  return desc;
}

inline CUgreenCtx Green(Asker& a, unsigned count = 16) {
  CUgreenCtx green = nullptr;
  a.Prepare(a.d.GreenCtxCreate(&green, Group(a, count), 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

inline CUstream StreamOf(Asker& a, CUgreenCtx green) {
  CUstream s = nullptr;
  a.Prepare(a.d.GreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
  return s;
}

}  // namespace cuaudit::contract
