// SPDX-License-Identifier: MIT
// module.h: modules, libraries, functions, kernels and link states.
//
//   Owns      a module its functions and globals; a library its kernels and, per context, the module they run in.
//   Threads   the world's lock is held by every caller.
//   Errors    see image.h for what a bad image answers.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, Module Management, Library Management.
#pragma once

#include "faults/sim/call.h"
#include "faults/sim/image.h"

namespace cuaudit::sim {

struct Kernel;
struct Module;
struct Library;

// What cuFuncSetAttribute and cuKernelSetAttribute change.
struct FunctionSettings {
  int dynamic_shared = 0;  // 0: what every function may have
  int carveout = -1;
  bool non_portable_cluster = false;
  int cluster_policy = 0;
  int cluster[3] = {};  // required, 0: none
};

struct Function : Object, FunctionSettings {
  static constexpr Tag kTag = Tag::Function;
  Module* module = nullptr;
  const Symbol* symbol = nullptr;
  int block[3] = {1, 1, 1};      // cuFuncSetBlockShape, for launches before CUDA 4.0
  unsigned launch_shared = 0;    // cuFuncSetSharedSize, the same
  unsigned parameter_bytes = 0;  // cuParamSetSize
  char* parameters = nullptr;    // cuParamSeti and its kin
  bool loaded = false;           // named or launched: an enumeration alone loads nothing
};

inline constexpr unsigned kLegacyParameterBytes = 4096;
inline constexpr unsigned kRegisters = 4;  // of a thread of a kernel that does nothing: images are not compiled here
// Dynamic shared memory that a block of the function may have.
std::size_t DynamicSharedLimit(const Profile& profile, const Symbol* symbol, const FunctionSettings& settings) noexcept;

struct Global {
  const Symbol* symbol;
  Range* range;
};

struct Module : Object {
  static constexpr Tag kTag = Tag::Module;
  Image* image = nullptr;
  Library* library = nullptr;
  Vector<Function*> functions;  // made when first asked for
  Vector<Global> globals;
  Vector<TextureReference*> textures;  // made when first asked for
  Vector<SurfaceReference*> surfaces;
};

struct Kernel : Object {
  static constexpr Tag kTag = Tag::Kernel;
  Library* library = nullptr;
  const Symbol* symbol = nullptr;
  FunctionSettings settings[kMaxDevices];  // its functions begin with those of their device
};

struct Library : Object {
  static constexpr Tag kTag = Tag::Library;
  Image* image = nullptr;
  Vector<Kernel*> kernels;
  Vector<Module*> modules;  // one per context that asked
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
// Or that of a CUkernel cast to one, in the current context: launches and occupancy take both.
Function* FindLaunched(Call& call, CUfunction handle, CUresult* result) noexcept;

}  // namespace cuaudit::sim
