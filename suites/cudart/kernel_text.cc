// SPDX-License-Identifier: MIT
#include <vector_types.h>

#include <cstdint>
#include <cstring>

#include "suites/cudart/question.h"

extern "C" {
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name, int thread_limit, uint3* tid, uint3* bid,
                            dim3* block, dim3* grid, int* warp_size);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int external, std::size_t bytes, int constant,
                       int global);

// Distinct on purpose: identical functions may be folded into one address.
namespace {
int called = 0;
}
void CuauditPlain() { called = 1; }
void CuauditBounded() { called = 2; }
void CuauditFill() { called = 3; }
void CuauditMissing() { called = 4; }
void CuauditNever() { called = 5; }
char cuaudit_table[64];
char cuaudit_constants[16];
char cuaudit_never[4];
}

namespace cuaudit::cudart {
namespace {

// The container that fatbinary writes around one uncompressed PTX text.
struct Binary {
  std::uint32_t magic = 0xba55ed50;
  std::uint16_t version = 1;
  std::uint16_t head = 16;
  std::uint64_t payload = 80 + kTextBytes;
  std::uint16_t kind = 1;
  std::uint16_t entry_version = 0x101;
  std::uint32_t entry_head = 80;
  std::uint64_t entry_payload = kTextBytes;
  std::uint32_t reserved = 0;
  std::uint32_t options_at = 64;
  std::uint16_t minor = 0;
  std::uint16_t major = 8;
  std::uint32_t architecture = 90;
  std::uint64_t reserved2 = 0;
  std::uint64_t flags = 0x11;
  std::uint64_t reserved3[2] = {};
  std::uint64_t options_text_at = 72;
  std::uint64_t options_text = 0;
  static constexpr std::size_t kTextBytes = (sizeof(kKernels) + 7) / 8 * 8;
  char text[kTextBytes] = {};
};
static_assert(sizeof(Binary) == 16 + 80 + Binary::kTextBytes);

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  void* filename;
};

Binary binary;
Wrapper wrapper{0x466243b1, 1, &binary, nullptr};

void RegisterKernel(void** handle, void (*host)(), const char* name) {
  __cudaRegisterFunction(handle, reinterpret_cast<const char*>(host), const_cast<char*>(name), name, -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
}

}  // namespace

void RegisterKernels() {
  std::memcpy(binary.text, kKernels, sizeof(kKernels));
  void** const handle = __cudaRegisterFatBinary(&wrapper);
  RegisterKernel(handle, CuauditPlain, "plain");
  RegisterKernel(handle, CuauditBounded, "bounded");
  RegisterKernel(handle, CuauditFill, "fill");
  RegisterKernel(handle, CuauditMissing, "missing");
  __cudaRegisterVar(handle, cuaudit_table, const_cast<char*>("table"), "table", 0, sizeof(cuaudit_table), 0, 0);
  __cudaRegisterVar(handle, cuaudit_constants, const_cast<char*>("constants"), "constants", 0, sizeof(cuaudit_constants), 1, 0);
  __cudaRegisterFatBinaryEnd(handle);
}

}  // namespace cuaudit::cudart
