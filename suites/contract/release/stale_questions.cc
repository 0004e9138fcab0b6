// SPDX-License-Identifier: MIT
// Handles whose objects are destroyed, and invented ones, in calls besides the second destroy: for each family some that kill the genuine
// driver, and those that it answers.
#include "suites/contract/graph/graph_furniture.h"
#include "suites/contract/partner.h"

namespace cuaudit::contract::stale_questions {
namespace {

// What a program at work has made: a device answers some of these questions otherwise in a process that has only a context.
struct AtWork : Ready {
  explicit AtWork(const Asker& asker) : Ready(asker) {
    stream = StreamCreate();
    event = EventCreate();
    memory = MemAlloc(4096);
    function = ModuleGetFunction("plain");
    graph = GraphCreate();
    node = GraphAddEmptyNode(graph);
    executable = GraphInstantiate(graph);
  }
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  CUfunction function = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
};

struct GoneStream {
  explicit GoneStream(Asker& a) : s(a.StreamCreate()) { a.Prepare(a.d.StreamDestroy(s)); }
  const CUstream s;
};

struct GoneEvent {
  explicit GoneEvent(Asker& a) : e(a.EventCreate()) { a.Prepare(a.d.EventDestroy(e)); }
  const CUevent e;
};

struct GoneArray {
  explicit GoneArray(Asker& a) : array(a.ArrayCreate({16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1})) { a.Prepare(a.d.ArrayDestroy(array)); }
  const CUarray array;
};

struct GoneLevels {
  explicit GoneLevels(Asker& a) {
    const CUDA_ARRAY3D_DESCRIPTOR shape{16, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    a.Prepare(a.d.MipmappedArrayCreate(&all, &shape, 2));
    a.Prepare(a.d.MipmappedArrayDestroy(all));
  }
  CUmipmappedArray all = nullptr;
};

struct GoneLibrary {
  explicit GoneLibrary(Asker& a) : library(a.LibraryLoadData()) { a.Prepare(a.d.LibraryUnload(library)); }
  const CUlibrary library;
};

struct GoneLink {
  explicit GoneLink(Asker& a) {
    a.Prepare(a.d.LinkCreate(0, nullptr, nullptr, &link));
    a.Prepare(a.d.LinkDestroy(link));
  }
  CUlinkState link = nullptr;
};

struct Reference {
  explicit Reference(Asker& a) { a.Prepare(a.d.TexRefCreate(&t)); }
  CUtexref t = nullptr;
};

struct GoneReference : Reference {
  explicit GoneReference(Asker& a) : Reference(a) { a.Prepare(a.d.TexRefDestroy(t)); }
};

template <typename Handle>
Handle Invented() {
  return reinterpret_cast<Handle>(0x1234560);
}

unsigned char bytes[4096];

void AskEvents(Questions& ask) {
  ask.Risky("stale.event_elapsed", "crash", [](AtWork& a, GoneEvent& gone) { a(a.d.EventElapsedTime(kIgnored, gone.e, a.event)); });
  ask.Risky("stale.event_elapsed_as_the_second", "INVALID_HANDLE",
            [](AtWork& a, GoneEvent& gone) { a(a.d.EventElapsedTime(kIgnored, a.event, gone.e)); });
  ask.Risky("stale.event_record", "crash", [](AtWork& a, GoneEvent& gone) { a(a.d.EventRecord(gone.e, a.stream)); });
  ask.Risky("stale.event_wait", "crash", [](AtWork& a, GoneEvent& gone) { a(a.d.StreamWaitEvent(a.stream, gone.e, 0)); });
  ask.Risky("stale.event_record_node", "SUCCESS",
            [](AtWork& a, GoneEvent& gone) { a(a.d.GraphAddEventRecordNode(kIgnored, a.graph, nullptr, 0, gone.e)); });
  ask.Risky("stale.event_wait_node", "SUCCESS",
            [](AtWork& a, GoneEvent& gone) { a(a.d.GraphAddEventWaitNode(kIgnored, a.graph, nullptr, 0, gone.e)); });
  ask.Risky("stale.event_for_another_process", "INVALID_HANDLE",
            [](AtWork& a, GoneEvent& gone) { a(a.d.IpcGetEventHandle(kIgnored, gone.e)); });
}

CUDA_MEMCPY2D CopyTo(CUarray array) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = bytes;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 16;
  copy.Height = 1;
  return copy;
}

void AskArrays(Questions& ask) {
  ask.Risky("stale.array_descriptor", "crash", [](AtWork& a, GoneArray& gone) { a(a.d.ArrayGetDescriptor(kIgnored, gone.array)); });
  ask.Risky("stale.array_copy", "crash", [](AtWork& a, GoneArray& gone) { a(a.d.MemcpyHtoA(gone.array, 0, bytes, 16)); });
  ask.Risky("stale.array_copy_2d", "crash", [](AtWork& a, GoneArray& gone) {
    const CUDA_MEMCPY2D copy = CopyTo(gone.array);
    a(a.d.Memcpy2D(&copy));
  });
  ask.Risky("stale.array_reference", "crash", [](AtWork& a, GoneArray& gone, Reference& reference) {
    a(a.d.TexRefSetArray(reference.t, gone.array, CU_TRSA_OVERRIDE_FORMAT));
  });
  ask.Risky("stale.array_copy_node", "SUCCESS", [](AtWork& a, GoneArray& gone) {
    CUDA_MEMCPY3D copy = Sketch::CopyOf(a.memory, 0, 16);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = gone.array;
    a(a.d.GraphAddMemcpyNode(kIgnored, a.graph, nullptr, 0, &copy, a.context));
  });

  ask.Risky("stale.mipmap_destroy", "CONTEXT_IS_DESTROYED", [](AtWork& a, GoneLevels& gone) { a(a.d.MipmappedArrayDestroy(gone.all)); });
  ask.Risky("stale.mipmap_level", "CONTEXT_IS_DESTROYED",
            [](AtWork& a, GoneLevels& gone) { a(a.d.MipmappedArrayGetLevel(kIgnored, gone.all, 0)); });
  ask.Risky("stale.mipmap_requirements", "INVALID_VALUE",
            [](AtWork& a, GoneLevels& gone) { a(a.d.MipmappedArrayGetMemoryRequirements(kIgnored, gone.all, 0)); });
  ask.Risky("stale.mipmap_sparse", "INVALID_VALUE",
            [](AtWork& a, GoneLevels& gone) { a(a.d.MipmappedArrayGetSparseProperties(kIgnored, gone.all)); });
  ask.Risky("stale.mipmap_reference", "CONTEXT_IS_DESTROYED", [](AtWork& a, GoneLevels& gone, Reference& reference) {
    a(a.d.TexRefSetMipmappedArray(reference.t, gone.all, CU_TRSA_OVERRIDE_FORMAT));
  });
  ask.Risky("stale.reference_format", "crash",
            [](AtWork& a, GoneReference& gone) { a(a.d.TexRefSetFormat(gone.t, CU_AD_FORMAT_UNSIGNED_INT8, 1)); });
  ask.Risky("stale.reference_address", "crash",
            [](AtWork& a, GoneReference& gone) { a(a.d.TexRefSetAddress(kIgnored, gone.t, a.memory, 64)); });
}

void AskCode(Questions& ask) {
  ask.Risky("stale.library_kernel", "NOT_FOUND",
            [](AtWork& a, GoneLibrary& gone) { a(a.d.LibraryGetKernel(kIgnored, gone.library, "plain")); });
  ask.Risky("stale.library_managed", "NOT_FOUND", [](AtWork& a, GoneLibrary& gone) {
    std::size_t size = 0;
    a(a.d.LibraryGetManaged(kIgnored, &size, gone.library, "table"));
  });
  ask.Risky("stale.library_unified", "INVALID_VALUE",
            [](AtWork& a, GoneLibrary& gone) { a(a.d.LibraryGetUnifiedFunction(kIgnored, gone.library, "table")); });
  ask.Risky("stale.library_module", "crash", [](AtWork& a, GoneLibrary& gone) { a(a.d.LibraryGetModule(kIgnored, gone.library)); });
  ask.Risky("stale.library_global", "crash", [](AtWork& a, GoneLibrary& gone) {
    std::size_t size = 0;
    a(a.d.LibraryGetGlobal(kIgnored, &size, gone.library, "table"));
  });
  ask.Risky("stale.link_data", "crash", [](AtWork& a, GoneLink& gone) {
    std::string text = kPtx;
    a(a.d.LinkAddData(gone.link, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "text", 0, nullptr, nullptr));
  });
  ask.Risky("stale.link_complete", "crash", [](AtWork& a, GoneLink& gone) {
    std::size_t size = 0;
    a(a.d.LinkComplete(gone.link, kIgnored, &size));
  });
  ask.Risky("stale.link_missing_file", "FILE_NOT_FOUND",
            [](AtWork& a, GoneLink& gone) { a(a.d.LinkAddFile(gone.link, CU_JIT_INPUT_PTX, "/nonexistent", 0, nullptr, nullptr)); });
  ask.Risky("stale.stream_launch", "crash",
            [](AtWork& a, GoneStream& gone) { a(a.d.LaunchKernel(a.function, 1, 1, 1, 1, 1, 1, 0, gone.s, nullptr, nullptr)); });
  ask.Risky("stale.stream_graph", "crash", [](AtWork& a, GoneStream& gone) { a(a.d.GraphLaunch(a.executable, gone.s)); });
  ask.Risky("stale.stream_attributes", "crash", [](AtWork& a, GoneStream& gone) { a(a.d.StreamCopyAttributes(a.stream, gone.s)); });
}

void AskNodes(Questions& ask) {
  const auto with = [&ask](std::string_view name, std::string_view expected, void (*question)(AtWork&, CUgraphNode)) {
    ask.Risky(name, expected, [question](AtWork& a) {
      const CUgraphNode n = a.GraphAddEmptyNode(a.graph);
      a.Prepare(a.d.GraphDestroyNode(n));
      question(a, n);
    });
  };
  with("stale.node_type", "SUCCESS", [](AtWork& a, CUgraphNode n) { a(a.d.GraphNodeGetType(n, kIgnored)); });
  with("stale.node_dependencies", "SUCCESS", [](AtWork& a, CUgraphNode n) {
    std::size_t count = 0;
    a(a.d.GraphNodeGetDependencies(n, nullptr, nullptr, &count));
  });
  with("stale.node_as_a_dependency", "INVALID_VALUE", [](AtWork& a, CUgraphNode n) { a(a.d.GraphAddEmptyNode(kIgnored, a.graph, &n, 1)); });
  ask.Risky("stale.node_of_a_destroyed_graph", "crash", [](AtWork& a) {
    a.Prepare(a.d.GraphDestroy(a.graph));
    a(a.d.GraphDestroyNode(a.node));
  });
}

void AskInvented(Questions& ask) {
  ask.Risky("stale.invented_node_type", "crash", [](AtWork& a) { a(a.d.GraphNodeGetType(Invented<CUgraphNode>(), kIgnored)); });
  ask.Risky("stale.invented_event_wait", "crash", [](AtWork& a) { a(a.d.StreamWaitEvent(a.stream, Invented<CUevent>(), 0)); });
  ask.Risky("stale.invented_array_destroy", "crash", [](AtWork& a) { a(a.d.ArrayDestroy(Invented<CUarray>())); });
  ask.Risky("stale.invented_mipmap_destroy", "crash", [](AtWork& a) { a(a.d.MipmappedArrayDestroy(Invented<CUmipmappedArray>())); });
  ask.Risky("stale.invented_library_unload", "crash", [](AtWork& a) { a(a.d.LibraryUnload(Invented<CUlibrary>())); });
  ask.Risky("stale.invented_link_destroy", "crash", [](AtWork& a) { a(a.d.LinkDestroy(Invented<CUlinkState>())); });
  ask.Risky("stale.invented_reference_destroy", "crash", [](AtWork& a) { a(a.d.TexRefDestroy(Invented<CUtexref>())); });
}

// What the parent made, for a child.
AtWork* parent = nullptr;

void AskForked(Questions& ask) {
  ask.Fresh("forked.event_not_recorded", "SUCCESS x4", [](AtWork& a) {
    parent = &a;
    a.Prepare(a.d.StreamSynchronize(a.stream));
    InChild(a, [](Teller& t) {
      t(t.d.EventQuery(parent->event));
      t(t.d.EventRecord(parent->event, parent->stream));
      t(t.d.EventSynchronize(parent->event));
      t(t.d.EventDestroy(parent->event));
    });
  });
  ask.Fresh("forked.event_destroyed", "SUCCESS crash", [](AtWork& a) {
    parent = &a;
    InChild(a, [](Teller& t) {
      t(t.d.EventDestroy(parent->event));
      t(t.d.StreamDestroy(parent->stream));
    });
  });
}

}  // namespace

void List(Questions& ask) {
  AskEvents(ask);
  AskArrays(ask);
  AskCode(ask);
  AskNodes(ask);
  AskInvented(ask);
  AskForked(ask);
}

}  // namespace cuaudit::contract::stale_questions
