// SPDX-License-Identifier: MIT
// Modules, libraries, and the linker.
#define __CUDA_API_VERSION_INTERNAL
#include <elf.h>

#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/kernel/module.h"
#include "faults/sim/stream/schedule.h"

namespace cuaudit::sim {
namespace {

// Loading waits for the context's work; a host function may have let another thread in, which ended the context.
CUresult MakeModule(Call& call, CUmodule* out, Image* image) {
  const std::uint64_t handle = call.context->handle;
  DrainContext(call, call.context);
  CUresult result = StateAfterWait(call.world, handle);
  if (result == CUDA_SUCCESS) {
    const Module* const module = MakeModule(call.world, call.context, image, true);
    if (module != nullptr) *out = ToHandle<CUmodule>(module);
    if (module == nullptr) result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  DropImage(call.world.arena, image);
  return result;
}

CUresult Load(Call& call, CUmodule* out, const void* data) {
  if (out == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Image* image = nullptr;
  const CUresult result = ParseImage(call.world.arena, data, ~std::size_t{0}, &image);
  return result == CUDA_SUCCESS ? MakeModule(call, out, image) : result;
}

CUresult FindGlobal(Module* module, const char* name, CUdeviceptr* address, std::size_t* bytes) {
  for (const Global& global : module->globals) {
    if (std::strcmp(global.symbol->name, name) != 0) continue;
    if (address != nullptr) *address = global.range->base;
    if (bytes != nullptr) *bytes = global.range->size;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

unsigned CountKernels(const Image* image) {
  unsigned count = 0;
  for (const Symbol* const symbol : image->symbols) count += symbol->kernel ? 1U : 0U;
  return count;
}

}  // namespace

CUresult api::ModuleLoadData(Call& call, CUmodule* out, const void* image) { return Load(call, out, image); }

CUresult api::ModuleLoadDataEx(Call& call, CUmodule* out, const void* image, unsigned int count, CUjit_option* options, void** values) {
  if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return Load(call, out, image);
}

CUresult api::ModuleLoadFatBinary(Call& call, CUmodule* out, const void* image) { return Load(call, out, image); }

CUresult api::ModuleLoad(Call& call, CUmodule* out, const char* path) {
  if (out == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Image* image = nullptr;
  const CUresult result = ReadImage(call.world, path, &image);
  return result == CUDA_SUCCESS ? MakeModule(call, out, image) : result;
}

CUresult api::ModuleUnload(Call& call, CUmodule handle) {
  Module* module = call.world.Find<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (module->library != nullptr) return CUDA_ERROR_NOT_PERMITTED;
  const CUresult result = Borrow(call, module->owner);
  if (result != CUDA_SUCCESS) return result;
  DrainContext(call, module->owner);
  module = call.world.Find<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  FreeModule(call.world, module);
  return CUDA_SUCCESS;
}

CUresult api::ModuleGetFunction(Call& call, CUfunction* out, CUmodule handle, const char* name) {
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* const module = call.world.Find<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name[0] == '\0') return CUDA_ERROR_INVALID_VALUE;
  const Symbol* const symbol = FindSymbol(call.world.arena, module->image, name, true);
  if (symbol == nullptr) return CUDA_ERROR_NOT_FOUND;
  Function* const function = FunctionOf(call.world, module, symbol);
  if (function == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  function->loaded = true;
  *out = ToHandle<CUfunction>(function);
  return CUDA_SUCCESS;
}

CUresult api::ModuleGetFunctionCount(Call& call, unsigned int* count, CUmodule handle) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Module* const module = call.world.Find<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = CountKernels(module->image);
  return CUDA_SUCCESS;
}

CUresult api::ModuleEnumerateFunctions(Call& call, CUfunction* functions, unsigned int capacity, CUmodule handle) {
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* const module = call.world.Find<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  unsigned at = 0;
  for (const Symbol* const symbol : module->image->symbols) {
    if (!symbol->kernel || at == capacity) continue;
    const Function* const function = FunctionOf(call.world, module, symbol);
    if (function == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    functions[at++] = ToHandle<CUfunction>(function);
  }
  return CUDA_SUCCESS;
}

CUresult api::ModuleGetGlobal(Call& call, CUdeviceptr* address, std::size_t* bytes, CUmodule handle, const char* name) {
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Module* const module = call.world.Find<Module>(handle);
  return module == nullptr ? CUDA_ERROR_INVALID_HANDLE : FindGlobal(module, name, address, bytes);
}

CUresult api::ModuleGetLoadingMode(Call&, CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

namespace {

CUresult LoadLibrary(Call& call, CUlibrary* out, Image* image) {
  Library* const library = call.world.Make<Library>(nullptr);
  if (library == nullptr) {
    DropImage(call.world.arena, image);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  library->image = image;
  *out = ToHandle<CUlibrary>(library);
  return CUDA_SUCCESS;
}

Kernel* KernelOf(World& world, Library* library, const Symbol* symbol) {
  for (Kernel* const kernel : library->kernels) {
    if (kernel->symbol == symbol) return kernel;
  }
  Kernel* const kernel = world.Make<Kernel>(nullptr, false);
  if (kernel == nullptr) return nullptr;
  kernel->library = library;
  kernel->symbol = symbol;
  if (library->kernels.Push(world.arena, kernel)) return kernel;
  world.Destroy(kernel);
  return nullptr;
}

}  // namespace

CUresult api::LibraryLoadData(Call& call, CUlibrary* out, const void* code, CUjit_option* jit, void** jit_values, unsigned int jit_count,
                              CUlibraryOption* options, void** values, unsigned int count) {
  if (out == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((jit_count != 0 && (jit == nullptr || jit_values == nullptr)) || (count != 0 && options == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  (void)values;
  Image* image = nullptr;
  CUresult result = ParseImage(call.world.arena, code, ~std::size_t{0}, &image);
  // A PTX text is compiled when something in it is requested.
  if ((result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_INVALID_PTX) && IsText(code)) {
    image = MakeImage(call.world.arena);
    if (image == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    image->fault = result;
    result = CUDA_SUCCESS;
  }
  return result == CUDA_SUCCESS ? LoadLibrary(call, out, image) : result;
}

CUresult api::LibraryLoadFromFile(Call& call, CUlibrary* out, const char* path, CUjit_option*, void**, unsigned int, CUlibraryOption*,
                                  void**, unsigned int) {
  if (out == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Image* image = nullptr;
  const CUresult result = ReadImage(call.world, path, &image);
  return result == CUDA_SUCCESS ? LoadLibrary(call, out, image) : result;
}

CUresult api::LibraryUnload(Call& call, CUlibrary handle) {
  Library* const library = call.Follow<Library>(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  FreeLibrary(call.world, library);
  return CUDA_SUCCESS;
}

CUresult api::LibraryGetKernel(Call& call, CUkernel* out, CUlibrary handle, const char* name) {
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Library* const library = call.Read<Library>(handle);
  if (library == nullptr) return call.world.Destroyed(handle) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
  if (library->image->fault != CUDA_SUCCESS) return library->image->fault;
  const Symbol* const symbol = FindSymbol(call.world.arena, library->image, name, true);
  if (symbol == nullptr) return CUDA_ERROR_NOT_FOUND;
  const Kernel* const kernel = KernelOf(call.world, library, symbol);
  if (kernel == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUkernel>(kernel);
  return CUDA_SUCCESS;
}

CUresult api::LibraryGetKernelCount(Call& call, unsigned int* count, CUlibrary handle) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Library* const library = call.Follow<Library>(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (library->image->fault != CUDA_SUCCESS) return library->image->fault;
  *count = CountKernels(library->image);
  return CUDA_SUCCESS;
}

CUresult api::LibraryEnumerateKernels(Call& call, CUkernel* kernels, unsigned int capacity, CUlibrary handle) {
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Library* const library = call.Follow<Library>(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (library->image->fault != CUDA_SUCCESS) return library->image->fault;
  unsigned at = 0;
  for (const Symbol* const symbol : library->image->symbols) {
    if (!symbol->kernel || at == capacity) continue;
    const Kernel* const kernel = KernelOf(call.world, library, symbol);
    if (kernel == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    kernels[at++] = ToHandle<CUkernel>(kernel);
  }
  return CUDA_SUCCESS;
}

CUresult api::LibraryGetModule(Call& call, CUmodule* out, CUlibrary handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Library* const library = call.Follow<Library>(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (library->image->fault != CUDA_SUCCESS) return library->image->fault;
  const Module* const module = ModuleOf(call.world, library, call.context);
  if (module == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUmodule>(module);
  return CUDA_SUCCESS;
}

CUresult api::LibraryGetGlobal(Call& call, CUdeviceptr* address, std::size_t* bytes, CUlibrary handle, const char* name) {
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Library* const library = call.Follow<Library>(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (library->image->fault != CUDA_SUCCESS) return library->image->fault;
  Module* const module = ModuleOf(call.world, library, call.context);
  return module == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : FindGlobal(module, name, address, bytes);
}

// No image that is read here declares any.
CUresult api::LibraryGetUnifiedFunction(Call& call, void**, CUlibrary handle, const char*) {
  return call.Read<Library>(handle) != nullptr || call.world.Destroyed(handle) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

// A library's managed memory is one for all contexts: that of the module in the first of them. Without one, the current context gets the
// module, or the primary one of the first device.
CUresult api::LibraryGetManaged(Call& call, CUdeviceptr* address, std::size_t* bytes, CUlibrary handle, const char* name) {
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Library* const library = call.Read<Library>(handle);
  if (library == nullptr) return call.world.Destroyed(handle) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
  if (library->image->fault != CUDA_SUCCESS) return library->image->fault;
  Context* home = call.context != nullptr ? call.context : call.world.devices[0].primary;
  if (library->modules.empty() && (home == nullptr || !home->active)) return CUDA_ERROR_NOT_FOUND;
  Module* const module = library->modules.empty() ? ModuleOf(call.world, library, home) : library->modules[0];
  if (module == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  CUdeviceptr found = 0;
  std::size_t size = 0;
  const CUresult result = FindGlobal(module, name, &found, &size);
  if (result != CUDA_SUCCESS) return result;
  const Range* const range = call.world.ranges.Find(found);
  if (range == nullptr || !range->managed_global) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = found;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

namespace {

constexpr Elf64_Half kMachineCuda = 190;

// A cubin with nothing but a symbol table: what linking hands out, and what loading reads back.
bool WriteCubin(Arena& arena, const Image* image, char** out, std::size_t* bytes) {
  std::size_t text = 1;
  for (const Symbol* const symbol : image->symbols) text += std::strlen(symbol->name) + 1;
  const std::size_t table = sizeof(Elf64_Ehdr);
  const std::size_t strings = table + sizeof(Elf64_Sym) * image->symbols.size();
  const std::size_t sections = (strings + text + 7) / 8 * 8;
  *bytes = sections + 3 * sizeof(Elf64_Shdr);
  *out = static_cast<char*>(arena.Allocate(*bytes));
  if (*out == nullptr) return false;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = kMachineCuda;
  header.e_version = EV_CURRENT;
  header.e_shoff = sections;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  std::memcpy(*out, &header, sizeof(header));
  Elf64_Word name = 1;
  for (std::size_t i = 0; i < image->symbols.size(); ++i) {
    const Symbol* const symbol = image->symbols[i];
    Elf64_Sym entry{};
    entry.st_name = name;
    entry.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, symbol->kernel ? STT_FUNC : STT_OBJECT));
    entry.st_shndx = SHN_ABS;
    entry.st_size = symbol->bytes;
    std::memcpy(*out + table + i * sizeof(entry), &entry, sizeof(entry));
    std::memcpy(*out + strings + name, symbol->name, std::strlen(symbol->name) + 1);
    name += static_cast<Elf64_Word>(std::strlen(symbol->name) + 1);
  }
  Elf64_Shdr section[3]{};
  section[1].sh_type = SHT_SYMTAB;
  section[1].sh_offset = table;
  section[1].sh_size = strings - table;
  section[1].sh_link = 2;
  section[1].sh_entsize = sizeof(Elf64_Sym);
  section[2].sh_type = SHT_STRTAB;
  section[2].sh_offset = strings;
  section[2].sh_size = text;
  std::memcpy(*out + sections, section, sizeof(section));
  return true;
}

CUresult AddImage(Call& call, LinkState* state, Image* added) {
  CUresult result = CUDA_SUCCESS;
  for (const Symbol* const symbol : added->symbols) {
    Symbol* const copy = AddSymbol(call.world.arena, state->image, {symbol->name, std::strlen(symbol->name)}, symbol->kernel);
    if (copy == nullptr) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
      break;
    }
    copy->bytes = symbol->bytes;
  }
  DropImage(call.world.arena, added);
  return result;
}

}  // namespace

CUresult api::LinkCreate(Call& call, unsigned int count, CUjit_option* options, void** values, CUlinkState* out) {
  if (out == nullptr || (count != 0 && (options == nullptr || values == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  LinkState* const state = call.world.Make<LinkState>(nullptr);  // outlives.link
  if (state == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  state->image = MakeImage(call.world.arena);
  if (state->image == nullptr) {
    call.world.Destroy(state);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = ToHandle<CUlinkState>(state);
  return CUDA_SUCCESS;
}

CUresult api::LinkAddData(Call& call, CUlinkState handle, CUjitInputType type, void* data, std::size_t bytes, const char*, unsigned int,
                          CUjit_option*, void**) {
  LinkState* const state = call.Follow<LinkState>(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (data == nullptr || bytes == 0 || state->complete) return CUDA_ERROR_INVALID_VALUE;
  if (type < CU_JIT_INPUT_CUBIN || type >= CU_JIT_NUM_INPUT_TYPES) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_JIT_INPUT_NVVM) return CUDA_ERROR_NOT_SUPPORTED;
  Image* image = nullptr;
  const CUresult result = ParseImage(call.world.arena, data, bytes, &image);
  if (result == CUDA_SUCCESS) return AddImage(call, state, image);
  return type == CU_JIT_INPUT_PTX ? CUDA_ERROR_INVALID_PTX : result;
}

CUresult api::LinkAddFile(Call& call, CUlinkState handle, CUjitInputType, const char* path, unsigned int, CUjit_option*, void**) {
  Image* image = nullptr;
  CUresult result = path == nullptr ? CUDA_ERROR_INVALID_VALUE : ReadImage(call.world, path, &image);
  if (result == CUDA_ERROR_FILE_NOT_FOUND && handle != nullptr) return result;  // the file is looked for first
  LinkState* const state = call.Follow<LinkState>(handle);
  if (state == nullptr || state->complete) result = state == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) return AddImage(call, state, image);
  if (image != nullptr) DropImage(call.world.arena, image);
  return result;
}

CUresult api::LinkComplete(Call& call, CUlinkState handle, void** out, std::size_t* bytes) {
  LinkState* const state = call.Follow<LinkState>(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!state->complete && !WriteCubin(call.world.arena, state->image, &state->output, &state->output_bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  state->complete = true;
  *out = state->output;
  if (bytes != nullptr) *bytes = state->output_bytes;
  return CUDA_SUCCESS;
}

CUresult api::LinkDestroy(Call& call, CUlinkState handle) {
  LinkState* const state = call.Follow<LinkState>(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  FreeLinkState(call.world, state);
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
