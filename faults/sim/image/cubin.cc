// SPDX-License-Identifier: MIT
#include <elf.h>

#include <cstring>

#include "faults/sim/image/image.h"
#include "faults/sim/image/unaligned.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr unsigned char kOtherEntry = 0x10;    // STO_CUDA_ENTRY: the function is a kernel
constexpr unsigned char kOtherManaged = 0x04;  // STO_CUDA_MANAGED

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

// What a global holds at first, unless that is zeros.
bool CopyInitial(Arena& arena, const Bytes& file, const Elf64_Ehdr& header, const Elf64_Sym& from, Symbol* to) {
  Elf64_Shdr section;
  if (to->initial != nullptr || !ReadSection(file, header, from.st_shndx, &section) || section.sh_type != SHT_PROGBITS) return true;
  if (from.st_value > section.sh_size || from.st_size > section.sh_size - from.st_value) return true;
  unsigned char* const copy = static_cast<unsigned char*>(arena.Allocate(from.st_size));
  if (copy == nullptr) return false;
  std::memcpy(copy, file.data + section.sh_offset + from.st_value, from.st_size);
  to->initial = copy;
  return true;
}

// Records of .nv.info.KERNEL: format, attribute, then two bytes of value or the size of what follows.
constexpr unsigned char kFormatSized = 4;
constexpr unsigned char kFormatNone = 1;
constexpr unsigned char kMaxThreads = 0x05;
constexpr unsigned char kParameter = 0x17;
constexpr std::uint32_t kMostParameters = 4096;  // a kernel takes no more bytes than 32764

// Ordinal at 4, offset at 6, size in the upper 14 bits of the word at 8.
bool AddParameter(Arena& arena, const unsigned char* record, Symbol* symbol) {
  const std::uint32_t ordinal = Read<std::uint16_t>(record + 4);
  if (ordinal >= kMostParameters) return false;
  while (symbol->parameters.size() <= ordinal) {
    if (!symbol->parameters.Push(arena, Parameter{0, 0})) return false;
  }
  symbol->parameters[ordinal] = {Read<std::uint16_t>(record + 6), Read<std::uint32_t>(record + 8) >> 18};
  return true;
}

bool ReadInfo(Arena& arena, const unsigned char* at, std::uint64_t size, Symbol* symbol) {
  symbol->parameters.Truncate(0);
  while (size >= 4) {
    const unsigned char format = at[0];
    const std::uint64_t value = format == kFormatSized ? Read<std::uint16_t>(at + 2) : 0;
    const std::uint64_t record = format == kFormatNone ? 4 : 4 + value;
    if (record > size) return false;
    if (format == kFormatSized && at[1] == kParameter && value >= 12 && !AddParameter(arena, at + 4, symbol)) return false;
    if (format == kFormatSized && at[1] == kMaxThreads && value >= 12) {
      const std::uint64_t threads = std::uint64_t{Read<std::uint32_t>(at + 4)} * Read<std::uint32_t>(at + 8) * Read<std::uint32_t>(at + 12);
      if (threads != 0 && threads < symbol->max_threads) symbol->max_threads = static_cast<std::uint32_t>(threads);
    }
    at += record;
    size -= record;
  }
  for (const Parameter& parameter : symbol->parameters) {
    if (parameter.size == 0) return false;
  }
  symbol->parameters_known = true;
  return true;
}

// The layouts of the kernels' parameters, each in a section named after its kernel.
CUresult ReadLayouts(Arena& arena, const Bytes& file, const Elf64_Ehdr& header, Image* image) {
  constexpr std::string_view kPrefix = ".nv.info.";
  Elf64_Shdr names;
  if (!ReadSection(file, header, header.e_shstrndx, &names) || names.sh_type != SHT_STRTAB) return CUDA_SUCCESS;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!ReadSection(file, header, i, &section) || section.sh_type == SHT_NOBITS) continue;
    const std::string_view name = Text(file, names, section.sh_name);
    if (name.size() <= kPrefix.size() || std::memcmp(name.data(), kPrefix.data(), kPrefix.size()) != 0) continue;
    const std::string_view kernel(name.data() + kPrefix.size(), name.size() - kPrefix.size());
    for (Symbol* const symbol : image->symbols) {
      if (!symbol->kernel || kernel != symbol->name) continue;
      if (!ReadInfo(arena, file.data + section.sh_offset, section.sh_size, symbol)) symbol->parameters.Truncate(0);
    }
  }
  return CUDA_SUCCESS;
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
      if (!variable) continue;
      added->bytes = symbol.st_size;
      added->managed = (symbol.st_other & kOtherManaged) != 0;
      if (!CopyInitial(arena, file, header, symbol, added)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  return ReadLayouts(arena, file, header, image);
}

}  // namespace cuaudit::sim
