// SPDX-License-Identifier: MIT
// foundations.h: traces of programs whose objects stand on others: textures on arrays, graph nodes on modules, levels on mipmapped arrays.
#pragma once

#include <initializer_list>

#include "suites/support/cases/case.h"

namespace cuaudit::testing {

inline constexpr std::uint64_t kArray = 0xa0;
inline constexpr std::uint64_t kTexture = 0x7e000000;
inline constexpr std::uint64_t kModule = 0x30;
inline constexpr std::uint64_t kLibrary = 0x31;
inline constexpr std::uint64_t kFunction = 0xf0;
inline constexpr std::uint64_t kGraph = 0x1;
inline constexpr std::uint64_t kNode = 0x2;
inline constexpr std::uint64_t kExecutable = 0x3;

// What a texture or surface object can be made of, and how that is made and destroyed.
struct TextureGround {
  driver::Kind kind;
  driver::CallId make;
  driver::CallId destroy;
};
inline constexpr TextureGround kTextureGrounds[] = {
    {driver::Kind::Array, driver::CallId::ArrayCreate_v2, driver::CallId::ArrayDestroy},
    {driver::Kind::MipmappedArray, driver::CallId::MipmappedArrayCreate, driver::CallId::MipmappedArrayDestroy},
    {driver::Kind::DeviceMemory, driver::CallId::MemAlloc_v2, driver::CallId::MemFree_v2},
};

inline void View(Trace& t, driver::CallId call, std::uint64_t object, driver::Kind kind, std::uint64_t under) {
  const Step step = t.Call(call).Out(0, object);
  t.NodeContent(step, faults::kStandsOn, static_cast<std::uint64_t>(kind), under);
}

// A launch with its kernel arguments recorded, as the gate does while a texture lives whose memory is gone.
inline Step LaunchWith(Trace& t, std::initializer_list<std::uint64_t> words) {
  const Step step = t.Call(driver::CallId::LaunchKernel).In(0, kFunction);
  Step told = t.NodeContent(step, faults::kLaunchWords, 0);
  int i = 0;
  for (const std::uint64_t word : words) told.In(i++, word);
  return step;
}

// A graph of one kernel node that launches `code`, instantiated.
inline void GraphOf(Trace& t, std::uint64_t code) {
  t.Call(driver::CallId::GraphCreate).Out(0, kGraph);
  const Step step = t.Call(driver::CallId::GraphAddKernelNode_v2).Out(0, kNode).In(1, kGraph);
  t.NodeContent(step, faults::kStandsOn, static_cast<std::uint64_t>(driver::Kind::Module), code);
  t.Call(driver::CallId::GraphInstantiateWithFlags).Out(0, kExecutable).In(1, kGraph);
}

inline void EndGraph(Trace& t) {
  t.Call(driver::CallId::GraphExecDestroy).In(0, kExecutable);
  t.Call(driver::CallId::GraphDestroy).In(0, kGraph);
}

inline void LoadFunction(Trace& t) {
  t.Call(driver::CallId::ModuleLoadData).Out(0, kModule);
  t.Call(driver::CallId::ModuleGetFunction).Out(0, kFunction).In(1, kModule);
}

inline void Unload(Trace& t) { t.Call(driver::CallId::ModuleUnload).In(0, kModule); }

inline constexpr std::uint64_t kMipmapped = 0xb0;
inline constexpr std::uint64_t kLevel = 0xb1;

}  // namespace cuaudit::testing
