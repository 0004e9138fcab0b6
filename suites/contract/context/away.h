// SPDX-License-Identifier: MIT
// away.h: objects of a context that is not current: then no context is current, or another one.
#pragma once

#include <string>

#include "suites/contract/question.h"

namespace cuaudit::contract {

// Objects of the primary context, which is left then.
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

// The questions with no context and those with another one.
struct Kind {
  Questions& ask;
  bool elsewhere;
  void Both(const std::string& name, const char* none, const char* other, void (*question)(Away&)) const {
    ask.Risky((elsewhere ? "elsewhere." : "none.") + name, elsewhere ? other : none, [=, there = elsewhere](Asker& asker) {
      Away a(asker, there);
      question(a);
    });
  }
  void Allowed(const std::string& name, void (*question)(Away&)) const { Both(name, "SUCCESS", "SUCCESS", question); }
  void None(const std::string& name, const char* expected, void (*question)(Away&)) const {
    if (!elsewhere) Both(name, expected, "", question);
  }
};

}  // namespace cuaudit::contract
