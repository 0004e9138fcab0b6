// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::user_object_questions {
namespace {

// A graph with one node, and a user object whose destructor counts.
struct UserObject {
  explicit UserObject(Asker& asker) : a(asker) {
    died = 0;
    a.Prepare(a.d.GraphCreate(&g, 0));
    a.GraphAddEmptyNode(g);
    a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  }
  void Release() const {
    (void)a.d.UserObjectRelease(u, 1);
    (void)a.d.GraphDestroy(g);
  }
  void Died() const { a.Value(died); }
  // A genuine driver calls destructors from a thread of its own, some time after the last reference went.
  void DiedAtLast() const {
    const volatile int* const seen = &died;
    for (int i = 0; i < 100000 && *seen == 0; ++i) (void)a.d.CtxSynchronize(nullptr);
    Died();
  }

  Asker& a;
  CUgraph g = nullptr;
  CUuserObject u = nullptr;
  static inline int died = 0;
};

}  // namespace

void List(Questions& ask) {
  ask.Plain("user_object.release_destroys", "SUCCESS 1", [](Ready& a, const UserObject& o) {
    a(a.d.UserObjectRelease(o.u, 1));
    o.DiedAtLast();
  });
  ask.Plain("user_object.bad_arguments", "INVALID_VALUE x3", [](Ready& a) {
    int died = 0;
    CUuserObject u = nullptr;
    a(a.d.UserObjectCreate(&u, &died, Bump, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    a(a.d.UserObjectCreate(&u, &died, Bump, 1, 0));
    a(a.d.UserObjectCreate(&u, &died, nullptr, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  });
  ask.Risky("user_object.over_release", "SUCCESS", [](Ready& a, const UserObject& o) { a(a.d.UserObjectRelease(o.u, 2)); });
  ask.Plain("user_object.graph_keeps", "SUCCESS SUCCESS 0 SUCCESS 1", [](Ready& a, const UserObject& o) {
    a(a.d.GraphRetainUserObject(o.g, o.u, 1, 0));
    a(a.d.UserObjectRelease(o.u, 1));
    o.Died();
    a(a.d.GraphDestroy(o.g));
    o.DiedAtLast();
  });
  ask.Plain("user_object.move", "SUCCESS SUCCESS 1", [](Ready& a, const UserObject& o) {
    a(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a(a.d.GraphDestroy(o.g));
    o.DiedAtLast();
  });
  ask.Plain("user_object.graph_release", "SUCCESS 1", [](Ready& a, const UserObject& o) {
    a.Prepare(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a(a.d.GraphReleaseUserObject(o.g, o.u, 1));
    o.DiedAtLast();
    (void)a.d.GraphDestroy(o.g);
  });
  ask.Plain("user_object.clone_keeps", "0 1", [](Ready& a, const UserObject& o) {
    CUgraph h = nullptr;
    a.Prepare(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a.Prepare(a.d.GraphClone(&h, o.g));
    a.Prepare(a.d.GraphDestroy(o.g));
    o.Died();
    a.Prepare(a.d.GraphDestroy(h));
    o.DiedAtLast();
  });
  ask.Plain("user_object.executable_keeps", "0 1", [](Ready& a, const UserObject& o) {
    CUgraphExec x = nullptr;
    a.Prepare(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a.Prepare(a.d.GraphInstantiateWithFlags(&x, o.g, 0));
    a.Prepare(a.d.GraphDestroy(o.g));
    o.Died();
    a.Prepare(a.d.GraphExecDestroy(x));
    o.DiedAtLast();
  });
  ask.Plain("user_object.after_launch", "0 SUCCESS SUCCESS 1", [](Ready& a, const UserObject& o) {
    CUgraphExec x = nullptr;
    a.Prepare(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a.Prepare(a.d.GraphInstantiateWithFlags(&x, o.g, 0));
    a.Prepare(a.d.GraphDestroy(o.g));
    a.Prepare(a.d.GraphLaunch(x, nullptr));
    o.Died();
    a(a.d.GraphExecDestroy(x));
    a(a.d.StreamSynchronize(nullptr));
    o.DiedAtLast();
  });
  ask.Plain("user_object.graph_then_executable", "0 0 1", [](Ready& a, const UserObject& o) {
    CUgraphExec x = nullptr;
    a.Prepare(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a.Prepare(a.d.GraphInstantiateWithFlags(&x, o.g, 0));
    a.Prepare(a.d.GraphExecDestroy(x));
    o.Died();
    a.Prepare(a.d.GraphInstantiateWithFlags(&x, o.g, 0));
    a.Prepare(a.d.GraphDestroy(o.g));
    o.Died();
    a.Prepare(a.d.GraphExecDestroy(x));
    o.DiedAtLast();
  });
  ask.Plain("user_object.zero_counts", "INVALID_VALUE x4", [](Ready& a, const UserObject& o) {
    a(a.d.UserObjectRetain(o.u, 0));
    a(a.d.UserObjectRelease(o.u, 0));
    a(a.d.GraphRetainUserObject(o.g, o.u, 0, 0));
    a(a.d.GraphReleaseUserObject(o.g, o.u, 0));
    o.Release();
  });
  ask.Plain("user_object.bad_retain_flags", "INVALID_VALUE", [](Ready& a, const UserObject& o) {
    a(a.d.GraphRetainUserObject(o.g, o.u, 1, 0x10));
    o.Release();
  });
  ask.Risky("user_object.graph_holds_none", "SUCCESS", [](Ready& a, const UserObject& o) { a(a.d.GraphReleaseUserObject(o.g, o.u, 1)); });
  ask.Risky("user_object.graph_over_release", "SUCCESS SUCCESS", [](Ready& a, const UserObject& o) {
    a(a.d.GraphRetainUserObject(o.g, o.u, 1, 0));
    a(a.d.GraphReleaseUserObject(o.g, o.u, 2));
  });
  ask.Risky("user_object.release_after_death", "SUCCESS SUCCESS", [](Ready& a, const UserObject& o) {
    a(a.d.UserObjectRelease(o.u, 1));
    a(a.d.UserObjectRelease(o.u, 1));
  });
}

}  // namespace cuaudit::contract::user_object_questions
