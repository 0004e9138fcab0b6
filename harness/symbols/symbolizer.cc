// SPDX-License-Identifier: MIT
#include "harness/symbols/symbolizer.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "harness/symbols/module_symbols.h"

namespace cuaudit::harness {
namespace {

struct Module {
  std::string name;                        // without directory
  std::unique_ptr<ModuleSymbols> symbols;  // null: the file is not used
  std::map<std::uint64_t, std::vector<report::Frame>> resolved;
};

}  // namespace

struct Symbolizer::Impl {
  // By path and build id, because module numbers differ between journals.
  std::map<std::pair<std::string, std::vector<std::uint8_t>>, Module> modules;

  Module& Find(std::string_view path, std::span<const std::uint8_t> build_id) {
    auto key = std::pair(std::string(path), std::vector<std::uint8_t>(build_id.begin(), build_id.end()));
    const auto found = modules.find(key);
    if (found != modules.end()) return found->second;
    Module module;
    module.name = path.substr(path.rfind('/') + 1);
    module.symbols = ModuleSymbols::Open(key.first, build_id);
    return modules.emplace(std::move(key), std::move(module)).first->second;
  }

  static const std::vector<report::Frame>& Lookup(Module* module, std::uint64_t offset) {
    const auto [at, added] = module->resolved.try_emplace(offset);
    if (!added) return at->second;
    // A return address belongs to the instruction before it.
    if (module->symbols != nullptr && offset != 0) at->second = module->symbols->Lookup(offset - 1);
    if (at->second.empty()) at->second.emplace_back();
    for (report::Frame& frame : at->second) {
      frame.module = module->name;
      frame.offset = offset;
    }
    return at->second;
  }
};

Symbolizer::Symbolizer() : impl_(std::make_unique<Impl>()) {}
Symbolizer::~Symbolizer() = default;

std::vector<report::Frame> Symbolizer::Resolve(const faults::JournalView& journal, std::uint32_t stack) {
  std::vector<report::Frame> frames;
  for (const std::uint64_t raw : journal.Stack(stack)) {
    const std::uint64_t number = faults::FrameModule(raw);
    const std::string_view path = number == faults::kNoModule ? std::string_view() : journal.ModulePath(number);
    if (path.empty()) {
      report::Frame unknown;
      unknown.offset = faults::FrameOffset(raw);
      frames.push_back(unknown);
      continue;
    }
    Module& module = impl_->Find(path, journal.ModuleBuildId(number));
    const std::vector<report::Frame>& resolved = Impl::Lookup(&module, faults::FrameOffset(raw));
    frames.insert(frames.end(), resolved.begin(), resolved.end());
  }
  return Trim(std::move(frames));
}

}  // namespace cuaudit::harness
