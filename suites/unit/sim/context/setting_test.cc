// SPDX-License-Identifier: MIT
#include <cstring>

#include "suites/support/sim_world.h"

namespace cuaudit::sim::setting_test {
namespace {

using driver::Kind;

TEST(Setting, AContextKeepsItsOwnCoredumpWords) {
  Simulated sim;
  bool on = true;
  std::size_t size = sizeof(on);
  EXPECT_OK(sim.d.CoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, &on, &size));
  EXPECT_OK(sim.d.CoredumpGetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, &on, &size));
  EXPECT_FALSE(on);
  EXPECT_OK(sim.d.CoredumpGetAttribute(CU_COREDUMP_LIGHTWEIGHT, &on, &size));
  EXPECT_TRUE(on);
  CUcontext c = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.CoredumpGetAttribute(CU_COREDUMP_LIGHTWEIGHT, &on, &size));
  EXPECT_FALSE(on);
  EXPECT_OK(sim.d.CtxDestroy(c));
}

TEST(Setting, CallbacksAreCountedUntilUnregistered) {
  Simulated sim;
#if CUDA_VERSION >= 12090
  CUlogsCallbackHandle handle = nullptr;
  EXPECT_OK(sim.d.LogsRegisterCallback([](void*, CUlogLevel, char*, std::size_t) {}, nullptr, &handle));
  EXPECT_EQ(sim.Live(Kind::Callback), 1U);
  EXPECT_OK(sim.d.LogsUnregisterCallback(handle));
  EXPECT_EQ(sim.Live(Kind::Callback), 0U);
  EXPECT_EQ(sim.d.LogsUnregisterCallback(handle), CUDA_ERROR_INVALID_VALUE);
#else
  EXPECT_EQ(sim.Live(Kind::Callback), 0U);
#endif
}

TEST(Setting, TextureReferencesDieWithTheirContextAndTheirModule) {
  constexpr const char* kPtx =
      ".version 6.0\n.target sm_60\n.address_size 64\n.global .texref picture;\n.visible .entry k()\n{\n ret;\n}\n";
  Simulated sim;
  CUcontext c = nullptr;
  CUtexref made = nullptr;
  CUtexref declared = nullptr;
  CUtexref again = nullptr;
  CUmodule m = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.TexRefCreate(&made));
  EXPECT_OK(sim.d.ModuleLoadData(&m, kPtx));
  EXPECT_OK(sim.d.ModuleGetTexRef(&declared, m, "picture"));
  EXPECT_OK(sim.d.ModuleGetTexRef(&again, m, "picture"));
  EXPECT_EQ(declared, again);
  EXPECT_EQ(sim.Live(Kind::TextureReference), 1U);  // the module's is no resource of the program
  EXPECT_OK(sim.d.ModuleUnload(m));
  EXPECT_EQ(sim.d.TexRefSetFlags(declared, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_OK(sim.d.ModuleLoadData(&m, kPtx));
  EXPECT_OK(sim.d.ModuleGetTexRef(&declared, m, "picture"));
  EXPECT_OK(sim.d.CtxDestroy(c));
  EXPECT_EQ(sim.Live(Kind::TextureReference), 0U);
  EXPECT_EQ(sim.Live(Kind::Module), 0U);
}

TEST(Setting, AttachedContextsNeedAsManyDetaches) {
  Simulated sim;
  CUcontext c = nullptr;
  CUcontext same = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.CtxAttach(&same, 0));
  EXPECT_OK(sim.d.CtxDetach(c));
  EXPECT_EQ(sim.Live(Kind::Context), 1U);
  EXPECT_OK(sim.d.CtxDetach(c));
  EXPECT_EQ(sim.Live(Kind::Context), 0U);
}

TEST(Setting, OnlyTheCurrentContextIsDetached) {
  Simulated sim;
  CUcontext c = nullptr;
  CUcontext other = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.CtxCreate(&other, nullptr, 0, 0));
  EXPECT_EQ(sim.d.CtxDetach(c), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(sim.Live(Kind::Context), 2U);
  EXPECT_OK(sim.d.CtxDetach(other));
  EXPECT_EQ(sim.Live(Kind::Context), 1U);
}

TEST(Setting, EveryErrorHasANameAndAText) {
  Simulated sim;
  int known = 0;
  for (int code = 0; code < 1000; ++code) {
    const char* name = nullptr;
    const char* text = nullptr;
    const CUresult named = sim.d.GetErrorName(static_cast<CUresult>(code), &name);
    EXPECT_EQ(sim.d.GetErrorString(static_cast<CUresult>(code), &text), named);
    if (named != CUDA_SUCCESS) continue;
    ++known;
    EXPECT_EQ(std::strncmp(name, "CUDA_", 5), 0);
    EXPECT_NE(text[0], '\0');
  }
  EXPECT_EQ(known, 101);
}

}  // namespace
}  // namespace cuaudit::sim::setting_test
