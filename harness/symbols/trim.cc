// SPDX-License-Identifier: MIT
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/driver/foreign_runtime.h"
#include "harness/symbols/module_symbols.h"
#include "harness/symbols/symbolizer.h"
#include "reports/frames.h"

namespace cuaudit::harness {
namespace {

// True for frames between the program and its driver call: the drop-in, cuaudit's libraries and the shared CUDA runtime. A genuine driver
// has the drop-in's name only when there is no drop-in, and then its frames are never the innermost ones of a record.
bool IsBelowTheProgram(const report::Frame& frame) {
  return frame.module == "libcuda.so.1" || frame.module.starts_with("libcuaudit_") || driver::RuntimeFileOf(frame.module).shared;
}

// When a sanitizer owns the heap, its frames come first: in gcc's library or, with clang, in the program itself.
bool IsSanitizer(const report::Frame& frame) {
  return BeginsWithOneOf(frame.module, {"libasan.so", "liblsan.so", "libtsan.so"}) ||
         BeginsWithOneOf(frame.function, {"__sanitizer::", "__asan::", "__lsan::", "__tsan::", "__interceptor_"});
}

bool ComesFrom(const report::Frame& frame, std::string_view path) { return frame.file.find(path) != std::string::npos; }

// True for a function whose qualified name begins so. The name of a template's instance has the type that it returns in front.
bool IsIn(const report::Frame& frame, std::string_view begin) {
  const std::string_view function = frame.function;
  const std::size_t at = function.find(begin);
  if (at == 0 || at == std::string_view::npos) return at == 0;
  return function[at - 1] == ' ' && function.substr(0, at).find_first_of("<(") == std::string_view::npos;
}

// cuaudit's CUDA runtime when it is linked statically. Its frames then lie in the program's own file.
bool IsOwnRuntime(const report::Frame& frame) {
  return BeginsWithOneOf(frame.function, {"cuaudit::cudart::", "cuaudit::driver::"}) || ComesFrom(frame, "faults/cudart/") ||
         ComesFrom(frame, "faults/driver/genuine_driver.cc") || ComesFrom(frame, "generated/driver_methods.inc") ||
         ComesFrom(frame, "cuaudit/driver.h") || ComesFrom(frame, "generated/cudart_exports_");
}

// A function that the runtime exports, recognised by name because there is no debug information.
bool IsExport(const report::Frame& frame) {
  return frame.file.empty() && frame.function.find('(') == std::string::npos && BeginsWithOneOf(frame.function, {"cuda", "__cuda"});
}

bool IsRuntime(const report::Frame& frame) { return report::IsRuntimeModule(frame.module); }

// The gate, in front of which a lifecycle in C++ runs in this process. Inlined functions have names without a namespace, so their files are
// checked as well.
bool IsGate(const report::Frame& frame) {
  static constexpr std::array<std::string_view, 6> kFiles = {
      "faults/shim/",  "faults/journal/", "faults/interpose/", "harness/lifecycle/chosen_driver.cc", "harness/lifecycle/block.cc",
      "cuaudit/mark.h"};
  return frame.module.starts_with("libcuaudit.so") || IsIn(frame, "cuaudit::faults::") ||
         std::any_of(kFiles.begin(), kFiles.end(), [&](std::string_view file) { return ComesFrom(frame, file); });
}

// What calls a step of a lifecycle in C++. How many frames that are depends on what the compiler inlined or turned into jumps.
bool CallsAStep(const report::Frame& frame) {
  return IsIn(frame, "cuaudit::detail::Call") || IsIn(frame, "cuaudit::harness::(anonymous namespace)::") ||
         ComesFrom(frame, "cuaudit/lifecycle.h") || ComesFrom(frame, "harness/lifecycle/");
}

// The standard library's frames between a std::function and its target, of libstdc++ and of libc++.
bool IsFunctionCall(const report::Frame& frame) {
  static constexpr std::array<std::string_view, 5> kFiles = {"/bits/std_function.h", "/bits/invoke.h", "/__functional/function.h",
                                                             "/__functional/invoke.h", "/__type_traits/invoke.h"};
  static constexpr std::array<std::string_view, 5> kFunctions = {"std::function<", "std::_Function_handler<", "std::__invoke",
                                                                 "std::__1::__function::", "std::__1::__invoke"};
  if (std::any_of(kFiles.begin(), kFiles.end(), [&](std::string_view file) { return frame.file.ends_with(file); })) return true;
  return std::any_of(kFunctions.begin(), kFunctions.end(), [&](std::string_view begin) { return IsIn(frame, begin); });
}

// The template arguments behind `begin`, which ends with '<'.
std::vector<std::string_view> Arguments(std::string_view function, std::string_view begin) {
  std::vector<std::string_view> arguments;
  std::size_t from = function.find(begin);
  if (from == std::string_view::npos) return arguments;
  from += begin.size();
  int depth = 0;
  for (std::size_t at = from; at < function.size(); ++at) {
    const char c = function[at];
    if (depth == 0 && (c == ',' || c == '>')) {
      arguments.push_back(function.substr(from, at - from));
      from = at + (function.substr(at).starts_with(", ") ? 2 : 1);
      if (c == '>') break;
    }
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
  }
  return arguments;
}

// What the program gave to a frame that only calls it: a lambda, or the state whose member is a step. Empty where debug information tells
// more, because the program's function then has a frame of its own.
std::string_view TargetOf(const report::Frame& frame) {
  if (!frame.file.empty()) return {};
  for (const std::string_view caller : {"std::_Function_handler<", "cuaudit::detail::Call<"}) {
    if (!IsIn(frame, caller)) continue;
    const std::vector<std::string_view> arguments = Arguments(frame.function, caller);
    if (arguments.empty()) return {};
    constexpr std::string_view kMember = "cuaudit::detail::CallMember<";
    if (!arguments.back().starts_with(kMember)) return arguments.back();
    const std::vector<std::string_view> of_member = Arguments(arguments.back(), kMember);
    return of_member.empty() ? std::string_view() : of_member.front();
  }
  return {};
}

// Takes the place of a function that the compiler has made part of `caller`, unless `inner`, the frame inside of it, is that function.
std::optional<report::Frame> InPlaceOf(const report::Frame& caller, const report::Frame* inner) {
  const std::string_view target = TargetOf(caller);
  if (target.empty() || (inner != nullptr && inner->function.find(target) != std::string::npos)) return {};
  report::Frame frame = caller;
  frame.function = target;
  return frame;
}

bool IsOwn(const report::Frame& frame) { return IsOwnRuntime(frame) || IsBelowTheProgram(frame) || IsSanitizer(frame) || IsGate(frame); }

}  // namespace

bool IsStartCode(const report::Frame& frame) {
  if (frame.module == kPythonModule) return false;  // whatever the program calls its functions
  static constexpr std::array<std::string_view, 7> kFunctions = {
      "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "start_thread", "clone", "clone3"};
  return BeginsWithOneOf(frame.module, {"libc.so", "libpthread.so", "ld-linux"}) ||
         std::find(kFunctions.begin(), kFunctions.end(), frame.function) != kFunctions.end();
}

std::vector<report::Frame> WithoutRuntime(std::vector<report::Frame> frames) {
  const auto first = std::find_if_not(frames.begin(), frames.end(), IsRuntime);
  if (first != frames.end()) frames.erase(frames.begin(), first);
  return frames;
}

std::vector<report::Frame> Trim(std::vector<report::Frame> frames) {
  std::size_t first = 0;
  std::size_t last = frames.size();
  const report::Frame* runtime = nullptr;
  // A function of the C library that one of these has called goes with it: the driver's memcpy, where an argument made it crash.
  for (std::size_t i = 0; i < last && (IsOwn(frames[i]) || IsRuntime(frames[i])); ++i) {
    if (!IsOwn(frames[i])) continue;
    first = i + 1;
    if (IsOwnRuntime(frames[i])) runtime = &frames[i];
  }
  if (first < last && runtime != nullptr && runtime->module == frames[first].module && IsExport(frames[first])) ++first;
  // The entry of a program without symbols.
  if (last - first > 1 && frames[last - 1].function.empty() && frames[last - 2].function.starts_with("__libc_start_main")) --last;
  while (first < last && IsStartCode(frames[last - 1])) --last;
  const auto at = [&frames](std::size_t index) { return frames.begin() + static_cast<std::ptrdiff_t>(index); };
  // A step of a lifecycle ends where it was called. One that has no frame left, because it ended in a jump, keeps its caller's.
  const auto step = std::find_if(at(first), at(last), CallsAStep);
  if (step != at(last)) {
    std::optional<report::Frame> inlined = InPlaceOf(*step, step == at(first) ? nullptr : &*std::prev(step));
    last = std::max(first + 1, static_cast<std::size_t>(step - frames.begin()) + (inlined ? 1 : 0));
    if (inlined) *step = *std::move(inlined);
  }
  if (first == last && runtime != nullptr) {  // the runtime made the call by itself, for example at exit
    report::Frame whole = {.module = runtime->module, .function = "cuaudit's CUDA runtime"};
    return {whole};
  }
  if (first == last) return frames;
  std::vector<report::Frame> kept;
  std::for_each(at(first), at(last), [&kept](const report::Frame& frame) {
    std::optional<report::Frame> inlined = InPlaceOf(frame, kept.empty() ? nullptr : &kept.back());
    if (inlined) {
      kept.push_back(*std::move(inlined));
    } else if (!IsFunctionCall(frame) && !frame.module.starts_with("libcuaudit_host")) {
      kept.push_back(frame);
    }
  });
  return kept.empty() ? std::vector<report::Frame>{at(first), at(last)} : kept;
}

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

SymbolTable::SymbolTable(Dwfl_Module* module) : module_(module), first_global_(std::max(1, dwfl_module_getsymtab_first_global(module))) {
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr begin = 0;
    GElf_Word section = 0;
    const char* const name = dwfl_module_getsym_info(module, i, &symbol, &begin, &section, nullptr, nullptr);
    if (name == nullptr || *name == '\0' || symbol.st_shndx == SHN_UNDEF) continue;
    const int type = GELF_ST_TYPE(symbol.st_info);
    if (type == STT_SECTION || type == STT_FILE || type == STT_TLS) continue;
    const int bind = GELF_ST_BIND(symbol.st_info);
    const int binding = bind == STB_GLOBAL ? 3 : bind == STB_WEAK ? 2 : bind == STB_LOCAL ? 1 : 0;
    const Symbol row = {begin, begin + symbol.st_size, 0, i, binding, section, name};
    if (symbol.st_size != 0) {
      sized_.push_back(row);
    } else if (i >= first_global_) {
      labels_.push_back(row);
    }
  }
  std::sort(sized_.begin(), sized_.end(), [](const Symbol& one, const Symbol& other) { return one.begin < other.begin; });
  std::uint64_t reach = 0;
  for (Symbol& symbol : sized_) symbol.reach = reach = std::max(reach, symbol.end);
}

const char* SymbolTable::At(std::uint64_t address) const {
  std::vector<Symbol> around;
  const auto behind = [](std::uint64_t wanted, const Symbol& symbol) { return wanted < symbol.begin; };
  for (auto at = std::upper_bound(sized_.begin(), sized_.end(), address, behind); at != sized_.begin() && (--at)->reach > address;) {
    if (at->end > address) around.push_back(*at);
  }
  std::sort(around.begin(), around.end(), [](const Symbol& one, const Symbol& other) { return one.index < other.index; });
  const bool global = !around.empty() && around.back().index >= first_global_;
  const auto counts = [&](const Symbol& label) { return label.begin <= address && label.section == around.front().section; };
  if (around.empty() || (!global && std::any_of(labels_.begin(), labels_.end(), counts))) {
    GElf_Off offset = 0;
    GElf_Sym symbol;
    return dwfl_module_addrinfo(module_, address, &offset, &symbol, nullptr, nullptr, nullptr);
  }
  const Symbol* best = nullptr;
  for (const Symbol& one : around) {
    if ((one.index >= first_global_) != global) continue;
    const bool smaller = best != nullptr && best->begin == one.begin && best->binding == one.binding && one.end < best->end;
    if (best == nullptr || best->begin < one.begin || best->binding < one.binding || smaller) best = &one;
  }
  return best->name;
}

}  // namespace cuaudit::harness
