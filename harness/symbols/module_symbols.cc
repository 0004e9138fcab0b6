// SPDX-License-Identifier: MIT
#include "harness/symbols/module_symbols.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <algorithm>
#include <cstdlib>
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
    const char* const nameless = tag == DW_TAG_namespace ? "(anonymous namespace)" : "{lambda}";
    text = std::string(name == nullptr ? nameless : name) + "::" + text;
  }
  return text;
}

// GCC gives functions that no other file can call no linkage name.
std::string FunctionName(Dwarf_Die* unit, Dwarf_Die* die) {
  if (const char* const linkage = Text(die, DW_AT_linkage_name)) return Demangled(linkage);
  const std::string name = Demangled(Text(die, DW_AT_name));
  return name.empty() || !IsCpp(unit) ? name : ScopesOf(*die) + name;
}

// The code of a file.
class Code {
 public:
  explicit Code(Dwfl_Module* module) {
    GElf_Addr bias = 0;
    elf_ = dwfl_module_getelf(module, &bias);
    GElf_Ehdr header;
    if (elf_ != nullptr && gelf_getehdr(elf_, &header) != nullptr) machine_ = header.e_machine;
  }

  // True when the code of x86-64 from `begin` to `end` is there.
  bool Has(Dwarf_Addr begin, Dwarf_Addr end) { return machine_ == EM_X86_64 && begin < end && Load(begin) && Load(end); }

  // Whether an instruction that ends in [from, end] jumps to [low, high]. `is_begin` answers whether an instruction is known to begin
  // there.
  template <typename IsBegin>
  bool JumpsBack(Dwarf_Addr from, Dwarf_Addr end, Dwarf_Addr low, Dwarf_Addr high, const IsBegin& is_begin) const {
    for (Dwarf_Addr next = from; next <= end; ++next) {
      for (const Dwarf_Addr target : {Near(next), Far(next)}) {
        if (target >= low && target <= high && (next == end || is_begin(next) || is_begin(target)) && !Returns(target)) return true;
      }
    }
    return false;
  }

 private:
  std::uint8_t Byte(Dwarf_Addr address) const {
    return address < begin_ || address - begin_ >= bytes_.size() ? 0 : bytes_[address - begin_];
  }

  // Whether what begins at `address` only sets registers, takes them from the stack and returns: an exit that several ways share.
  bool Returns(Dwarf_Addr address) const {
    for (int i = 0; i < 16; ++i) {
      const std::uint8_t prefix = Byte(address);
      if ((prefix & 0xf0) == 0x40 || prefix == 0xf3) ++address;  // REX, and the one of "rep ret"
      const std::uint8_t code = Byte(address);
      const std::uint8_t next = Byte(address + 1);
      if (code == 0xc3) return true;
      if ((code & 0xf8) == 0x58 || code == 0xc9) {  // pop, leave
        address += 1;
      } else if ((code & 0xf8) == 0xb8) {  // mov $, register
        address += 5;
      } else if ((code == 0x31 || code == 0x89) && next >= 0xc0) {  // xor, mov of registers
        address += 2;
      } else if (code == 0x83 && next == 0xc4) {  // add $, %rsp
        address += 3;
      } else if (code == 0x81 && next == 0xc4) {
        address += 6;
      } else {
        return false;
      }
    }
    return false;
  }

  // Where an instruction that ends before `next` jumps to; 0 when these bytes are no such jump.
  Dwarf_Addr Near(Dwarf_Addr next) const {
    const std::uint8_t code = Byte(next - 2);
    const bool jump = code == 0xeb || (code & 0xf0) == 0x70;
    return jump ? next + static_cast<Dwarf_Addr>(std::int64_t{static_cast<std::int8_t>(Byte(next - 1))}) : 0;
  }
  Dwarf_Addr Far(Dwarf_Addr next) const {
    const bool jump = Byte(next - 5) == 0xe9 || (Byte(next - 6) == 0x0f && (Byte(next - 5) & 0xf0) == 0x80);
    std::uint32_t distance = 0;
    for (Dwarf_Addr back = 1; back <= 4; ++back) distance = distance << 8 | Byte(next - back);
    return jump ? next + static_cast<Dwarf_Addr>(std::int64_t{static_cast<std::int32_t>(distance)}) : 0;
  }

