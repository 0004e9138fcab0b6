// SPDX-License-Identifier: MIT
// module.h: modules, libraries, functions, kernels and link states.
//
//   Owns      a module owns its functions and globals; a library owns its kernels and, for each context, the module they run in.
//   Threads   the caller holds the world's lock.
//   Errors    those of image.h for a bad image.
//   Source    CUDA Driver API 13.0, Module Management, Library Management.
#pragma once

#include "faults/sim/image/image.h"
#include "faults/sim/state/call.h"

namespace cuaudit::sim {

struct Kernel;
struct Module;
struct Library;

// The settings that cuFuncSetAttribute and cuKernelSetAttribute change.
struct FunctionSettings {
  int dynamic_shared = -1;  // the default that every function may use
  int carveout = -1;
  bool non_portable_cluster = false;
  int cluster_policy = 0;
  int cluster[3] = {};  // required cluster size; 0: none
};

struct Function : Object, FunctionSettings {
  static constexpr Tag kTag = Tag::Function;
  Module* module = nullptr;
  const Symbol* symbol = nullptr;
  int block[3] = {1, 1, 1};      // cuFuncSetBlockShape, for launches before CUDA 4.0
  unsigned launch_shared = 0;    // cuFuncSetSharedSize, likewise
  unsigned parameter_bytes = 0;  // cuParamSetSize
  char* parameters = nullptr;    // set by cuParamSeti, cuParamSetf and cuParamSetv
  bool loaded = false;           // the program got or launched it; enumerating functions does not load them
};

inline constexpr unsigned kLegacyParameterBytes = 4096;
inline constexpr unsigned kRegisters = 4;  // registers per thread reported for every kernel, because images are not compiled here
// The most dynamic shared memory that a block of the function may have.
std::size_t DynamicSharedLimit(const Profile& profile, const Symbol* symbol, const FunctionSettings& settings) noexcept;

struct Global {
  const Symbol* symbol;
  Range* range;
};

struct Module : Object {
  static constexpr Tag kTag = Tag::Module;
  Image* image = nullptr;
  Library* library = nullptr;
  Vector<Function*> functions;  // made at the first request
  Vector<Global> globals;
  Vector<TextureReference*> textures;  // made at the first request
  Vector<SurfaceReference*> surfaces;
};

struct Kernel : Object {
  static constexpr Tag kTag = Tag::Kernel;
  Library* library = nullptr;
  const Symbol* symbol = nullptr;
  FunctionSettings settings[kMaxDevices];  // for each device, the settings that a new function of the kernel starts with
};

struct Library : Object {
  static constexpr Tag kTag = Tag::Library;
  Image* image = nullptr;
  Vector<Kernel*> kernels;
  Vector<Module*> modules;  // one for each context that used the library
};

struct LinkState : Object {
  static constexpr Tag kTag = Tag::LinkState;
  Image* image = nullptr;
  bool complete = false;
  char* output = nullptr;
  std::size_t output_bytes = 0;
};

Module* MakeModule(World& world, Context* context, Image* image, bool counted) noexcept;
void FreeModule(World& world, Module* module) noexcept;
void FreeLibrary(World& world, Library* library) noexcept;
void FreeLinkState(World& world, LinkState* state) noexcept;
Function* FunctionOf(World& world, Module* module, const Symbol* symbol) noexcept;
Module* ModuleOf(World& world, Library* library, Context* context) noexcept;
CUresult ReadImage(World& world, const char* path, Image** image) noexcept;
Function* FindFunction(Call& call, CUfunction handle, CUresult* result) noexcept;
// Finds a function, or the function in the current context for a CUkernel cast to CUfunction: launches and occupancy calls accept both.
Function* FindLaunched(Call& call, CUfunction handle, CUresult* result) noexcept;

}  // namespace cuaudit::sim
