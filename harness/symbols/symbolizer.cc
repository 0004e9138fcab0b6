// SPDX-License-Identifier: MIT
#include "harness/symbols/symbolizer.h"

#include <string.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "faults/driver/foreign_runtime.h"
#include "harness/symbols/module_symbols.h"
#include "harness/symbols/python_source.h"

namespace cuaudit::harness {
namespace {

struct Module {
  std::string name;                        // without directory
  std::unique_ptr<ModuleSymbols> symbols;  // null: the file is not used
  struct Place {
    std::vector<report::Frame> frames;
    report::Frame called;  // what the call instruction there names; without a function when that is unknown
  };
  std::map<std::uint64_t, Place> resolved;
};

// True when the function that was called has ended with a call of its own, for which the compiler made a jump: its frame is gone, and what
// it called appears in its place.
bool HasLeftByJump(const report::Frame& called, const std::vector<report::Frame>& inner) {
  if (called.function.empty()) return false;
  if (inner.empty() || inner.back().module != called.module) return true;
  return inner.back().line != 0 && inner.back().function != called.function;
}

// Empty: no module is known there.
std::string_view PathOf(const faults::JournalView& journal, std::uint64_t raw) {
  const std::uint64_t number = faults::FrameModule(raw);
  return number == faults::kNoModule ? std::string_view() : journal.ModulePath(number);
}

std::string Hexadecimal(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 15U];
  }
  return text;
}

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

report::Frame PythonFrame(const faults::JournalView& journal, std::uint64_t raw) {
  const auto text = [](const char* field, std::size_t room) { return std::string(field, strnlen(field, room)); };
  report::Frame frame = {.module = kPythonModule, .line = static_cast<int>(faults::FramePythonLine(raw))};
  const faults::PythonRow* const row = journal.PythonFunction(raw);
  if (row == nullptr) return frame;
  frame.function = text(row->name, sizeof(row->name));
  frame.file = text(row->file, sizeof(row->file));
  return frame;
}

}  // namespace

struct Symbolizer::Impl {
  // By path and build id, because module numbers differ between journals.
  std::map<std::pair<std::string, std::vector<std::uint8_t>>, Module> modules;
  PythonSources python;

  Module& Find(std::string_view path, std::span<const std::uint8_t> build_id) {
    auto key = std::pair(std::string(path), std::vector<std::uint8_t>(build_id.begin(), build_id.end()));
    const auto found = modules.find(key);
    if (found != modules.end()) return found->second;
    Module module;
    module.name = NameOf(path);
    for (const std::string& file : Candidates(key.first, build_id)) {
      // A journal may come from elsewhere and name a pipe, which would wait for a writer.
      std::error_code error;
      if (!std::filesystem::is_regular_file(file, error)) continue;
      module.symbols = ModuleSymbols::Open(file, build_id);
      if (module.symbols != nullptr) break;
    }
    return modules.emplace(std::move(key), std::move(module)).first->second;
  }

  std::string directory;  // of LookIn; empty: none

  // The files that may be this object, the likeliest first.
  std::vector<std::string> Candidates(const std::string& path, std::span<const std::uint8_t> build_id) const {
    std::vector<std::string> files = {path};
    const std::string id = Hexadecimal(build_id);
    const std::string below = id.size() < 4 ? std::string() : "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2);
    if (!directory.empty()) {
      if (!below.empty()) files.insert(files.end(), {directory + below, directory + below + ".debug"});
      files.push_back(directory + "/" + std::string(NameOf(path)));
    }
    if (!below.empty()) files.push_back("/usr/lib/debug" + below + ".debug");
    return files;
  }

