// SPDX-License-Identifier: MIT
// What becomes of an object when the context ends that was current when it was made: each kind used and released afterwards, in another
// context. kinds.def says of each kind what the answers say.
#include <unistd.h>

#include "suites/contract/question.h"

namespace cuaudit::contract::outlives_questions {
namespace {

struct Ending : Ready {
  explicit Ending(const Asker& asker) : Ready(asker), c(CtxCreate()) {}
  // The other context is current from now on.
  void End() {
    Prepare(d.CtxDestroy(c));
    Prepare(d.CtxSetCurrent(context));
  }
  const CUcontext c;
};

struct Link {
  explicit Link(Asker& a) { a.Prepare(a.d.LinkCreate(0, nullptr, nullptr, &link)); }
  CUlinkState link = nullptr;
};

CUresult AddText(Asker& a, CUlinkState link) {
  return a.d.LinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kPtx), std::char_traits<char>::length(kPtx) + 1, "text", 0, nullptr,
                         nullptr);
}

// The primary context, whose last reference goes, and which is retained anew.
struct Releasing : Initialised {
  explicit Releasing(const Asker& asker) : Initialised(asker) { Prepare(d.CtxSetCurrent(DevicePrimaryCtxRetain())); }
  void End() {
    Prepare(d.DevicePrimaryCtxRelease(0));
    Prepare(d.CtxSetCurrent(DevicePrimaryCtxRetain()));
  }
};

constexpr CUDA_ARRAY_DESCRIPTOR kShape = {16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};

CUmipmappedArray Levels(Asker& a) {
  const CUDA_ARRAY3D_DESCRIPTOR shape{16, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  CUmipmappedArray all = nullptr;
  a.Prepare(a.d.MipmappedArrayCreate(&all, &shape, 2));
  return all;
}

CUtexref Reference(Asker& a) {
  CUtexref t = nullptr;
  a.Prepare(a.d.TexRefCreate(&t));
  return t;
}

CUexternalMemory Imported(Asker& a) {
  int fd = -1;
  a.Prepare(a.d.MemExportToShareableHandle(&fd, a.MemCreate(kGranule, MemoryOfDevice(kFd)), kFd, 0));
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
  from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  from.handle.fd = fd;
  from.size = kGranule;
  CUexternalMemory memory = nullptr;
  a.Prepare(a.d.ImportExternalMemory(&memory, &from));
  return memory;
}

alignas(4096) char page[4096];

template <typename Place>
void LinkOfText(Place& a, Link& link) {
  void* cubin = nullptr;
  std::size_t bytes = 0;
  a.Prepare(AddText(a, link.link));
  a.End();
  a(a.d.LinkComplete(link.link, &cubin, &bytes));
  a(a.d.LinkDestroy(link.link));
}

template <typename Place>
void DestroyArray(Place& a) {
  const CUarray array = a.ArrayCreate(kShape);
  a.End();
  a(a.d.ArrayDestroy(array));
}

template <typename Place>
void DestroyLevels(Place& a) {
  const CUmipmappedArray all = Levels(a);
  a.End();
  a(a.d.MipmappedArrayDestroy(all));
}

template <typename Place>
void AskAndDestroyEvent(Place& a) {
  const CUevent e = a.EventCreate();
  a.End();
  a(a.d.EventQuery(e));
  a(a.d.EventDestroy(e));
}

template <typename Place>
void DestroyReference(Place& a) {
  const CUtexref t = Reference(a);
  a.End();
  a(a.d.TexRefDestroy(t));
}

template <typename Place>
void DestroyExternal(Place& a) {
  const CUexternalMemory memory = Imported(a);
  a.End();
  a(a.d.DestroyExternalMemory(memory));
}

template <typename Place>
void Unregister(Place& a) {
  a.Prepare(a.d.MemHostRegister(page, sizeof(page), CU_MEMHOSTREGISTER_PORTABLE));
  a.End();
  a(a.d.MemHostUnregister(page));
  a(a.d.MemHostRegister(page, sizeof(page), 0));
}

}  // namespace