  bool Load(Dwarf_Addr address) {
    if (address > begin_ && address - begin_ <= bytes_.size()) return true;
    for (Elf_Scn* section = elf_ == nullptr ? nullptr : elf_nextscn(elf_, nullptr); section != nullptr;
         section = elf_nextscn(elf_, section)) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) == nullptr || (header.sh_flags & SHF_EXECINSTR) == 0 || header.sh_type != SHT_PROGBITS) continue;
      if (address <= header.sh_addr || address - header.sh_addr > header.sh_size) continue;
      const Elf_Data* const data = elf_rawdata(section, nullptr);
      if (data == nullptr || data->d_buf == nullptr) return false;
      bytes_ = {static_cast<const std::uint8_t*>(data->d_buf), data->d_size};
      begin_ = header.sh_addr;
      return address - begin_ <= bytes_.size();
    }
    return false;
  }

  Elf* elf_ = nullptr;
  std::uint16_t machine_ = EM_NONE;
  Dwarf_Addr begin_ = 0;
  std::span<const std::uint8_t> bytes_;
};

// Whether something behind the call at `pc` may lead back to it, as a loop around it does: a jump back over the call. Where instructions
// begin is known for the rows of the line table only, so a jump must end where a row begins, or lead to the beginning of one. Without code,
// earlier lines of the same function stand for the jump; as an optimiser moves lines, true proves nothing then.
bool MayComeBack(Dwarf_Die* unit, Dwarf_Die* function, Dwarf_Addr pc, const report::Frame& call, Code* code) {
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  int first = 0;
  if (call.line == 0 || dwarf_decl_line(function, &first) != 0 || dwarf_getsrclines(unit, &lines, &count) != 0) return true;
  const auto address_of = [lines](std::size_t i) {
    Dwarf_Addr address = 0;
    dwarf_lineaddr(dwarf_onesrcline(lines, i), &address);
    return address;
  };
  const auto first_row = [&](Dwarf_Addr address) {  // the first one at or behind the address
    std::size_t row = 0;
    for (std::size_t left = count; left > 0;) {
      const std::size_t half = left / 2;
      const bool before = address_of(row + half) < address;
      row += before ? half + 1 : 0;
      left = before ? left - half - 1 : half;
    }
    return row;
  };
  const auto is_row = [&](Dwarf_Addr address) {
    const std::size_t row = first_row(address);
    return row < count && address_of(row) == address;
  };
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  for (std::ptrdiff_t at = 0; (at = dwarf_ranges(function, at, &base, &begin, &end)) > 0;) {
    std::size_t row = first_row(std::max(begin, pc + 1));
    if (code->Has(pc, end)) {
      if (code->JumpsBack(std::max(begin, pc + 1), end, begin, pc, is_row)) return true;
      continue;
    }
    for (; row < count && address_of(row) < end; ++row) {
      Dwarf_Line* const one = dwarf_onesrcline(lines, row);
      int number = 0;
      const char* const file = dwarf_linesrc(one, nullptr, nullptr);
      if (file == nullptr || call.file != file || dwarf_lineno(one, &number) != 0) continue;
      if (number >= first && number < call.line) return true;
    }
  }
  return false;
}

