// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/python/loaded_symbols.h"

#include <elf.h>
#include <link.h>
#include <string.h>

namespace cuaudit::python {
namespace {

std::uint32_t GnuHash(const char* name) noexcept {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

}  // namespace

LoadedSymbols::LoadedSymbols(const dl_phdr_info& object) noexcept : base_(object.dlpi_addr) {
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the object
    if (object.dlpi_phdr[i].p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn)*>(base_ + object.dlpi_phdr[i].p_vaddr);
  }
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    // glibc relocates these entries in place, but not where the section is read-only, as in the vDSO.
    const std::uintptr_t address = entry->d_un.d_ptr < base_ ? base_ + entry->d_un.d_ptr : entry->d_un.d_ptr;
    const void* const table = reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr)
    if (entry->d_tag == DT_GNU_HASH) hash_ = static_cast<const std::uint32_t*>(table);
    if (entry->d_tag == DT_SYMTAB) symbols_ = table;
    if (entry->d_tag == DT_STRTAB) names_ = static_cast<const char*>(table);
  }
}

std::uintptr_t LoadedSymbols::Find(const char* name) const noexcept {
  if (hash_ == nullptr || symbols_ == nullptr || names_ == nullptr) return 0;
  const std::uint32_t buckets = hash_[0];
  const std::uint32_t first_hashed = hash_[1];
  const std::uint32_t words = hash_[2];
  const std::uint32_t shift = hash_[3];
  if (buckets == 0 || words == 0) return 0;
  const auto* const filter = reinterpret_cast<const ElfW(Addr)*>(hash_ + 4);
  const auto* const bucket = reinterpret_cast<const std::uint32_t*>(filter + words);
  const std::uint32_t* const chain = bucket + buckets;
  const auto* const symbols = static_cast<const ElfW(Sym)*>(symbols_);
  const std::uint32_t hash = GnuHash(name);
  constexpr std::uint32_t kBits = 8 * sizeof(ElfW(Addr));
  const ElfW(Addr) bits = (ElfW(Addr){1} << hash % kBits) | (ElfW(Addr){1} << (hash >> shift) % kBits);
  if ((filter[hash / kBits % words] & bits) != bits) return 0;
  std::uint32_t at = bucket[hash % buckets];
  if (at < first_hashed) return 0;
  for (;; ++at) {
    const std::uint32_t held = chain[at - first_hashed];
    const bool same = (held | 1) == (hash | 1) && symbols[at].st_shndx != SHN_UNDEF && strcmp(names_ + symbols[at].st_name, name) == 0;
    if (same) return base_ + symbols[at].st_value;
    if ((held & 1) != 0) return 0;
  }
}

}  // namespace cuaudit::python
