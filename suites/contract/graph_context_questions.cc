// SPDX-License-Identifier: MIT
// Memory that a graph allocates, and contexts: whose it is after launches in two of them, and what is left when one goes.
#include "suites/contract/graph_furniture.h"

namespace cuaudit::contract::graph_context_questions {
namespace {

// A graph whose memory outlives its launch, so that another launch finds it there; primary's where nothing else is current.
struct Launching {
  explicit Launching(Asker& asker) : a(asker), s(asker) {
    (void)s.Alloc(4096, &p);
    s.Instantiate(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    a.Prepare(a.d.CtxGetCurrent(&primary));
  }
  void Enter(CUcontext* context) {
    if (*context == nullptr) {
      a.Prepare(a.d.CtxCreate(context, nullptr, 0, 0));
    } else {
      a.Prepare(a.d.CtxPushCurrent(*context));
    }
  }
  void Leave() {
    CUcontext popped = nullptr;
    a.Prepare(a.d.CtxPopCurrent(&popped));
  }
  void Launch(CUstream stream = nullptr) {
    a(a.d.GraphLaunch(s.x, stream));
    a(a.d.StreamSynchronize(nullptr));
  }
  // 0: nobody's, 1: the primary context's, 2: the other one's.
  void Owner() {
    CUcontext owner = nullptr;
    a(a.d.PointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    a.Value(owner == nullptr ? 0 : owner == primary ? 1 : 2);
  }
  // Whether it is still there.
  void Ask() {
    unsigned long long id = 0;
    a(a.d.PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
  }

  Asker& a;
  Sketch s;
  CUdeviceptr p = 0;
  CUcontext primary = nullptr;
  CUcontext other = nullptr;
};

constexpr Question kQuestions[] = {
    {"graph_context.launched_elsewhere", "SUCCESS SUCCESS SUCCESS 0 SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Launching l(a);
       l.Enter(&l.other);
       l.Launch();
       l.Owner();
       a(a.d.CtxDestroy(l.other));
       l.Ask();
     }},
    {"graph_context.launched_here_then_elsewhere", "SUCCESS SUCCESS SUCCESS 0 SUCCESS SUCCESS SUCCESS 0 SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Launching l(a);
       l.Launch();
       l.Owner();
       l.Enter(&l.other);
       l.Launch();
       l.Owner();
       a(a.d.CtxDestroy(l.other));
       l.Ask();
     }},
    {"graph_context.launched_elsewhere_then_here", "SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS 0 SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Launching l(a);
       l.Enter(&l.other);
       l.Launch();
       l.Leave();
       l.Launch();
       l.Owner();
       a(a.d.CtxDestroy(l.other));
       l.Ask();
     }},
    {"graph_context.launched_on_a_stream_of_another", "SUCCESS SUCCESS SUCCESS 0 SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Launching l(a);
       CUstream there = nullptr;
       l.Enter(&l.other);
       a.Prepare(a.d.StreamCreate(&there, CU_STREAM_NON_BLOCKING));
       l.Leave();
       a(a.d.GraphLaunch(l.s.x, there));
       a(a.d.StreamSynchronize(there));
       l.Owner();
       a(a.d.CtxDestroy(l.other));
       l.Ask();
     }},
    {"graph_context.instantiated_elsewhere", "SUCCESS SUCCESS SUCCESS 0 SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUcontext primary = nullptr;
       CUcontext other = nullptr;
       a.Prepare(a.d.CtxGetCurrent(&primary));
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       Launching l(a);
       l.primary = primary;
       l.Leave();
       l.Launch();
       l.Owner();
       a(a.d.CtxDestroy(other));
       l.Ask();
       a(a.d.GraphLaunch(l.s.x, nullptr));
       a(a.d.StreamSynchronize(nullptr));
     }},
    // A stream-ordered allocation beside it, on the null stream of the other context.
    {"graph_context.stream_ordered_elsewhere", "SUCCESS SUCCESS SUCCESS 0 SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Launching l(a);
       l.Enter(&l.other);
       a(a.d.MemAllocAsync(&l.p, 4096, nullptr));
       a(a.d.StreamSynchronize(nullptr));
       l.Owner();
       a(a.d.CtxDestroy(l.other));
       l.Ask();
     }},
};

}  // namespace
}  // namespace cuaudit::contract::graph_context_questions

namespace cuaudit::contract {
std::span<const Question> GraphContextQuestions() { return graph_context_questions::kQuestions; }
}  // namespace cuaudit::contract
