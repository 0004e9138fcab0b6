// SPDX-License-Identifier: MIT
#include <elf.h>

#include <cstring>

#include "faults/sim/image.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr unsigned char kOtherEntry = 0x10;  // STO_CUDA_ENTRY: the function is a kernel

struct Bytes {
  const unsigned char* data;
  std::uint64_t size;
  bool Has(std::uint64_t at, std::uint64_t count) const { return at <= size && count <= size - at; }
};

bool ReadSection(const Bytes& file, const Elf64_Ehdr& header, std::uint64_t index, Elf64_Shdr* section) {
  const std::uint64_t at = header.e_shoff + index * sizeof(Elf64_Shdr);
  if (index >= header.e_shnum || !file.Has(at, sizeof(*section))) return false;
  std::memcpy(section, file.data + at, sizeof(*section));
  return section->sh_type == SHT_NOBITS || file.Has(section->sh_offset, section->sh_size);
}

std::string_view Text(const Bytes& file, const Elf64_Shdr& strings, std::uint64_t at) {
  if (at >= strings.sh_size) return {};
  const char* const text = reinterpret_cast<const char*>(file.data + strings.sh_offset + at);
  return {text, strnlen(text, strings.sh_size - at)};
}

}  // namespace

CUresult ParseCubin(Arena& arena, const unsigned char* data, std::size_t size, Image* image) noexcept {
  const Bytes file{data, size};
  Elf64_Ehdr header;
  if (!file.Has(0, sizeof(header))) return CUDA_ERROR_INVALID_IMAGE;
  std::memcpy(&header, data, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return CUDA_ERROR_INVALID_IMAGE;
  if (header.e_machine != kMachineCuda) return CUDA_ERROR_INVALID_IMAGE;
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > size) return CUDA_ERROR_INVALID_IMAGE;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table;
    Elf64_Shdr strings;
    if (!ReadSection(file, header, i, &table)) return CUDA_ERROR_INVALID_IMAGE;
    if (table.sh_type != SHT_SYMTAB) continue;
    if (!ReadSection(file, header, table.sh_link, &strings) || strings.sh_type != SHT_STRTAB) return CUDA_ERROR_INVALID_IMAGE;
    for (std::uint64_t at = 0; table.sh_size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, data + table.sh_offset + at, sizeof(symbol));
      const std::string_view name = Text(file, strings, symbol.st_name);
      if (name.empty() || symbol.st_shndx == SHN_UNDEF) continue;
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      const bool kernel = type == STT_FUNC && (ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL || (symbol.st_other & kOtherEntry) != 0);
      const bool variable = type == STT_OBJECT && symbol.st_size != 0;
      if (!kernel && !variable) continue;
      Symbol* const added = AddSymbol(arena, image, name, kernel);
      if (added == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
      if (variable) added->bytes = symbol.st_size;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
