// SPDX-License-Identifier: MIT
// Which frames of a stack are the program's, and which objects its runtime's.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "harness/symbols/symbolizer.h"

namespace cuaudit::harness::trim_test {
namespace {

report::Frame In(std::string module, std::string function) { return {.module = std::move(module), .function = std::move(function)}; }

std::vector<std::string> Functions(const std::vector<report::Frame>& frames) {
  std::vector<std::string> names;
  for (const report::Frame& frame : frames) names.push_back(frame.function);
  return names;
}

TEST(Trim, LeavesOutOwnFramesInsideAndStartCodeOutside) {
  const auto kept = Trim({In("libcuda.so.1", "cuMemAlloc_v2"), In("libcuaudit_host.so", "malloc"), In("prog", "work"), In("prog", "main"),
                          In("libc.so.6", ""), In("libc.so.6", "__libc_start_main"), In("prog", "_start")});
  EXPECT_EQ(Functions(kept), (std::vector<std::string>{"work", "main"}));
}

TEST(Trim, LeavesOutTheRuntimeThatMadeTheCall) {
  const auto kept = Trim({In("libcudart.so.13", ""), In("libcudart.so.13", "cudaMalloc"), In("prog", "work"),
                          In("libcudart.so.13", "callback"), In("prog", "main")});
  EXPECT_EQ(Functions(kept), (std::vector<std::string>{"work", "callback", "main"}));
  const std::string wheel = "libcudart-1a2b3c4d.so.13.0.96";
  EXPECT_EQ(Functions(Trim({In(wheel, ""), In(wheel, "cudaMalloc"), In("prog", "work")})), (std::vector<std::string>{"work"}));
}

TEST(Trim, LeavesOutOurRuntimeLinkedStatically) {
  report::Frame forward = In("prog", "Call");
  forward.file = "../../faults/driver/genuine_driver.cc";
  report::Frame exported = In("prog", "cudaMalloc");
  const report::Frame inner = In("prog", "cuaudit::cudart::Malloc(cuaudit::driver::DriverRef, void**, unsigned long)");
  const report::Frame user = In("prog", "cudaMallocOrDie(unsigned long)");
  EXPECT_EQ(Functions(Trim({forward, inner, exported, user, In("prog", "main")})),
            (std::vector<std::string>{"cudaMallocOrDie(unsigned long)", "main"}));
  exported.file = "generated/cudart_exports_13.inc";
  EXPECT_EQ(Functions(Trim({forward, exported, user})), (std::vector<std::string>{"cudaMallocOrDie(unsigned long)"}));
  // A name alone says nothing: a program may have functions that begin so.
  EXPECT_EQ(Functions(Trim({In("libcuda.so.1", "cuMemAlloc_v2"), In("prog", "cudaThing"), In("prog", "main")})),
            (std::vector<std::string>{"cudaThing", "main"}));
  EXPECT_EQ(Functions(Trim({forward, inner, In("prog", "cudaMalloc"), In("prog", "cudaThing"), In("prog", "main")})),
            (std::vector<std::string>{"cudaThing", "main"}));
}

TEST(Trim, WhatOurRuntimeDoesByItselfIsOneFrame) {
  const auto kept = Trim({In("libcuda.so.1", "cuDevicePrimaryCtxRelease_v2"), In("libcudart.so.13", "cuaudit::cudart::ReleaseDevices"),
                          In("libcudart.so.13", "OnUnload"), In("ld-linux-x86-64.so.2", "_dl_fini"), In("libc.so.6", "exit")});
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].module, "libcudart.so.13");
  EXPECT_EQ(kept[0].function, "cuaudit's CUDA runtime");
}

TEST(Trim, KeepsTheSameModulesInTheMiddle) {
  const auto kept = Trim({In("prog", "compare"), In("libc.so.6", "qsort"), In("libcuda.so.1", "callback"), In("prog", "main")});
  EXPECT_EQ(Functions(kept), (std::vector<std::string>{"compare", "qsort", "callback", "main"}));
}

TEST(Trim, LeavesOutTheProbesThatLoadALibrary) {
  const auto kept = Trim({In("libcuda.so.1", "cuInit"), In("plugin.so", "on_load"), In("ld-linux-x86-64.so.2", "_dl_init"),
                          In("libcuaudit_host_basic.so", "cuaudit::faults::Open"), In("libcuaudit_host_basic.so", "dlopen"),
                          In("prog", "load"), In("prog", "main")});
  EXPECT_EQ(Functions(kept), (std::vector<std::string>{"on_load", "_dl_init", "load", "main"}));
}

TEST(Trim, AThreadEndsAtItsStartRoutine) {
  const auto kept = Trim({In("prog", "worker"), In("libc.so.6", "start_thread"), In("libc.so.6", "clone3")});
  EXPECT_EQ(Functions(kept), (std::vector<std::string>{"worker"}));
}

