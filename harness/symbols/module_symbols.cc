// SPDX-License-Identifier: MIT
#include "harness/symbols/module_symbols.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

namespace cuaudit::harness {
namespace {

int NoElf(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }

// Searches by build id only: dwfl_standard_find_debuginfo would also ask the servers of DEBUGINFOD_URLS.
int FindDebugInfo(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, const char* file, const char* link, GElf_Word crc,
                  char** found) {
  return dwfl_build_id_find_debuginfo(module, data, name, base, file, link, crc, found);
}

char* debug_path = nullptr;  // null: libdwfl's default path, which includes /usr/lib/debug

constexpr Dwfl_Callbacks kCallbacks = {NoElf, FindDebugInfo, dwfl_offline_section_address, &debug_path};

// Demangles function names only: __cxa_demangle also reads names of types and would take a C function `w` for wchar_t.
std::string Demangled(const char* name) {
  if (name == nullptr) return {};
  if (!std::string_view(name).starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && plain ? plain.get() : name;
}

const char* Text(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

bool IsCpp(Dwarf_Die* unit) {
  const int language = dwarf_srclang(unit);
  return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 || language == DW_LANG_C_plus_plus_11 ||
         language == DW_LANG_C_plus_plus_14;
}

// The namespaces, classes and functions around a function, each with "::" behind it.
std::string ScopesOf(const Dwarf_Die& function) {
  Dwarf_Die declared = function;
  Dwarf_Attribute attribute;
  for (const unsigned origin : {DW_AT_abstract_origin, DW_AT_specification}) {
    Dwarf_Die from;
    if (dwarf_formref_die(dwarf_attr(&declared, origin, &attribute), &from) != nullptr) declared = from;
  }
  Dwarf_Die* found = nullptr;
  const int count = dwarf_getscopes_die(&declared, &found);
  const std::unique_ptr<Dwarf_Die, void (*)(void*)> scopes(found, std::free);
  std::string text;
  for (int i = 1; i < count; ++i) {
    Dwarf_Die* const scope = scopes.get() + i;
    const int tag = dwarf_tag(scope);
    const bool type = tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
    if (!type && tag != DW_TAG_namespace && tag != DW_TAG_subprogram) continue;
    const char* const name = Text(scope, DW_AT_name);
    if (name == nullptr && tag != DW_TAG_namespace) continue;
    text = std::string(name == nullptr ? "(anonymous namespace)" : name) + "::" + text;
  }
  return text;
}

// GCC gives functions that no other file can call no linkage name.
std::string FunctionName(Dwarf_Die* unit, Dwarf_Die* die) {
  if (const char* const linkage = Text(die, DW_AT_linkage_name)) return Demangled(linkage);
  const std::string name = Demangled(Text(die, DW_AT_name));
  return name.empty() || !IsCpp(unit) ? name : ScopesOf(*die) + name;
}

// Sets file and line of `caller` to the place where `inlined` was inlined.
void SetCallSite(Dwarf_Die* unit, Dwarf_Die* inlined, report::Frame* caller) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0;
  Dwarf_Word line = 0;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) == 0 && dwarf_getsrcfiles(unit, &files, &count) == 0 &&
      file < count) {
    if (const char* path = dwarf_filesrc(files, file, nullptr, nullptr)) caller->file = path;
  }
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) == 0) caller->line = static_cast<int>(line);
}

