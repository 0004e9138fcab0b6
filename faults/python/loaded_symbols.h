// SPDX-License-Identifier: MIT
// loaded_symbols.h: finds exported symbols of one loaded object by name, without the loader.
//
// dlsym is no help: it does not see an interpreter that was loaded with RTLD_LOCAL, and a failing search allocates memory.
#pragma once

#include <cstddef>
#include <cstdint>

struct dl_phdr_info;

namespace cuaudit::python {

class LoadedSymbols {
 public:
  // `object` is as dl_iterate_phdr gives it, and stays loaded while this is used.
  explicit LoadedSymbols(const dl_phdr_info& object) noexcept;
  // Address of the symbol; 0: the object does not define it, or has no GNU hash table.
  std::uintptr_t Find(const char* name) const noexcept;

 private:
  std::uintptr_t base_ = 0;
  const std::uint32_t* hash_ = nullptr;
  const void* symbols_ = nullptr;
  const char* names_ = nullptr;
};

}  // namespace cuaudit::python