// As -O0 and as -O3 leave it: with and without a name space, and without the frame of the call when that became a jump.
TEST(Trim, LeavesOutWhatCallsAStepOfALifecycle) {
  report::Frame gate = In("prog", "Run<cuaudit::driver::CallId::StreamCreate>");
  gate.file = "/src/faults/shim/gate.h";
  report::Frame invoker = In("prog", "_M_invoke");
  invoker.file = "/usr/include/c++/12/bits/std_function.h";
  report::Frame inlined = In("prog", "operator()");
  inlined.file = "/usr/include/cuaudit/lifecycle.h";
  const report::Frame called = In("prog", "cuaudit::StepResult cuaudit::detail::Call<Pool>(Pool&, cuaudit::Cycle&)");
  const report::Frame runner = In("prog", "void cuaudit::harness::(anonymous namespace)::StepRunner::RunStep<int>(int const&)");
  const report::Frame function = In("prog", "std::function<cuaudit::StepResult (void*)>::operator()(void*) const");
  const report::Frame step = In("prog", "Pool::Init(cuaudit::DriverRef)");
  const std::vector<report::Frame> stacks[] = {{gate, step, inlined, called, invoker, function, runner, In("prog", "main")},
                                               {gate, step, called, runner, In("prog", "main")},
                                               {gate, step, invoker, function},
                                               {gate, step, invoker, runner}};
  for (const std::vector<report::Frame>& stack : stacks) EXPECT_EQ(Functions(Trim(stack)), (std::vector<std::string>{step.function}));
  EXPECT_EQ(Functions(Trim({gate, called, runner, In("prog", "main")})), (std::vector<std::string>{"Pool"})) << "the step jumped";
}

TEST(Trim, LeavesOutWhatLiesBetweenAFunctionAndItsTarget) {
  const auto kept =
      Trim({In("libcuda.so.1", "cuMemAlloc_v2"), In("prog", "make()::{lambda()#1}::operator()() const"),
            In("prog", "void std::__invoke_impl<void, make()::{lambda()#1}&>(std::__invoke_other, make()::{lambda()#1}&)"),
            In("prog", "std::_Function_handler<void (), make()::{lambda()#1}>::_M_invoke(std::_Any_data const&)"),
            In("prog", "std::function<void ()>::operator()() const"), In("prog", "apply(std::function<void ()>)"), In("prog", "main")});
  EXPECT_EQ(Functions(kept),
            (std::vector<std::string>{"make()::{lambda()#1}::operator()() const", "apply(std::function<void ()>)", "main"}));
}

// Without debug information the target that was inlined has no frame but that of what calls it.
TEST(Trim, AnInlinedTargetIsNamedInPlaceOfWhatCallsIt) {
  const report::Frame lambda =
      In("prog", "std::_Function_handler<void (int, char), Losses()::{lambda(int, char)#5}>::_M_invoke(std::_Any_data const&)");
  EXPECT_EQ(Functions(Trim({In("prog", "NewMutex(bool)"), lambda, In("prog", "main")})),
            (std::vector<std::string>{"NewMutex(bool)", "Losses()::{lambda(int, char)#5}", "main"}));
  const report::Frame member =
      In("prog",
         "cuaudit::StepResult cuaudit::detail::Call<cuaudit::detail::CallMember<Pool, int (Pool::*)(int)>(Pool&, int)"
         "::{lambda(int)#1} const>(Pool&)");
  const report::Frame runner = In("prog", "cuaudit::harness::(anonymous namespace)::StepRunner::RunCycle()");
  EXPECT_EQ(Functions(Trim({member, runner})), (std::vector<std::string>{"Pool"}));
  EXPECT_EQ(Functions(Trim({In("prog", "Pool::Init(int)"), member, runner})), (std::vector<std::string>{"Pool::Init(int)"}));
  const report::Frame called = In("prog", "cuaudit::StepResult cuaudit::detail::Call<Make()::{lambda()#1}>(Make()::{lambda()#1}&)");
  EXPECT_EQ(Functions(Trim({In("prog", "helper()"), called, runner})), (std::vector<std::string>{"helper()", "Make()::{lambda()#1}"}));
}

TEST(Trim, LeavesOutTheEntryOfAProgramWithoutSymbols) {
  const auto kept = Trim({In("libcuda.so.1", "cuMemAlloc_v2"), In("prog", ""), In("prog", ""), In("libc.so.6", "__libc_start_call_main"),
                          In("libc.so.6", "__libc_start_main_impl"), In("prog", "")});
  EXPECT_EQ(kept.size(), 2U);
  EXPECT_EQ(Trim({In("prog", "compare"), In("libc.so.6", "qsort"), In("prog", "")}).size(), 3U) << "its entry may be beyond what was taken";
}

