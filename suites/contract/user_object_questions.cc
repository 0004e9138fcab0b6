// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::user_object_questions {
namespace {

void Bump(void* argument) { ++*static_cast<int*>(argument); }

// A genuine driver calls destructors from a thread of its own, some time after the last reference went.
void Wait(Asker& a, const int* died) {
  const volatile int* const seen = died;
  for (int i = 0; i < 100000 && *seen == 0; ++i) (void)a.d.CtxSynchronize(nullptr);
}

constexpr Question kQuestions[] = {
    {"user_object.release_destroys", "SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a(a.d.UserObjectRelease(u, 1));
       Wait(a, &died);
       a.Value(died);
     }},
    {"user_object.bad_arguments", "INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       int died = 0;
       CUuserObject u = nullptr;
       a(a.d.UserObjectCreate(&u, &died, Bump, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a(a.d.UserObjectCreate(&u, &died, Bump, 1, 0));
       a(a.d.UserObjectCreate(&u, &died, nullptr, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
     }},
    {"user_object.over_release", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a(a.d.UserObjectRelease(u, 2));
     }},
    {"user_object.graph_keeps", "SUCCESS SUCCESS 0 SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a(a.d.GraphRetainUserObject(g, u, 1, 0));
       a(a.d.UserObjectRelease(u, 1));
       a.Value(died);
       a(a.d.GraphDestroy(g));
       Wait(a, &died);
       a.Value(died);
     }},
    {"user_object.move", "SUCCESS SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a(a.d.GraphRetainUserObject(g, u, 1, CU_GRAPH_USER_OBJECT_MOVE));
       a(a.d.GraphDestroy(g));
       Wait(a, &died);
       a.Value(died);
     }},
    {"user_object.graph_release", "SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a.Prepare(a.d.GraphRetainUserObject(g, u, 1, CU_GRAPH_USER_OBJECT_MOVE));
       a(a.d.GraphReleaseUserObject(g, u, 1));
       Wait(a, &died);
       a.Value(died);
       (void)a.d.GraphDestroy(g);
     }},
    {"user_object.clone_keeps", "0 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       CUgraph h = nullptr;
       a.Prepare(a.d.GraphRetainUserObject(g, u, 1, CU_GRAPH_USER_OBJECT_MOVE));
       a.Prepare(a.d.GraphClone(&h, g));
       a.Prepare(a.d.GraphDestroy(g));
       a.Value(died);
       a.Prepare(a.d.GraphDestroy(h));
       Wait(a, &died);
       a.Value(died);
     }},
    {"user_object.executable_keeps", "0 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       CUgraphExec x = nullptr;
       a.Prepare(a.d.GraphRetainUserObject(g, u, 1, CU_GRAPH_USER_OBJECT_MOVE));
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a.Prepare(a.d.GraphDestroy(g));
       a.Value(died);
       a.Prepare(a.d.GraphExecDestroy(x));
       Wait(a, &died);
       a.Value(died);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::user_object_questions

namespace cuaudit::contract {
std::span<const Question> UserObjectQuestions() { return user_object_questions::kQuestions; }
}  // namespace cuaudit::contract
