// SPDX-License-Identifier: MIT
#include "harness/symbols/symbolizer.h"

#include <elf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/journal/layout.h"
#include "harness/symbols/module_symbols.h"

// In c_names.c.
extern "C" {
std::uintptr_t w(std::uintptr_t (*place)());
std::uintptr_t i(std::uintptr_t (*place)());
std::uintptr_t v(std::uintptr_t (*place)());
extern const char sym_first[];
}

namespace cuaudit::harness {
namespace {

// A journal in memory, as the drop-in library lays it out, with one stack.
class HandMadeJournal {
 public:
  HandMadeJournal() : bytes_(kPython + faults::kMaxPythonFunctions * sizeof(faults::PythonRow), '\0') {
    auto* header = new (bytes_.data()) faults::JournalHeader{};
    std::memcpy(header->magic, faults::kJournalMagic, sizeof header->magic);
    header->version = faults::kJournalVersion;
    header->header_bytes = sizeof(faults::JournalHeader);
    header->table_digest = driver::TableDigest();
    header->byte_order = faults::kByteOrder;
    header->pointer_bytes = sizeof(void*);
    header->module_rows = faults::kMaxModules;
    header->stack_rows = faults::kMaxStacks;
    header->python_rows = faults::kMaxPythonFunctions;
    header->file_bytes = bytes_.size();
    header->modules_offset = kModules;
    header->stacks_offset = kStacks;
    header->python_offset = kPython;
    header->records_offset = bytes_.size();
  }

  std::uint64_t AddModule(const std::string& path, const std::vector<std::uint8_t>& build_id) {
    auto* row = new (bytes_.data() + kModules + modules_ * sizeof(faults::ModuleRow)) faults::ModuleRow{};
    path.copy(row->path, sizeof row->path - 1);
    row->build_id_bytes = static_cast<std::uint32_t>(build_id.size());
    std::copy(build_id.begin(), build_id.end(), row->build_id);
    row->state = 2;
    return modules_++;
  }

  void SetStack(const std::vector<std::uint64_t>& frames) {
    auto* row = new (bytes_.data() + kStacks) faults::StackRow{};
    std::copy(frames.begin(), frames.end(), row->frame);
    row->hash = 1;
    row->depth = static_cast<std::uint32_t>(frames.size());
  }

  // Row 0 of the Python functions.
  void SetPythonFunction(const std::string& name, const std::string& file) {
    auto* row = new (bytes_.data() + kPython) faults::PythonRow{};
    name.copy(row->name, sizeof row->name - 1);
    file.copy(row->file, sizeof row->file - 1);
    row->complete = 1;
  }

  faults::JournalView View() const {
    faults::JournalView view;
    const char* error = view.Open(bytes_.data(), bytes_.size());
    EXPECT_EQ(error, nullptr) << error;
    return view;
  }

 private:
  static constexpr std::size_t kModules = (sizeof(faults::JournalHeader) + 4095) / 4096 * 4096;
  static constexpr std::size_t kStacks = kModules + faults::kMaxModules * sizeof(faults::ModuleRow);
  static constexpr std::size_t kPython = kStacks + faults::kMaxStacks * sizeof(faults::StackRow);
  std::vector<char> bytes_;
  std::uint64_t modules_ = 0;
};

struct Self {
  std::string path;
  std::uintptr_t base = 0;
  std::vector<std::uint8_t> build_id;
};

int VisitSelf(dl_phdr_info* info, std::size_t, void* state) {
  Self& self = *static_cast<Self*>(state);
  self.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
    const char* note = reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    std::size_t left = info->dlpi_phdr[i].p_memsz;
    while (left > sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) row;
      std::memcpy(&row, note, sizeof row);
      const std::size_t name = (row.n_namesz + 3) / 4 * 4;
      const std::size_t length = sizeof row + name + (row.n_descsz + 3) / 4 * 4;
      if (row.n_type == NT_GNU_BUILD_ID) {
        const auto* id = reinterpret_cast<const std::uint8_t*>(note) + sizeof row + name;
        self.build_id.assign(id, id + row.n_descsz);
      }
      if (length > left) break;
      note += length;
      left -= length;
    }
  }
  return 1;  // the program comes first
}

