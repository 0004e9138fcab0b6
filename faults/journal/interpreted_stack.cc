// SPDX-License-Identifier: MIT
#include "faults/journal/interpreted_stack.h"

#include <string.h>

#include "faults/journal/stack_key.h"

namespace cuaudit::faults {
namespace {

static_assert(sizeof(PythonRow::name) == sizeof(python::Function::name) && sizeof(PythonRow::file) == sizeof(python::Function::file));

std::uint64_t HashOf(const python::Function& function) noexcept {
  std::uint64_t hash = MixKey(kKeySeed, static_cast<std::uint64_t>(function.first_line));
  hash = MixKey(MixKey(hash, std::string_view(function.name)), std::string_view(function.file));
  return hash == 0 ? 1 : hash;
}

// Never 0, which an empty place of the cache would have.
std::uint64_t KeyOf(const python::Identity& identity) noexcept {
  std::uint64_t key = 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(identity.first_line);
  for (const std::uintptr_t part : {identity.code, identity.instruction, identity.filename, identity.qualname, identity.lines}) {
    key = (key ^ part) * 0xff51afd7ed558ccdU;
    key ^= key >> 32;
  }
  return key == 0 ? 1 : key;
}

}  // namespace

bool PythonTable::Recall(const python::Identity& identity, std::uint64_t* frame) const noexcept {
  const std::uint64_t key = KeyOf(identity);
  const Met& met = met_[key % kMet];
  const std::uint64_t held = met.frame.load(std::memory_order_relaxed);
  if ((met.mixed.load(std::memory_order_relaxed) ^ held) != key) return false;
  *frame = held;
  return true;
}

void PythonTable::Remember(const python::Identity& identity, std::uint64_t frame) noexcept {
  const std::uint64_t key = KeyOf(identity);
  Met& met = met_[key % kMet];
  met.frame.store(frame, std::memory_order_relaxed);
  met.mixed.store(key ^ frame, std::memory_order_relaxed);
}

std::uint64_t PythonTable::Encode(const python::Function& function, int line) noexcept {
  const std::uint64_t hash = HashOf(function);
  const auto at_line = static_cast<std::uint64_t>(line);
  PythonRow* const rows = journal_->python();
  for (std::size_t probe = 0; probe < kMaxPythonFunctions; ++probe) {
    const std::size_t at = (hash + probe) % kMaxPythonFunctions;
    if (!pages_.Ensure(reinterpret_cast<char*>(rows), at * sizeof(PythonRow), sizeof(PythonRow))) {
      journal_->header().flags.fetch_or(kNoSpace, std::memory_order_relaxed);
      break;
    }
    PythonRow& row = rows[at];
    std::uint64_t held = row.hash.load(std::memory_order_acquire);
    if (held == 0 && row.hash.compare_exchange_strong(held, hash, std::memory_order_acq_rel)) {
      row.first_line = function.first_line;
      memcpy(row.name, function.name, strlen(function.name));
      memcpy(row.file, function.file, strlen(function.file));
      row.complete.store(1, std::memory_order_release);
      return PythonFrame(at, at_line);
    }
    if (held == hash) return PythonFrame(at, at_line);  // equal hashes are taken for equal functions, as in StackTable
  }
  journal_->header().flags.fetch_or(kModulesDropped, std::memory_order_relaxed);
  return PythonFrame(kMaxPythonFunctions, at_line);
}

namespace {

enum class Role : std::uint8_t { Program, CLibrary, Generated, Interpreter, Bridge };

bool Begins(const char* text, const char* with) noexcept { return strncmp(text, with, strlen(with)) == 0; }

Role RoleOf(Journal* journal, std::uint64_t frame) noexcept {
  const std::uint64_t module = FrameModule(frame);
  if (module >= kMaxModules) return Role::Generated;
  const ModuleRow& row = journal->modules()[module];
  if (row.state.load(std::memory_order_acquire) != 2) return Role::Program;
  const char* const slash = strrchr(row.path, '/');  // the path of a complete row is terminated
  const char* const name = slash == nullptr ? row.path : slash + 1;
  if (Begins(name, "libpython") || Begins(name, "python")) return Role::Interpreter;
  if (Begins(name, "libffi") || Begins(name, "_ctypes") || Begins(name, "_cffi_backend")) return Role::Bridge;
  return Begins(name, "libc.so") ? Role::CLibrary : Role::Program;
}

// What the program itself would not name: tracebacks leave these frames out, too.
bool IsImportMachinery(const python::Function& function) noexcept { return Begins(function.file, "<frozen importlib"); }

}  // namespace

std::uint64_t PythonNames::Of(const python::Frame& frame) noexcept {
  python::Identity identity;
  if (!interpreter_->Identify(memory_, frame, &identity)) {
    failed_ = true;
    return 0;
  }
  std::uint64_t encoded = 0;
  if (table_->Recall(identity, &encoded)) return encoded;
  python::Function function;
  int line = 0;
  const python::Described described = interpreter_->Describe(memory_, identity, &function, &line);
  failed_ = failed_ || described == python::Described::Unread;
  if (described == python::Described::Known && !IsImportMachinery(function)) encoded = table_->Encode(function, line);
  if (!failed_) table_->Remember(identity, encoded);
  return encoded;
}

std::size_t Interleave(Journal* journal, const NativeStack& native, std::span<const python::Frame> python, PythonNames* names,
                       std::uint64_t* frames, std::size_t room) noexcept {
  std::size_t written = 0;
  std::size_t next = 0;
  const auto put = [&](std::uint64_t frame) {
    if (frame != 0 && written < room) frames[written++] = frame;
  };
  const auto put_python = [&] {
    const std::uintptr_t of = python[next].native;
    for (; next < python.size() && python[next].native == of; ++next) {
      if (written < room) put(names->Of(python[next]));
    }
  };
  const std::size_t count = native.frames.size();
  bool called = false;     // a frame further inwards says who makes the call
  bool machinery = false;  // the frame before belongs to the interpreter or to a bridge
  for (std::size_t i = 0; i < count && written < room; ++i) {
    const bool last = i + 1 == count;
    const auto lies_here = [&](std::uintptr_t address) {
      return address >= native.lowest[i] && (last || address < native.lowest[i + 1]) && address != 0;
    };
    Role role = RoleOf(journal, native.frames[i]);
    const bool interprets = next < python.size() && lies_here(python[next].native);
    if (interprets) role = Role::Interpreter;
    if (role == Role::Generated && machinery) role = Role::Bridge;  // a closure of libffi, or a trampoline for profilers
    machinery = role == Role::Interpreter || role == Role::Bridge;
    const bool itself = role == Role::Interpreter && !called;
    if (!machinery || itself) put(native.frames[i]);
    if (role != Role::CLibrary) called = true;
    while (next < python.size() && lies_here(python[next].native)) put_python();
  }
  // The native stack ended too early, for example at generated code that nobody can unwind.
  while (native.complete && next < python.size() && written < room) put_python();
  return written;
}

}  // namespace cuaudit::faults
