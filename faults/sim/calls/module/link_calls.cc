// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include <elf.h>

#include "faults/sim/entry/entry.h"
#include "faults/sim/kernel/module.h"

namespace cuaudit::sim {
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
  LinkState* const state = call.world.Make<LinkState>(call.context);
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
  LinkState* const state = call.world.Find<LinkState>(handle);
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
  LinkState* const state = call.world.Find<LinkState>(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (path == nullptr || state->complete) return CUDA_ERROR_INVALID_VALUE;
  Image* image = nullptr;
  const CUresult result = ReadImage(call.world, path, &image);
  return result == CUDA_SUCCESS ? AddImage(call, state, image) : result;
}

CUresult api::LinkComplete(Call& call, CUlinkState handle, void** out, std::size_t* bytes) {
  LinkState* const state = call.world.Find<LinkState>(handle);
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
  LinkState* const state = call.world.Find<LinkState>(handle);
  if (state == nullptr) return call.world.DiedWithContext(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = Borrow(call, state->owner);
  if (result != CUDA_SUCCESS) return result;
  FreeLinkState(call.world, state);
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