TEST(Trim, WhatTheDriverCalledGoesWithIt) {
  const auto kept = Trim({In("libc.so.6", "memcpy"), In("libcuda.so.1", "cuMemcpyHtoD_v2"), In("prog", "work"), In("prog", "main")});
  EXPECT_EQ(Functions(kept), (std::vector<std::string>{"work", "main"}));
}

TEST(WithoutRuntime, LeavesOutWhereAProgramMerelyStops) {
  const auto kept = WithoutRuntime({In("libc.so.6", "raise"), In("libc.so.6", "abort"), In("libstdc++.so.6", "std::terminate()"),
                                    In("prog", "work"), In("libc.so.6", "qsort"), In("prog", "main")});
  EXPECT_EQ(Functions(kept), (std::vector<std::string>{"work", "qsort", "main"}));
  EXPECT_EQ(WithoutRuntime({In("libc.so.6", "pause")}).size(), 1U);
}

TEST(Trim, AStackOfNothingElseStaysWhole) {
  const auto kept = Trim({In("libcuda.so.1", "cuInit"), In("libc.so.6", "start_thread")});
  EXPECT_EQ(Functions(kept), (std::vector<std::string>{"cuInit", "start_thread"}));
  EXPECT_TRUE(Trim({}).empty());
}

using driver::Kind;

const report::Frame kGate = In("libcuda.so.1", "cuaudit::faults::Gate::Run");

TEST(RuntimeOwned, ThePrimaryContextThatARuntimeRetains) {
  EXPECT_TRUE(
      IsOfRuntime(Kind::PrimaryContext, {kGate, In("libcudart.so.13", ""), In("libcudart.so.13", "cudaMalloc"), In("prog", "main")}));
  EXPECT_TRUE(IsOfRuntime(Kind::PrimaryContext, {kGate, In("prog", "__cudart1024"), In("prog", "cudaMalloc"), In("prog", "main")}));
  EXPECT_TRUE(IsOfRuntime(Kind::PrimaryContext,
                          {kGate, In("prog", "cuaudit::driver::Call"), In("prog", "cuaudit::cudart::BindDevice"), In("prog", "main")}));
  EXPECT_TRUE(IsOfRuntime(Kind::PrimaryContext, {kGate, In("libcublas.so.13", ""), In("prog", "main")}));
  EXPECT_TRUE(IsOfRuntime(Kind::PrimaryContext, {kGate, In("libcudart-1a2b3c4d.so.13.0.96", ""), In("prog", "main")}))
      << "of a Python wheel";
  EXPECT_FALSE(IsOfRuntime(Kind::PrimaryContext, {kGate, In("libcudart-mine.so", "start"), In("prog", "main")}));
}

TEST(RuntimeOwned, ThePrimaryContextThatAProgramRetainsIsItsOwn) {
  EXPECT_FALSE(IsOfRuntime(Kind::PrimaryContext, {kGate, In("prog", "start"), In("prog", "main")}));
  // The program, called back by the runtime.
  EXPECT_FALSE(IsOfRuntime(Kind::PrimaryContext, {kGate, In("prog", "callback"), In("libcudart.so.13", ""), In("prog", "main")}));
  EXPECT_FALSE(IsOfRuntime(Kind::PrimaryContext, {}));
  EXPECT_FALSE(IsOfRuntime(Kind::PrimaryContext, {kGate}));
}

TEST(RuntimeOwned, ModulesOfTheProgramsKernels) {
  EXPECT_TRUE(
      IsOfRuntime(Kind::Library, {kGate, In("libcudart.so.13", ""), In("libcudart.so.13", "cudaLaunchKernel"), In("prog", "main")}));
  EXPECT_TRUE(IsOfRuntime(Kind::Module, {kGate, In("libcudart.so.12", ""), In("prog", "main")}));
  EXPECT_FALSE(IsOfRuntime(Kind::Module, {kGate, In("prog", "load"), In("prog", "main")}));
}

TEST(RuntimeOwned, ALibraryThatTheProgramLoadsThroughTheRuntimeIsItsOwn) {
  EXPECT_FALSE(
      IsOfRuntime(Kind::Library, {kGate, In("libcudart.so.13", ""), In("libcudart.so.13", "cudaLibraryLoadData"), In("prog", "main")}));
  EXPECT_FALSE(IsOfRuntime(Kind::Library, {kGate, In("prog", "__cudart7"), In("prog", "cudaLibraryLoadFromFile"), In("prog", "main")}));
}

TEST(RuntimeOwned, WhatAProgramGetsFromTheRuntimeIsItsOwn) {
  for (const Kind kind : {Kind::DeviceMemory, Kind::Stream, Kind::Event, Kind::Graph}) {
    EXPECT_FALSE(IsOfRuntime(kind, {kGate, In("libcudart.so.13", ""), In("prog", "main")})) << driver::Name(kind);
  }
}

}  // namespace
}  // namespace cuaudit::harness::trim_test
