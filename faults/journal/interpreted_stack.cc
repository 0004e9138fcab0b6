// SPDX-License-Identifier: MIT
#include "faults/journal/interpreted_stack.h"

#include <string.h>

namespace cuaudit::faults {
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
