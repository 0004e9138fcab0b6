// SPDX-License-Identifier: MIT
#include "faults/sim/image/image.h"

#include <cstring>

#include "faults/sim/image/unaligned.h"

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

}  // namespace cuaudit::sim
