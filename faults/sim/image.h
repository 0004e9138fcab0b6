// SPDX-License-Identifier: MIT
// image.h: what a PTX text, a cubin or a fatbin defines: kernels with their parameters, and global variables.
//
//   Owns      symbols and their names, copied into the arena; a count of modules and libraries that share them.
//   Threads   the world's lock is held by every caller.
//   Units     bytes.
//   Errors    INVALID_IMAGE for what is no image at all, INVALID_PTX for a text without a version line or with a broken body,
//             NO_BINARY_FOR_GPU for a fatbin with nothing in it, OUT_OF_MEMORY when the books are full. Never reads beyond the
//             sizes that the image states; the text of a PTX ends at its first zero byte.
//   Faults    makes no driver calls.
//   Source    ELF-64, EM_CUDA 190, .nv.info attributes; the fatbin wrapper as documented by public projects; PTX ISA directives.
//   Deviates  globals that a PTX text initialises begin as zeros; kernels of a fatbin whose entries are all compressed are unknown: such an
//   image answers every kernel name.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "faults/sim/arena.h"

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
  bool texture = false;  // a texture or surface reference has no bytes
  bool surface = false;
  std::uint64_t bytes = 0;                 // of a global
  const unsigned char* initial = nullptr;  // as many; null: zeros
  std::uint32_t shared_bytes = 0;
  std::uint32_t max_threads = 1024;
  std::uint32_t required_block[3] = {};  // 0: any
  Vector<Parameter> parameters;
};

struct Image {
  std::uint32_t references = 1;
  bool any_kernel = false;
  CUresult fault = CUDA_SUCCESS;  // of a text that a library keeps and nothing can be made of
  Vector<Symbol*> symbols;
};

// `bytes` bounds the image where the caller knows it; ~0 where the driver has to believe the image.
CUresult ParseImage(Arena& arena, const void* data, std::size_t bytes, Image** image) noexcept;
CUresult ParsePtx(Arena& arena, std::string_view text, Image* image) noexcept;
CUresult ParseCubin(Arena& arena, const unsigned char* data, std::size_t bytes, Image* image) noexcept;
// Neither a cubin nor a fatbin, so PTX or nothing.
bool IsText(const void* data) noexcept;
Image* MakeImage(Arena& arena) noexcept;
void DropImage(Arena& arena, Image* image) noexcept;
Symbol* AddSymbol(Arena& arena, Image* image, std::string_view name, bool kernel) noexcept;
const Symbol* FindSymbol(Arena& arena, Image* image, const char* name, bool kernel) noexcept;

}  // namespace cuaudit::sim