Self FindSelf() {
  Self self;
  self.path = std::filesystem::read_symlink("/proc/self/exe");
  dl_iterate_phdr(VisitSelf, &self);
  EXPECT_FALSE(self.build_id.empty()) << "the test program is linked without a build id";
  return self;
}

std::uint64_t Encode(std::uint64_t module, const Self& self, std::uintptr_t address) { return module << 48 | (address - self.base); }

int call_line = 0;

// Where the caller goes on: an address as stacks hold it.
[[gnu::noinline]] std::uintptr_t ReturnAddress() {
  const auto address = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  asm volatile("");
  return address;
}

}  // namespace

// Here, where debug information names it; `v` is also the mangled name of void.
extern "C" [[gnu::noinline]] std::uintptr_t v(std::uintptr_t (*place)()) {
  const std::uintptr_t address = place();
  asm volatile("");
  return address;
}

// Outside the unnamed namespace: the demangled name is then the same with every compiler.
[[gnu::noinline]] std::uintptr_t PlaceOfACall(int depth) {
  call_line = __LINE__ + 1;
  const std::uintptr_t address = ReturnAddress();
  return address + static_cast<std::uintptr_t>(depth);
}

[[gnu::always_inline]] inline std::uintptr_t InlinedPlace() {
  const std::uintptr_t address = ReturnAddress();
  asm volatile("");
  return address;
}

[[gnu::noinline]] std::uintptr_t PlaceThatInlines() {
  call_line = __LINE__ + 1;
  const std::uintptr_t address = InlinedPlace();
  asm volatile("");
  return address;
}

namespace {

std::vector<report::Frame> ResolveOne(const std::string& path, const std::vector<std::uint8_t>& build_id, std::uintptr_t address) {
  HandMadeJournal journal;
  const std::uint64_t module = journal.AddModule(path, build_id);
  journal.SetStack({Encode(module, FindSelf(), address)});
  return Symbolizer().Resolve(journal.View(), 1);
}

TEST(Symbolizer, NamesFunctionFileAndLineOfACall) {
  const Self self = FindSelf();
  const std::uintptr_t address = PlaceOfACall(0);
  const auto frames = ResolveOne(self.path, self.build_id, address);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].function, "cuaudit::harness::PlaceOfACall(int)");
  EXPECT_TRUE(frames[0].file.ends_with("symbolizer_test.cc")) << frames[0].file;
  EXPECT_EQ(frames[0].line, call_line);
  EXPECT_EQ(frames[0].module, self.path.substr(self.path.rfind('/') + 1));
  EXPECT_EQ(frames[0].offset, address - self.base);
}

TEST(Symbolizer, ACFunctionKeepsItsNameThoughItReadsAsAMangledType) {
  const Self self = FindSelf();
  struct {
    std::uintptr_t (*function)(std::uintptr_t (*)());
    const char* name;
    bool debug_information;
  } const cases[] = {{w, "w", false}, {i, "i", false}, {v, "v", true}};
  for (const auto& one : cases) {
    const auto frames = ResolveOne(self.path, self.build_id, one.function(ReturnAddress));
    ASSERT_EQ(frames.size(), 1U) << one.name;
    EXPECT_EQ(frames[0].function, one.name);
    EXPECT_EQ(!frames[0].file.empty(), one.debug_information) << one.name;
  }
}

TEST(Symbolizer, AnInlinedFunctionIsAFrameOfItsOwn) {
  const Self self = FindSelf();
  const std::uintptr_t address = PlaceThatInlines();
  const auto frames = ResolveOne(self.path, self.build_id, address);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_NE(frames[0].function.find("InlinedPlace"), std::string::npos) << frames[0].function;
  EXPECT_NE(frames[1].function.find("PlaceThatInlines"), std::string::npos) << frames[1].function;
  EXPECT_EQ(frames[1].line, call_line);
  EXPECT_LT(frames[0].line, frames[1].line);
  EXPECT_EQ(frames[0].offset, frames[1].offset);
}

