// SPDX-License-Identifier: MIT
// image.h: what a PTX text, a cubin or a fatbin defines: kernels with their parameters, and global variables.
//
//   Owns      symbols and their names, copied into the arena. Modules and libraries share an image by reference count.
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    INVALID_IMAGE for data that is no image, INVALID_PTX for a text without a version line or with a broken body,
//             NO_BINARY_FOR_GPU for an empty fatbin, OUT_OF_MEMORY when the arena is full. Parsing never reads beyond the sizes that the
//             image states; a PTX text ends at its first zero byte.
//   Source    ELF-64, EM_CUDA 190, .nv.info attributes; the fatbin wrapper as documented by public projects; PTX ISA directives.
//   Deviates  globals that a PTX text initialises begin as zeros. If all entries of a fatbin are compressed, its kernels are unknown, and
//             the image answers to every kernel name.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "faults/sim/base/arena.h"

namespace cuaudit::sim {

struct Parameter {
  std::uint32_t offset;
  std::uint32_t size;
};

struct Symbol {
  const char* name = nullptr;
  bool kernel = false;
  bool managed = false;
  bool parameters_known = false;
  bool texture = false;  // a texture reference; like a surface reference, it has no bytes
  bool surface = false;
  std::uint64_t bytes = 0;                 // size of a global
  const unsigned char* initial = nullptr;  // `bytes` initial bytes of a global; null: zeros
  std::uint32_t shared_bytes = 0;
  std::uint32_t max_threads = 1024;
  std::uint32_t required_block[3] = {};  // 0: any size
  Vector<Parameter> parameters;
};

struct Image {
  std::uint32_t references = 1;
  bool any_kernel = false;
  CUresult fault = CUDA_SUCCESS;  // error of a PTX text that a library accepted and that cannot be compiled
  Vector<Symbol*> symbols;
};

// `bytes` is the size of the image; ~0 if only the image itself tells it.
CUresult ParseImage(Arena& arena, const void* data, std::size_t bytes, Image** image) noexcept;
CUresult ParsePtx(Arena& arena, std::string_view text, Image* image) noexcept;
CUresult ParseCubin(Arena& arena, const unsigned char* data, std::size_t bytes, Image* image) noexcept;
// True for data that is neither a cubin nor a fatbin, so PTX or nothing.
bool IsText(const void* data) noexcept;
Image* MakeImage(Arena& arena) noexcept;
void DropImage(Arena& arena, Image* image) noexcept;
Symbol* AddSymbol(Arena& arena, Image* image, std::string_view name, bool kernel) noexcept;
const Symbol* FindSymbol(Arena& arena, Image* image, const char* name, bool kernel) noexcept;

// Reads one value at any byte of an image, whose fields need not be aligned.

template <typename T>
[[nodiscard]] T Read(const unsigned char* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace cuaudit::sim
