// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/kernel/module.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/pool.h"

namespace cuaudit::sim {

Module* MakeModule(World& world, Context* context, Image* image, bool counted) noexcept {
  Module* const module = world.Make<Module>(context, counted);
  if (module == nullptr) return nullptr;
  module->image = image;
  ++image->references;
  for (const Symbol* const symbol : image->symbols) {
    if (symbol->kernel || symbol->bytes == 0) continue;
    Range* const range =
        symbol->managed ? TakeHost(world, context, symbol->bytes, Kind::None) : TakeDevice(world, context, symbol->bytes, Kind::None);
    if (range == nullptr || !module->globals.Push(world.arena, {symbol, range})) {
      if (range != nullptr) GiveBack(world, range);
      FreeModule(world, module);
      return nullptr;
    }
    range->managed_global = symbol->managed;
    std::memset(range->bytes, 0, range->size);
    if (symbol->initial != nullptr) std::memcpy(range->bytes, symbol->initial, symbol->bytes);
  }
  return module;
}

void FreeModule(World& world, Module* module) noexcept {
  for (Function* const function : module->functions) {
    if (function->parameters != nullptr) world.arena.Free(function->parameters, kLegacyParameterBytes);
    world.Destroy(function);
  }
  for (const Global& global : module->globals) FinishFree(world, global.range->base, 0);
  for (TextureReference* const reference : module->textures) world.Destroy(reference);
  for (SurfaceReference* const reference : module->surfaces) world.Destroy(reference);
  module->textures.Clear(world.arena);
  module->surfaces.Clear(world.arena);
  module->functions.Clear(world.arena);
  module->globals.Clear(world.arena);
  if (module->library != nullptr) module->library->modules.EraseValue(module);
  DropImage(world.arena, module->image);
  world.Destroy(module);
}

void FreeLibrary(World& world, Library* library) noexcept {
  while (!library->modules.empty()) FreeModule(world, library->modules[0]);
  for (Kernel* const kernel : library->kernels) world.Destroy(kernel);
  library->kernels.Clear(world.arena);
  library->modules.Clear(world.arena);
  DropImage(world.arena, library->image);
  world.Destroy(library);
}

void FreeLinkState(World& world, LinkState* state) noexcept {
  DropImage(world.arena, state->image);
  if (state->output != nullptr) world.arena.Free(state->output, state->output_bytes);
  world.Destroy(state);
}

Function* FunctionOf(World& world, Module* module, const Symbol* symbol) noexcept {
  for (Function* const function : module->functions) {
    if (function->symbol == symbol) return function;
  }
  Function* const function = world.Make<Function>(nullptr, false);
  if (function == nullptr) return nullptr;
  function->module = module;
  function->symbol = symbol;
  if (module->library != nullptr) {
    for (const Kernel* const kernel : module->library->kernels) {
      if (kernel->symbol == symbol) static_cast<FunctionSettings&>(*function) = kernel->settings[module->owner->device];
    }
  }
  if (!module->functions.Push(world.arena, function)) {
    world.Destroy(function);
    return nullptr;
  }
  return function;
}

Module* ModuleOf(World& world, Library* library, Context* context) noexcept {
  for (Module* const module : library->modules) {
    if (module->owner == context) return module;
  }
  Module* const module = MakeModule(world, context, library->image, false);
  if (module == nullptr) return nullptr;
  module->library = library;
  if (!library->modules.Push(world.arena, module)) {
    FreeModule(world, module);
    return nullptr;
  }
  return module;
}

std::size_t DynamicSharedLimit(const Profile& profile, const Symbol* symbol, const FunctionSettings& settings) noexcept {
  if (settings.dynamic_shared >= 0) return static_cast<std::size_t>(settings.dynamic_shared);
  const std::size_t all = static_cast<std::size_t>(profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  return all > symbol->shared_bytes ? all - symbol->shared_bytes : 0;
}

Function* FindFunction(Call& call, CUfunction handle, CUresult* result) noexcept {
  Function* const function = call.world.Find<Function>(handle);
  if (function == nullptr) *result = CUDA_ERROR_INVALID_HANDLE;
  return function;
}

Function* FindLaunched(Call& call, CUfunction handle, CUresult* result) noexcept {
  Kernel* const kernel = call.world.Find<Kernel>(handle);
  if (kernel == nullptr) return FindFunction(call, handle, result);
  if (call.context == nullptr) {
    *result = CUDA_ERROR_INVALID_CONTEXT;
    return nullptr;
  }
  Module* const module = ModuleOf(call.world, kernel->library, call.context);
  Function* const function = module == nullptr ? nullptr : FunctionOf(call.world, module, kernel->symbol);
  *result = function == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  return function;
}

CUresult ReadImage(World& world, const char* path, Image** image) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return CUDA_ERROR_FILE_NOT_FOUND;
  struct stat status {};
  CUresult result = CUDA_ERROR_INVALID_IMAGE;
  if (fstat(file, &status) == 0 && status.st_size > 0) {
    const std::size_t bytes = static_cast<std::size_t>(status.st_size);
    void* const data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (data != MAP_FAILED) {
      result = ParseImage(world.arena, data, bytes, image);
      munmap(data, bytes);
    }
  }
  close(file);
  return result;
}

}  // namespace cuaudit::sim