// The call in `parent` that returns to `to`; false when no call there is known.
bool FindCall(Dwarf_Die* parent, Dwarf_Addr to, Dwarf_Die* call) {
  Dwarf_Die child;
  if (dwarf_child(parent, &child) != 0) return false;
  do {
    const int tag = dwarf_tag(&child);
    Dwarf_Attribute attribute;
    Dwarf_Addr returns = 0;
    if (tag == DW_TAG_call_site && dwarf_formaddr(dwarf_attr(&child, DW_AT_call_return_pc, &attribute), &returns) == 0 && returns == to) {
      *call = child;
      return true;
    }
    if ((tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine) && FindCall(&child, to, call)) return true;
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
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
void ExpandInlined(Dwarf_Die* unit, Dwarf_Addr pc, Code code, std::vector<report::Frame>* frames) {
  std::vector<Dwarf_Die> chain;
  if (!FindFunctions(unit, pc, &chain) || chain.empty()) return;
  report::Frame frame = frames->front();
  frames->clear();
  for (std::size_t i = chain.size(); i-- > 0;) {
    frame.function = FunctionName(unit, &chain[i]);
    frame.once = !MayComeBack(unit, &chain[i], pc, frame, &code);
    frames->push_back(frame);
    frame.file.clear();
    frame.line = 0;
    SetCallSite(unit, &chain[i], &frame);
  }
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
  return std::unique_ptr<ModuleSymbols>(new ModuleSymbols(session, module, bias));
}

// clang and rustc write no .debug_aranges, so an address that is not found there is searched for in the ranges of all units.
struct ModuleSymbols::Units {
  struct Range {
    Dwarf_Addr begin, end;
    Dwarf_Addr reach;  // the furthest end of this range and of those before it: ranges may overlap
    Dwarf_Die* unit;
  };
  std::optional<std::vector<Range>> ranges;  // sorted
  Dwarf_Addr bias = 0;                       // of the units

  void Read(Dwfl_Module* module) {
    ranges.emplace();
    for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module, unit, &bias)) != nullptr;) {
      Dwarf_Addr base = 0;
      Range next = {0, 0, 0, unit};
      for (std::ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &next.begin, &next.end)) > 0;) ranges->push_back(next);
    }
    std::stable_sort(ranges->begin(), ranges->end(), [](const Range& one, const Range& other) { return one.begin < other.begin; });
    Dwarf_Addr reach = 0;
    for (Range& range : *ranges) range.reach = reach = std::max(reach, range.end);
  }

  Dwarf_Die* At(Dwfl_Module* module, Dwarf_Addr pc, Dwarf_Addr* unit_bias) {
    if (Dwarf_Die* const unit = dwfl_module_addrdie(module, pc, unit_bias)) return unit;
    if (!ranges) Read(module);
    *unit_bias = bias;
    Dwarf_Die* first = nullptr;  // in the file, of the units that have the address
    auto at = std::partition_point(ranges->begin(), ranges->end(), [&](const Range& range) { return range.begin <= pc - bias; });
    while (at != ranges->begin() && (--at)->reach > pc - bias) {
      if (at->end > pc - bias && (first == nullptr || dwarf_dieoffset(at->unit) < dwarf_dieoffset(first))) first = at->unit;
    }
    return first;
  }
};

ModuleSymbols::ModuleSymbols(Dwfl* session, Dwfl_Module* module, std::uint64_t bias)
    : session_(session), module_(module), bias_(bias), units_(std::make_unique<Units>()) {}
ModuleSymbols::~ModuleSymbols() { dwfl_end(session_); }

std::uint64_t ModuleSymbols::StartOf(std::uint64_t address) const {
  GElf_Addr bias = 0;
  if (!starts_) starts_.emplace(dwfl_module_getelf(module_, &bias));
  return starts_->Before(address);
}

std::vector<report::Frame> ModuleSymbols::Lookup(std::uint64_t address) const {
  const Dwarf_Addr pc = address + bias_;
  std::vector<report::Frame> frames(1);
  Dwarf_Addr unit_bias = 0;
  if (Dwarf_Die* unit = units_->At(module_, pc, &unit_bias)) {
    SetLine(unit, pc - unit_bias, &frames.front());
    ExpandInlined(unit, pc - unit_bias, Code(module_), &frames);
  }
  // GCC's debug information does not say which class or namespace a local function is in; its symbol does.
  std::string& function = frames.back().function;
  if (!symbols_) symbols_.emplace(module_);
  const char* const symbol = symbols_->At(pc);
  if (symbol != nullptr && (function.empty() || std::string_view(symbol).starts_with("_Z"))) function = Demangled(symbol);
  if (function.empty()) frames.back().start = StartOf(address);
  if (frames.size() == 1 && frames.front().function.empty() && frames.front().file.empty() && frames.front().start == 0) frames.clear();
  return frames;
}

report::Frame ModuleSymbols::Called(std::uint64_t address) const {
  const Dwarf_Addr pc = address + bias_;
  report::Frame called;
  Dwarf_Addr unit_bias = 0;
  Dwarf_Die* const unit = units_->At(module_, pc, &unit_bias);
  std::vector<Dwarf_Die> chain;
  Dwarf_Die call;
  Dwarf_Attribute attribute;
  Dwarf_Die function;
  if (unit == nullptr || !FindFunctions(unit, pc - unit_bias, &chain) || !FindCall(&chain.front(), pc - unit_bias + 1, &call))
    return called;
  if (dwarf_formref_die(dwarf_attr(&call, DW_AT_call_origin, &attribute), &function) == nullptr) return called;
  if (dwarf_hasattr(&function, DW_AT_declaration) != 0) return called;
  called.function = FunctionName(unit, &function);
  if (const char* const file = dwarf_decl_file(&function)) called.file = file;
  dwarf_decl_line(&function, &called.line);
  return called;
}

}  // namespace cuaudit::harness
