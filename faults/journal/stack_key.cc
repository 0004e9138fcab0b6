// SPDX-License-Identifier: MIT
#include "faults/journal/stack_key.h"

#include <string.h>

#include <algorithm>

namespace cuaudit::faults {
namespace {

std::string_view BaseName(const char* path, std::size_t length) noexcept {
  std::size_t begin = length;
  while (begin > 0 && path[begin - 1] != '/') --begin;
  return {path + begin, length - begin};
}

std::string_view TextIn(const char* text, std::size_t room) noexcept { return {text, strnlen(text, room)}; }

// Many packages have files of these names, so the name of the package counts, too.
std::string_view PythonFile(std::string_view path) noexcept {
  const std::string_view name = BaseName(path.data(), path.size());
  if (name.size() == path.size() || (name != "__init__.py" && name != "__main__.py")) return name;
  const std::string_view package = BaseName(path.data(), path.size() - name.size() - 1);
  return {package.data(), package.size() + 1 + name.size()};
}

std::uint64_t MixPython(std::uint64_t hash, std::uint64_t frame, const FrameTables& tables) noexcept {
  hash = MixKey(MixKey(hash, kPython), FramePythonLine(frame));
  const PythonRow* const row = FindPython(tables, frame);
  if (row == nullptr) return hash;
  return MixKey(MixKey(hash, TextIn(row->name, sizeof(row->name))), PythonFile(TextIn(row->file, sizeof(row->file))));
}

}  // namespace

std::uint64_t MixKey(std::uint64_t hash, std::uint64_t value) noexcept {
  for (int byte = 0; byte < 8; ++byte) hash = (hash ^ ((value >> (8 * byte)) & 0xff)) * 0x100000001b3U;
  return hash;
}

std::uint64_t MixKey(std::uint64_t hash, std::string_view text) noexcept {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return MixKey(hash, text.size());
}

std::uint64_t HashOfFrames(const std::uint64_t* frames, std::size_t depth) noexcept {
  std::uint64_t hash = 0x9e3779b97f4a7c15U + depth;
  for (std::size_t i = 0; i < depth; ++i) {
    hash ^= frames[i];
    hash *= 0xff51afd7ed558ccdU;
    hash ^= hash >> 32;
  }
  return hash == 0 ? 1 : hash;
}

const PythonRow* FindPython(const FrameTables& tables, std::uint64_t frame) noexcept {
  const std::uint64_t row = FramePythonRow(frame);
  if (row >= tables.python.size() || tables.python[row].complete.load(std::memory_order_acquire) == 0) return nullptr;
  return &tables.python[row];
}

std::uint64_t MixStack(std::uint64_t hash, std::span<const std::uint64_t> frames, const FrameTables& tables) noexcept {
  for (const std::uint64_t frame : frames) {
    const std::uint64_t module = FrameModule(frame);
    if (module == kNoModule) {  // code in no module, such as generated code
      hash = MixKey(hash, kNoModule);
      continue;
    }
    if (module == kPython) {
      hash = MixPython(hash, frame, tables);
      continue;
    }
    const ModuleRow* const row = module < tables.modules.size() ? &tables.modules[module] : nullptr;
    const bool known = row != nullptr && row->state.load(std::memory_order_acquire) == 2;
    if (!known || row->build_id_bytes == 0) {
      hash = MixKey(hash, known ? BaseName(row->path, strnlen(row->path, sizeof(row->path))) : std::string_view());
    } else {
      const std::size_t bytes = std::min<std::size_t>(row->build_id_bytes, sizeof(row->build_id));
      for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ row->build_id[i]) * 0x100000001b3U;
    }
    hash = MixKey(hash, FrameOffset(frame));
  }
  return hash;
}

std::uint64_t CallKey(std::string_view base, std::span<const std::uint64_t> frames, const FrameTables& tables) noexcept {
  const std::uint64_t hash = MixKey(MixKey(kKeySeed, static_cast<std::uint64_t>(RecordKind::Call)), base);
  return MixStack(hash, frames, tables);
}

}  // namespace cuaudit::faults