TEST(Symbolizer, AnotherBuildOfTheFileIsNotBelieved) {
  Self self = FindSelf();
  const std::uintptr_t address = PlaceOfACall(0);
  self.build_id[0] ^= 1;
  const auto frames = ResolveOne(self.path, self.build_id, address);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].function, "");
  EXPECT_EQ(frames[0].file, "");
  EXPECT_EQ(frames[0].module, self.path.substr(self.path.rfind('/') + 1));
  EXPECT_EQ(frames[0].offset, address - self.base);
  EXPECT_EQ(ResolveOne(self.path, {}, address)[0].function, "") << "no build id in the journal, one in the file";
}

TEST(Symbolizer, AFileThatIsGoneKeepsModuleAndOffset) {
  const auto frames = ResolveOne("/nowhere/libgone.so.2", {1, 2, 3}, FindSelf().base + 0x1234);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].module, "libgone.so.2");
  EXPECT_EQ(frames[0].function, "");
  EXPECT_EQ(frames[0].offset, 0x1234U);
}

TEST(Symbolizer, AFileThatIsNoObjectKeepsModuleAndOffset) {
  const std::string path = ::testing::TempDir() + "symbolizer_no_object_" + std::to_string(getpid());
  std::ofstream(path) << "not an ELF file";
  const auto frames = ResolveOne(path, {}, FindSelf().base + 7);
  std::filesystem::remove(path);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].function, "");
  EXPECT_EQ(frames[0].offset, 7U);
}

// Generated code lies elsewhere in each run; in a module that the journal had no room for the offset is the same.
TEST(Symbolizer, OnlyAnAddressInAModuleIsKept) {
  HandMadeJournal journal;
  journal.SetStack({faults::kNoModule << 48 | 0xabc, std::uint64_t{77} << 48 | 0xdef});
  const auto frames = Symbolizer().Resolve(journal.View(), 1);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].module, "");
  EXPECT_EQ(frames[0].offset, 0U);
  EXPECT_EQ(frames[1].offset, 0xdefU);
}

// "clone" is also what a thread begins with in the C library.
TEST(Symbolizer, PythonFunctionsHaveNameFileAndLine) {
  HandMadeJournal journal;
  journal.SetPythonFunction("clone", "/home/one/encoder.py");
  journal.SetStack({faults::PythonFrame(1, 3), faults::PythonFrame(0, 12)});
  const auto frames = Symbolizer().Resolve(journal.View(), 1);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].module, kPythonModule);
  EXPECT_EQ(frames[0].function, "") << "its row is missing";
  EXPECT_EQ(frames[0].line, 3);
  EXPECT_EQ(frames[1].module, kPythonModule);
  EXPECT_EQ(frames[1].function, "clone");
  EXPECT_EQ(frames[1].file, "/home/one/encoder.py");
  EXPECT_EQ(frames[1].line, 12);
}

TEST(Symbolizer, StackZeroIsEmpty) {
  const HandMadeJournal journal;
  EXPECT_TRUE(Symbolizer().Resolve(journal.View(), 0).empty());
}

TEST(Symbolizer, TheSameStackInTwoJournalsGivesTheSameFrames) {
  const Self self = FindSelf();
  const std::uintptr_t address = PlaceOfACall(0);
  HandMadeJournal first;
  first.SetStack({Encode(first.AddModule(self.path, self.build_id), self, address)});
  HandMadeJournal second;
  second.AddModule("/lib/other.so", {});
  second.SetStack({Encode(second.AddModule(self.path, self.build_id), self, address)});
  Symbolizer symbolizer;
  const auto a = symbolizer.Resolve(first.View(), 1);
  const auto b = symbolizer.Resolve(second.View(), 1);
  ASSERT_EQ(a.size(), 1U);
  ASSERT_EQ(b.size(), 1U);
  EXPECT_NE(a[0].function, "");
  EXPECT_EQ(a[0].function, b[0].function);
  EXPECT_EQ(a[0].line, b[0].line);
}

// This program, as libdwfl reads it.
class OpenedSelf {
 public:
  OpenedSelf() {
    const std::string path = FindSelf().path;
    module = dwfl_report_offline(session_, path.c_str(), path.c_str(), -1);
    dwfl_report_end(session_, nullptr, nullptr);
    dwfl_module_getelf(module, &bias);
  }
  OpenedSelf(const OpenedSelf&) = delete;
  OpenedSelf& operator=(const OpenedSelf&) = delete;
  ~OpenedSelf() { dwfl_end(session_); }

