// SPDX-License-Identifier: MIT
#include "faults/sim/image/image.h"

#include <elf.h>

#include <cstring>

namespace cuaudit::sim {
namespace {

constexpr std::uint32_t kFatbinWrapperMagic = 0x466243b1;  // a host-side record that points at the fatbin
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::uint16_t kKindPtx = 1;
constexpr std::uint16_t kKindCubin = 2;
constexpr std::uint64_t kCompressed = 0xf000;  // any of the compression flags
constexpr std::size_t kLongestPtx = std::size_t{1} << 30;

bool IsElf(const unsigned char* data, std::size_t bytes) { return bytes >= 4 && std::memcmp(data, "\177ELF", 4) == 0; }

CUresult ParseText(Arena& arena, const unsigned char* data, std::size_t bytes, Image* image) {
  const std::size_t limit = bytes < kLongestPtx ? bytes : kLongestPtx;
  const std::size_t length = strnlen(reinterpret_cast<const char*>(data), limit);
  return ParsePtx(arena, {reinterpret_cast<const char*>(data), length}, image);
}

// Header: magic 4, version 2, header bytes 2, payload bytes 8. Entry: kind 2, 2, header bytes 4, payload bytes 8, ... flags at 40.
CUresult ParseFatbin(Arena& arena, const unsigned char* data, std::size_t bytes, Image* image) {
  if (bytes < 16) return CUDA_ERROR_INVALID_IMAGE;
  const std::size_t head = Read<std::uint16_t>(data + 6);
  const std::uint64_t payload = Read<std::uint64_t>(data + 8);
  if (head < 16 || head > bytes || payload > bytes - head) return CUDA_ERROR_INVALID_IMAGE;
  const unsigned char* at = data + head;
  std::uint64_t left = payload;
  bool usable = false;
  bool compressed = false;
  while (left >= 64) {
    const std::uint16_t kind = Read<std::uint16_t>(at);
    const std::uint32_t entry_head = Read<std::uint32_t>(at + 4);
    const std::uint64_t size = Read<std::uint64_t>(at + 8);
    const std::uint64_t flags = Read<std::uint64_t>(at + 40);
    if (entry_head < 64 || entry_head > left || size > left - entry_head) return CUDA_ERROR_INVALID_IMAGE;
    const unsigned char* const body = at + entry_head;
    if (kind == kKindPtx || kind == kKindCubin) {
      if ((flags & kCompressed) != 0) {
        compressed = true;
      } else {
        const CUresult result = kind == kKindCubin ? ParseCubin(arena, body, size, image) : ParseText(arena, body, size, image);
        if (result != CUDA_SUCCESS) return result;
      }
      usable = true;
    }
    at = body + size;
    left -= entry_head + size;
  }
  // The entries of a fatbin are one source for several targets: one that is readable tells the names of all.
  image->any_kernel = compressed && image->symbols.empty();
  return usable ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

// A cubin in memory has no length of its own: its section table is its end.
std::size_t ElfBytes(const unsigned char* data) {
  const std::uint64_t sections = Read<std::uint64_t>(data + 40);
  const std::uint64_t programs = Read<std::uint64_t>(data + 32);
  const std::uint64_t sections_end = sections + std::uint64_t{Read<std::uint16_t>(data + 58)} * Read<std::uint16_t>(data + 60);
  const std::uint64_t programs_end = programs + std::uint64_t{Read<std::uint16_t>(data + 54)} * Read<std::uint16_t>(data + 56);
  return static_cast<std::size_t>(sections_end > programs_end ? sections_end : programs_end);
}

CUresult Parse(Arena& arena, const unsigned char* data, std::size_t bytes, Image* image) {
  if (bytes < 4) return CUDA_ERROR_INVALID_IMAGE;
  if (IsElf(data, bytes)) {
    if (bytes < 64) return CUDA_ERROR_INVALID_IMAGE;
    return ParseCubin(arena, data, bytes == ~std::size_t{0} ? ElfBytes(data) : bytes, image);
  }
  const std::uint32_t magic = Read<std::uint32_t>(data);
  if (magic == kFatbinMagic) return ParseFatbin(arena, data, bytes, image);
  if (magic == kFatbinWrapperMagic) {
    if (bytes < 24) return CUDA_ERROR_INVALID_IMAGE;
    const unsigned char* const inner = Read<const unsigned char*>(data + 8);
    return inner == nullptr || Read<std::uint32_t>(inner) != kFatbinMagic ? CUDA_ERROR_INVALID_IMAGE
                                                                          : ParseFatbin(arena, inner, ~std::size_t{0}, image);
  }
  return ParseText(arena, data, bytes, image);
}

}  // namespace

bool IsText(const void* data) noexcept {
  const unsigned char* const bytes = static_cast<const unsigned char*>(data);
  if (bytes[0] == '\0' || IsElf(bytes, 4)) return false;
  const std::uint32_t magic = Read<std::uint32_t>(bytes);
  return magic != kFatbinMagic && magic != kFatbinWrapperMagic;
}

Image* MakeImage(Arena& arena) noexcept { return arena.New<Image>(); }

CUresult ParseImage(Arena& arena, const void* data, std::size_t bytes, Image** out) noexcept {
  Image* const image = MakeImage(arena);
  if (image == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = Parse(arena, static_cast<const unsigned char*>(data), bytes, image);
  if (result != CUDA_SUCCESS) {
    DropImage(arena, image);
    return result;
  }
  *out = image;
  return CUDA_SUCCESS;
}

void DropImage(Arena& arena, Image* image) noexcept {
  if (image == nullptr || --image->references != 0) return;
  for (Symbol* const symbol : image->symbols) {
    arena.Free(const_cast<char*>(symbol->name), std::strlen(symbol->name) + 1);
    symbol->parameters.Clear(arena);
    if (symbol->initial != nullptr) arena.Free(const_cast<unsigned char*>(symbol->initial), symbol->bytes);
    arena.Delete(symbol);
  }
  image->symbols.Clear(arena);
  arena.Delete(image);
}

Symbol* AddSymbol(Arena& arena, Image* image, std::string_view name, bool kernel) noexcept {
  for (Symbol* const symbol : image->symbols) {
    if (symbol->kernel == kernel && name == symbol->name) return symbol;
  }
  Symbol* const symbol = arena.New<Symbol>();
  char* const copy = static_cast<char*>(arena.Allocate(name.size() + 1));
  if (symbol == nullptr || copy == nullptr || !image->symbols.Push(arena, symbol)) return nullptr;
  std::memcpy(copy, name.data(), name.size());
  symbol->name = copy;
  symbol->kernel = kernel;
  return symbol;
}

const Symbol* FindSymbol(Arena& arena, Image* image, const char* name, bool kernel) noexcept {
  for (const Symbol* const symbol : image->symbols) {
    if (symbol->kernel == kernel && std::strcmp(symbol->name, name) == 0) return symbol;
  }
  return kernel && image->any_kernel ? AddSymbol(arena, image, name, true) : nullptr;
}

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
