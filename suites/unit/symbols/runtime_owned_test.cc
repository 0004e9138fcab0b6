// SPDX-License-Identifier: MIT
#include "harness/symbols/runtime_owned.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace cuaudit::harness::runtime_owned_test {
namespace {

using driver::Kind;

report::Frame In(std::string module, std::string function) {
  report::Frame frame;
  frame.module = std::move(module);
  frame.function = std::move(function);
  return frame;
}

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
}  // namespace cuaudit::harness::runtime_owned_test
