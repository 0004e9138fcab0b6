// SPDX-License-Identifier: MIT
#include <dwarf.h>
#include <gelf.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "harness/symbols/module_symbols.h"

namespace cuaudit::harness {
namespace {

constexpr int kOnlyEncoding = DW_EH_PE_datarel | DW_EH_PE_sdata4;  // what every linker writes

template <typename T>
T Read(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace

FunctionStarts::FunctionStarts(Elf* elf) {
  std::size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_GNU_EH_FRAME) continue;
    const Elf_Data* const data = elf_getdata_rawchunk(elf, static_cast<std::int64_t>(header.p_offset), header.p_filesz, ELF_T_BYTE);
    // Version, encodings of the pointer to .eh_frame, of the number of rows and of the rows; then the two values.
    constexpr std::size_t kHead = 12;
    if (data == nullptr || data->d_size < kHead) return;
    const auto* const bytes = static_cast<const unsigned char*>(data->d_buf);
    if (bytes[0] != 1 || bytes[2] != DW_EH_PE_udata4 || bytes[3] != kOnlyEncoding) return;
    const std::size_t rows = std::min<std::size_t>(Read<std::uint32_t>(bytes + 8), (data->d_size - kHead) / 8);
    starts_.reserve(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      starts_.push_back(header.p_vaddr + static_cast<std::uint64_t>(std::int64_t{Read<std::int32_t>(bytes + kHead + 8 * row)}));
    }
    std::sort(starts_.begin(), starts_.end());
    return;
  }
}

std::uint64_t FunctionStarts::Before(std::uint64_t address) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), address);
  return after == starts_.begin() ? 0 : *(after - 1);
}

}  // namespace cuaudit::harness