  std::vector<report::Frame> Resolve(const faults::JournalView& journal, std::span<const std::uint64_t> stack) {
    std::vector<report::Frame> frames;
    for (const std::uint64_t raw : stack) {
      if (faults::FrameModule(raw) == faults::kPython) {
        frames.push_back(PythonFrame(journal, raw));
        continue;
      }
      const std::string_view path = PathOf(journal, raw);
      if (path.empty()) {
        report::Frame unknown;  // the address of code in no module means nothing in another run
        if (faults::FrameModule(raw) != faults::kNoModule) unknown.offset = faults::FrameOffset(raw);
        frames.push_back(unknown);
        continue;
      }
      Module& module = Find(path, journal.ModuleBuildId(faults::FrameModule(raw)));
      const Module::Place& place = Lookup(&module, faults::FrameOffset(raw));
      if (HasLeftByJump(place.called, frames)) frames.push_back(place.called);
      frames.insert(frames.end(), place.frames.begin(), place.frames.end());
    }
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (frames[i].module != kPythonModule) continue;
      const bool calls_python = i != 0 && frames[i - 1].module == kPythonModule;
      frames[i].once = python.CallsOnce(frames[i].file, frames[i].line, calls_python ? std::string_view(frames[i - 1].function) : "");
    }
    return frames;
  }

  // Whether Trim drops the frame at the outer end. The C library is not opened for that: its debug information is large.
  bool IsStart(const faults::JournalView& journal, const std::uint64_t& raw) {
    if (faults::FrameModule(raw) == faults::kPython) return false;
    const report::Frame whole = {.module = std::string(NameOf(PathOf(journal, raw)))};
    if (IsStartCode(whole)) return true;
    const std::vector<report::Frame> frames = Resolve(journal, {&raw, 1});
    return std::all_of(frames.begin(), frames.end(), IsStartCode);
  }

  static const Module::Place& Lookup(Module* module, std::uint64_t offset) {
    const auto [at, added] = module->resolved.try_emplace(offset);
    Module::Place& place = at->second;
    if (!added) return place;
    // A return address belongs to the instruction before it.
    if (module->symbols != nullptr && offset != 0) {
      place.frames = module->symbols->Lookup(offset - 1);
      if (!place.frames.empty() && place.frames.back().line != 0) place.called = module->symbols->Called(offset - 1);
    }
    if (place.frames.empty()) place.frames.emplace_back();
    for (report::Frame& frame : place.frames) {
      frame.module = module->name;
      frame.offset = offset;
    }
    place.called.module = module->name;
    return place;
  }
};

Symbolizer::Symbolizer() : impl_(std::make_unique<Impl>()) {}
Symbolizer::~Symbolizer() = default;

void Symbolizer::LookIn(const std::string& directory) { impl_->directory = directory; }

std::vector<std::pair<std::string, std::string>> Symbolizer::NotFound() const {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [key, module] : impl_->modules) {
    if (module.symbols == nullptr) files.emplace_back(key.first, Hexadecimal(key.second));
  }
  return files;
}

std::vector<report::Frame> Symbolizer::Resolve(const faults::JournalView& journal, std::uint32_t stack) {
  const std::span<const std::uint64_t> whole = journal.Stack(stack);
  std::size_t end = whole.size();
  while (end > 0 && impl_->IsStart(journal, whole[end - 1])) --end;
  std::vector<report::Frame> frames = impl_->Resolve(journal, whole.first(end));
  const std::size_t inner = frames.size();
  report::Frame start;  // Trim sees that there is start code, not which
  start.module = "libc.so";
  frames.resize(inner + whole.size() - end, start);
  frames = Trim(std::move(frames));
  return frames.size() <= inner ? frames : Trim(impl_->Resolve(journal, whole));
}

std::vector<report::Frame> Symbolizer::Whole(const faults::JournalView& journal, std::uint32_t stack) {
  return impl_->Resolve(journal, journal.Stack(stack));
}

namespace {

using driver::Kind;

// NVIDIA's own libraries have the runtime linked into them, without symbols.
bool IsRuntimeFrame(const report::Frame& frame) {
  return driver::RuntimeFileOf(frame.module).shared ||
         BeginsWithOneOf(frame.module, {"libcublas", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse", "libnpp",
                                        "libnvjpeg", "libnccl", "libnvrtc", "libnvJitLink"}) ||
         frame.function.starts_with("__cudart") || frame.function.find("cuaudit::cudart::") != std::string::npos ||
         frame.file.find("faults/cudart/") != std::string::npos;
}

bool LoadsForTheProgram(const report::Frame& frame) {
  return frame.function.find("cudaLibraryLoad") != std::string::npos || frame.function.find("cudart::LibraryLoad") != std::string::npos;
}

// The drop-in, and what of the runtime calls the driver through a table.
bool IsBetween(const report::Frame& frame) {
  return BeginsWithOneOf(frame.module, {"libcuda.so", "libcuaudit"}) || frame.function.find("cuaudit::faults::") != std::string::npos ||
         frame.function.find("cuaudit::driver::") != std::string::npos ||
         frame.file.find("generated/driver_methods.inc") != std::string::npos || frame.file.find("faults/driver/") != std::string::npos;
}

}  // namespace

bool MayBeOfRuntime(Kind kind) { return kind == Kind::PrimaryContext || kind == Kind::Module || kind == Kind::Library; }

bool IsOfRuntime(Kind kind, const std::vector<report::Frame>& stack) {
  if (!MayBeOfRuntime(kind)) return false;
  const auto caller = std::find_if_not(stack.begin(), stack.end(), IsBetween);
  if (caller == stack.end() || !IsRuntimeFrame(*caller)) return false;
  if (kind == Kind::PrimaryContext) return true;
  // The function that the program called may be the runtime's outermost frame, with a name and no debug information.
  auto outer = std::find_if_not(caller, stack.end(), IsRuntimeFrame);
  if (outer != stack.end()) ++outer;
  return std::none_of(caller, outer, LoadsForTheProgram);
}

}  // namespace cuaudit::harness