  Dwfl_Module* module = nullptr;
  GElf_Addr bias = 0;

 private:
  const Dwfl_Callbacks callbacks_ = {dwfl_build_id_find_elf, dwfl_standard_find_debuginfo, dwfl_offline_section_address, nullptr};
  Dwfl* const session_ = dwfl_begin(&callbacks_);
};

// Of "sym_alias" and "sym_alias_too" the linker says which one is the first of the file.
TEST(SymbolTable, FindsTheSymbolOfEachByte) {
  const OpenedSelf self;
  const SymbolTable symbols(self.module);
  const std::uint64_t begin = reinterpret_cast<std::uintptr_t>(sym_first) - FindSelf().base + self.bias;
  struct {
    std::uint64_t begin, end;  // in the section of c_names.c
    std::string name;
  } const rows[] = {{0, 4, "sym_first"},   {4, 8, ""},           {8, 10, "sym_outer"},   {10, 12, "sym_inner"}, {12, 16, "sym_outer"},
                    {16, 18, "sym_short"}, {18, 20, "sym_long"}, {20, 24, "sym_strong"}, {24, 26, "sym_alias"}, {26, 28, "sym_seen"},
                    {28, 30, "sym_local"}, {30, 32, ""},         {32, 36, "sym_label"},  {36, 38, "sym_last"},  {38, 40, "sym_late"},
                    {40, 42, ""}};
  for (const auto& row : rows) {
    for (std::uint64_t at = row.begin; at < row.end; ++at) {
      const char* const found = symbols.At(begin + at);
      EXPECT_EQ(found == nullptr, row.name.empty()) << at;
      EXPECT_STREQ(found, dwfl_module_addrname(self.module, begin + at)) << at;
      if (found == nullptr) continue;
      EXPECT_TRUE(std::string(found).starts_with(row.name)) << at << ": " << found;
    }
  }
}

// In the numbering of libdwfl.
struct UnitRange {
  Dwarf_Addr begin, end;
  Dwarf_Die* unit;
};

std::vector<UnitRange> RangesOf(Dwfl_Module* module) {
  std::vector<UnitRange> ranges;
  Dwarf_Addr bias = 0;
  for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module, unit, &bias)) != nullptr;) {
    Dwarf_Addr base = 0;
    UnitRange next = {0, 0, unit};
    for (std::ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &next.begin, &next.end)) > 0;) {
      ranges.push_back({next.begin + bias, next.end + bias, unit});
    }
  }
  return ranges;
}

TEST(ModuleSymbols, TheFirstAndTheLastByteOfAUnitHaveItsLines) {
  const OpenedSelf self;
  const Self file = FindSelf();
  const auto symbols = ModuleSymbols::Open(file.path, file.build_id);
  ASSERT_NE(symbols, nullptr);
  const std::vector<UnitRange> ranges = RangesOf(self.module);
  ASSERT_GT(ranges.size(), 1U);
  std::size_t ends = 0;
  for (std::size_t i = 0; i < ranges.size(); i += 1 + ranges.size() / 64) {
    const UnitRange& range = ranges[i];
    for (const Dwarf_Addr pc : {range.begin, range.end - 1, range.end}) {
      const auto has = [pc](const UnitRange& one) { return one.begin <= pc && pc < one.end; };
      const auto unit = std::find_if(ranges.begin(), ranges.end(), has);
      Dwarf_Line* const line = unit == ranges.end() ? nullptr : dwarf_getsrc_die(unit->unit, pc - self.bias);
      int number = 0;
      if (line != nullptr) dwarf_lineno(line, &number);
      const auto frames = symbols->Lookup(pc - self.bias);
      EXPECT_EQ(frames.empty() ? 0 : frames.front().line, number) << std::hex << pc;
      ends += unit == ranges.end() ? 1 : 0;
    }
  }
  EXPECT_GT(ends, 0U);
}

}  // namespace
}  // namespace cuaudit::harness
