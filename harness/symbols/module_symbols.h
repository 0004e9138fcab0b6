// SPDX-License-Identifier: MIT
// module_symbols.h: function names and source lines of one object file.
//
//   Owns      the opened file, through libdwfl.
//   Threads   not thread-safe.
//   Units     addresses in the numbering of the file (load bias 0).
//   Errors    Open answers null when the file cannot be read or its build id differs. Lookup answers no frames for an unknown address.
//   Source    elfutils libdwfl and libdw.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/run.h"

struct Dwfl;
struct Dwfl_Module;
struct Elf;

namespace cuaudit::harness {

// Where functions begin in an object file without symbols, from its unwind table: .eh_frame_hdr, a sorted table of 4-byte pairs relative to
// its own section (Linux Standard Base Core, 10.6).
class FunctionStarts {
 public:
  FunctionStarts() = default;
  // `elf` is only borrowed for the call. Without a table of the usual encoding no start is known.
  explicit FunctionStarts(Elf* elf);

  // The start of the function that `address` lies in, as far as the table goes; 0 when unknown.
  std::uint64_t Before(std::uint64_t address) const;

 private:
  std::vector<std::uint64_t> starts_;  // sorted
};

// Names by address. dwfl_module_addrinfo goes through all symbols for each address; this finds the same one, by its rules: of the symbols
// around the address a global one before others, then the nearest, the one that binds more, the smallest, the first of the file.
class SymbolTable {
 public:
  explicit SymbolTable(Dwfl_Module* module);

  // Null: no symbol is there. The numbering of `address` is that of the module, with its bias.
  const char* At(std::uint64_t address) const;

 private:
  struct Symbol {
    std::uint64_t begin, end;
    std::uint64_t reach;  // the furthest end of this symbol and of those before it: they may overlap
    int index;
    int binding;
    unsigned section;
    const char* name;
  };

  Dwfl_Module* module_;
  int first_global_;
  std::vector<Symbol> sized_;   // sorted
  std::vector<Symbol> labels_;  // global, without a size: where there is one, local symbols may not count
};

class ModuleSymbols {
 public:
  static std::unique_ptr<ModuleSymbols> Open(const std::string& path, std::span<const std::uint8_t> build_id);
  ~ModuleSymbols();
  ModuleSymbols(const ModuleSymbols&) = delete;
  ModuleSymbols& operator=(const ModuleSymbols&) = delete;

  // The function at `address` and the functions it is inlined into, innermost first. A function without a name has its start. The caller
  // fills in module and offset.
  std::vector<report::Frame> Lookup(std::uint64_t address) const;
  // The function of this file that the call instruction at `address` names, with the line where it begins; no function when the debug
  // information does not say. `address` is that of the instruction's last byte.
  report::Frame Called(std::uint64_t address) const;

 private:
  struct Units;  // which unit of the debug information has an address

  ModuleSymbols(Dwfl* session, Dwfl_Module* module, std::uint64_t bias);

  std::uint64_t StartOf(std::uint64_t address) const;

  Dwfl* session_;
  Dwfl_Module* module_;
  std::uint64_t bias_;
  std::unique_ptr<Units> units_;
  // Read when first asked for: both are large.
  mutable std::optional<SymbolTable> symbols_;
  mutable std::optional<FunctionStarts> starts_;
};

}  // namespace cuaudit::harness