void List(Questions& ask) {
  ask.Risky("outlives.link", "SUCCESS x3", [](Ending& a, Link& link) {
    void* cubin = nullptr;
    std::size_t bytes = 0;
    a.End();
    a(AddText(a, link.link));
    a(a.d.LinkComplete(link.link, &cubin, &bytes));
    a(a.d.LinkDestroy(link.link));
  });
  ask.Risky("outlives.link_destroyed_twice", "SUCCESS crash", [](Ending& a, Link& link) {
    a.End();
    a(a.d.LinkDestroy(link.link));
    a(a.d.LinkDestroy(link.link));
  });
  ask.Risky("outlives.link_of_text", "SUCCESS SUCCESS", LinkOfText<Ending>);
  ask.Risky("outlives.released_link", "SUCCESS SUCCESS", LinkOfText<Releasing>);
  ask.Risky("outlives.device_memory", "INVALID_VALUE INVALID_VALUE", [](Ending& a) {
    const CUdeviceptr p = a.MemAlloc(64);
    a.End();
    a(a.d.MemsetD8(p, 1, 64));
    a(a.d.MemFree(p));
  });
  ask.Risky("outlives.managed_memory", "INVALID_VALUE INVALID_VALUE", [](Ending& a) {
    const CUdeviceptr p = a.MemAllocManaged(64);
    a.End();
    a(a.d.MemsetD8(p, 1, 64));
    a(a.d.MemFree(p));
  });
  ask.Risky("outlives.stream_ordered_memory", "SUCCESS SUCCESS", [](Ending& a) {
    const CUdeviceptr p = a.MemAllocAsync(64, nullptr);
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a.End();
    a(a.d.MemsetD8(p, 1, 64));
    a(a.d.MemFree(p));
  });
  ask.Risky("outlives.host_registration", "HOST_MEMORY_NOT_REGISTERED SUCCESS", Unregister<Ending>);
  ask.Risky("outlives.released_host_registration", "HOST_MEMORY_NOT_REGISTERED SUCCESS", Unregister<Releasing>);
  ask.Risky("outlives.memory_pool", "SUCCESS SUCCESS", [](Ending& a) {
    const CUmemoryPool pool = a.MemPoolCreate();
    std::uint64_t threshold = 64;
    a.End();
    a(a.d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    a(a.d.MemPoolDestroy(pool));
  });
  ask.Risky("outlives.virtual_memory", "SUCCESS x4", [](Ending& a) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0));
    a.Prepare(a.d.MemSetAccess(p, kGranule, &kReadWrite, 1));
    a.End();
    a(a.d.MemsetD8(p, 1, 64));
    a(a.d.MemUnmap(p, kGranule));
    a(a.d.MemRelease(h));
    a(a.d.MemAddressFree(p, kGranule));
  });
  ask.Risky("outlives.array", "CONTEXT_IS_DESTROYED", DestroyArray<Ending>);
  ask.Risky("outlives.released_array", "crash", DestroyArray<Releasing>);
  ask.Risky("outlives.array_descriptor", "CONTEXT_IS_DESTROYED", [](Ending& a) {
    const CUarray array = a.ArrayCreate(kShape);
    CUDA_ARRAY_DESCRIPTOR read{};
    a.End();
    a(a.d.ArrayGetDescriptor(&read, array));
  });
  ask.Risky("outlives.mipmapped_array", "CONTEXT_IS_DESTROYED", DestroyLevels<Ending>);
  ask.Risky("outlives.released_mipmapped_array", "crash", DestroyLevels<Releasing>);
  ask.Risky("outlives.texture_reference", "crash", DestroyReference<Ending>);
  ask.Risky("outlives.released_texture_reference", "crash", DestroyReference<Releasing>);
  ask.Risky("outlives.texture_reference_used", "crash", [](Ending& a) {
    const CUtexref t = Reference(a);
    a.End();
    a(a.d.TexRefSetFlags(t, CU_TRSF_READ_AS_INTEGER));
  });
  ask.Risky("outlives.stream", "crash", [](Ending& a) {
    const CUstream s = a.StreamCreate();
    a.End();
    a(a.d.StreamQuery(s));
  });
  ask.Risky("outlives.event", "CONTEXT_IS_DESTROYED CONTEXT_IS_DESTROYED", AskAndDestroyEvent<Ending>);
  ask.Risky("outlives.released_event", "crash", AskAndDestroyEvent<Releasing>);
  ask.Risky("outlives.library", "SUCCESS SUCCESS", [](Ending& a) {
    const CUlibrary library = a.LibraryLoadData();
    CUkernel kernel = nullptr;
    a.End();
    a(a.d.LibraryGetKernel(&kernel, library, "plain"));
    a(a.d.LibraryUnload(library));
  });
  ask.Risky("outlives.external_memory", "crash", DestroyExternal<Ending>);
  ask.Risky("outlives.released_external_memory", "SUCCESS", DestroyExternal<Releasing>);
  ask.Risky("outlives.external_memory_mapped", "crash", [](Ending& a) {
    const CUexternalMemory memory = Imported(a);
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
    part.size = kGranule;
    a.End();
    a(a.d.ExternalMemoryGetMappedBuffer(kIgnored, memory, &part));
  });
  ask.Risky("outlives.event_synchronize", "CONTEXT_IS_DESTROYED", [](Ending& a) {
    const CUevent e = a.EventCreate();
    a.End();
    a(a.d.EventSynchronize(e));
  });
  ask.Risky("outlives.event_record", "CONTEXT_IS_DESTROYED", [](Ending& a) {
    const CUevent e = a.EventCreate();
    a.End();
    a(a.d.EventRecord(e, a.StreamCreate()));
  });
  ask.Risky("outlives.event_wait", "CONTEXT_IS_DESTROYED", [](Ending& a) {
    const CUevent e = a.EventCreate();
    a.End();
    a(a.d.StreamWaitEvent(a.StreamCreate(), e, 0));
  });
  ask.Risky("outlives.array_3d_descriptor", "CONTEXT_IS_DESTROYED", [](Ending& a) {
    const CUarray array = a.ArrayCreate(kShape);
    CUDA_ARRAY3D_DESCRIPTOR read{};
    a.End();
    a(a.d.Array3DGetDescriptor(&read, array));
  });
  ask.Risky("outlives.array_requirements", "INVALID_VALUE", [](Ending& a) {
    const CUarray array = a.ArrayCreate(kShape);
    CUDA_ARRAY_MEMORY_REQUIREMENTS read{};
    a.End();
    a(a.d.ArrayGetMemoryRequirements(&read, array, 0));
  });
  ask.Risky("outlives.array_plane", "CONTEXT_IS_DESTROYED", [](Ending& a) {
    const CUarray array = a.ArrayCreate(kShape);
    a.End();
    a(a.d.ArrayGetPlane(kIgnored, array, 0));
  });
  ask.Risky("outlives.array_copy", "crash", [](Ending& a) {
    const CUarray array = a.ArrayCreate(kShape);
    char bytes[16] = {};
    a.End();
    a(a.d.MemcpyHtoA(array, 0, bytes, sizeof(bytes)));
  });
  ask.Risky("outlives.mipmapped_array_level", "CONTEXT_IS_DESTROYED", [](Ending& a) {
    const CUmipmappedArray all = Levels(a);
    a.End();
    a(a.d.MipmappedArrayGetLevel(kIgnored, all, 0));
  });
  ask.Risky("outlives.module_function", "INVALID_HANDLE", [](Ending& a) {
    const CUmodule module = a.ModuleLoadData();
    a.End();
    a(a.d.ModuleGetFunction(kIgnored, module, "plain"));
  });
  ask.Risky("outlives.graph", "SUCCESS SUCCESS", [](Ending& a) {
    const CUgraph g = a.GraphCreate();
    a.GraphAddEmptyNode(g);
    const CUgraphExec x = a.GraphInstantiate(g);
    a.End();
    a(a.d.GraphLaunch(x, nullptr));
    a(a.d.GraphExecDestroy(x));
  });
}

}  // namespace cuaudit::contract::outlives_questions