// Appends the function around `pc` and the functions inlined there, outermost first. dwarf_getscopes is no help: it fails when the abstract
// origin of an inlined function lies inside a namespace, as clang writes it.
bool FindFunctions(Dwarf_Die* parent, Dwarf_Addr pc, std::vector<Dwarf_Die>* chain) {
  Dwarf_Die child;
  if (dwarf_child(parent, &child) != 0) return false;
  do {
    const int tag = dwarf_tag(&child);
    const bool function = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
    if (function || tag == DW_TAG_lexical_block) {
      if (dwarf_haspc(&child, pc) <= 0) continue;
      if (function) chain->push_back(child);
      FindFunctions(&child, pc, chain);
      return true;
    }
    const bool names = tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_module;
    if (names && FindFunctions(&child, pc, chain)) return true;
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

// Replaces `frames`, which holds one frame with the line of `pc`, by the chain of inlined functions around `pc`.
void ExpandInlined(Dwarf_Die* unit, Dwarf_Addr pc, std::vector<report::Frame>* frames) {
  std::vector<Dwarf_Die> chain;
  if (!FindFunctions(unit, pc, &chain) || chain.empty()) return;
  report::Frame frame = frames->front();
  frames->clear();
  for (std::size_t i = chain.size(); i-- > 0;) {
    frame.function = FunctionName(unit, &chain[i]);
    frames->push_back(frame);
    frame.file.clear();
    frame.line = 0;
    SetCallSite(unit, &chain[i], &frame);
  }
}

// clang and rustc write no .debug_aranges, so an address that is not found there is searched for in the ranges of every unit.
Dwarf_Die* FindUnit(Dwfl_Module* module, Dwarf_Addr pc, Dwarf_Addr* bias) {
  if (Dwarf_Die* unit = dwfl_module_addrdie(module, pc, bias)) return unit;
  for (Dwarf_Die* unit = dwfl_module_nextcu(module, nullptr, bias); unit != nullptr; unit = dwfl_module_nextcu(module, unit, bias)) {
    if (dwarf_haspc(unit, pc - *bias) > 0) return unit;
  }
  return nullptr;
}

void SetLine(Dwarf_Die* unit, Dwarf_Addr pc, report::Frame* frame) {
  Dwarf_Line* line = dwarf_getsrc_die(unit, pc);
  if (line == nullptr) return;
  if (const char* file = dwarf_linesrc(line, nullptr, nullptr)) frame->file = file;
  dwarf_lineno(line, &frame->line);
}

// The journal keeps at most 20 bytes of a build id.
bool SameBuild(std::span<const std::uint8_t> recorded, const unsigned char* bytes, int size) {
  const std::size_t kept = std::min<std::size_t>(size > 0 ? static_cast<std::size_t>(size) : 0, 20);
  return recorded.size() == kept && std::equal(recorded.begin(), recorded.end(), bytes);
}

}  // namespace

std::unique_ptr<ModuleSymbols> ModuleSymbols::Open(const std::string& path, std::span<const std::uint8_t> build_id) {
  Dwfl* session = dwfl_begin(&kCallbacks);
  if (session == nullptr) return nullptr;
  Dwfl_Module* module = dwfl_report_offline(session, path.c_str(), path.c_str(), -1);
  dwfl_report_end(session, nullptr, nullptr);
  GElf_Addr bias = 0;
  const unsigned char* bytes = nullptr;
  GElf_Addr address = 0;
  Elf* const elf = module == nullptr ? nullptr : dwfl_module_getelf(module, &bias);
  const bool readable = elf != nullptr;
  const int size = readable ? dwfl_module_build_id(module, &bytes, &address) : 0;
  if (!readable || !SameBuild(build_id, bytes, size)) {
    dwfl_end(session);
    return nullptr;
  }
  return std::unique_ptr<ModuleSymbols>(new ModuleSymbols(session, module, bias, FunctionStarts(elf)));
}

ModuleSymbols::~ModuleSymbols() { dwfl_end(session_); }

std::vector<report::Frame> ModuleSymbols::Lookup(std::uint64_t address) const {
  const Dwarf_Addr pc = address + bias_;
  std::vector<report::Frame> frames(1);
  Dwarf_Addr unit_bias = 0;
  if (Dwarf_Die* unit = FindUnit(module_, pc, &unit_bias)) {
    SetLine(unit, pc - unit_bias, &frames.front());
    ExpandInlined(unit, pc - unit_bias, &frames);
  }
  if (frames.back().function.empty()) {
    GElf_Off offset = 0;
    GElf_Sym symbol;
    frames.back().function = Demangled(dwfl_module_addrinfo(module_, pc, &offset, &symbol, nullptr, nullptr, nullptr));
  }
  if (frames.back().function.empty()) frames.back().start = starts_.Before(address);
  if (frames.size() == 1 && frames.front().function.empty() && frames.front().file.empty() && frames.front().start == 0) frames.clear();
  return frames;
}

}  // namespace cuaudit::harness
