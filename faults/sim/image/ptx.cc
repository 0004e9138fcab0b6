// SPDX-License-Identifier: MIT

#include "faults/sim/image/image.h"

namespace cuaudit::sim {
namespace {

struct Width {
  std::string_view type;
  std::uint32_t bytes;
};
constexpr Width kWidths[] = {{".b8", 1},   {".s8", 1},  {".u8", 1},    {".b16", 2},   {".s16", 2}, {".u16", 2}, {".f16", 2},
                             {".bf16", 2}, {".b32", 4}, {".s32", 4},   {".u32", 4},   {".f32", 4}, {".b64", 8}, {".s64", 8},
                             {".u64", 8},  {".f64", 8}, {".b128", 16}, {".f16x2", 4}, {".pred", 1}};

bool IsName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

// Words, numbers and single characters; comments and strings are skipped.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  std::string_view Next() {
    Skip();
    if (at_ >= text_.size()) return {};
    const std::size_t start = at_;
    if (text_[at_] == '"') {
      ++at_;
      while (at_ < text_.size() && text_[at_] != '"') ++at_;
      if (at_ < text_.size()) ++at_;
      return Slice(start, 1);
    }
    if (text_[at_] == '.' || IsName(text_[at_])) {
      ++at_;
      while (at_ < text_.size() && (IsName(text_[at_]))) ++at_;
      return Slice(start, at_ - start);
    }
    ++at_;
    return Slice(start, 1);
  }

  bool saw_texture = false;  // in the declaration read last
  bool saw_surface = false;
  bool saw_managed = false;

 private:
  // substr may throw and so needs the C++ runtime.
  std::string_view Slice(std::size_t start, std::size_t length) const { return {text_.data() + start, length}; }
  bool Starts(char first, char second) const { return at_ + 1 < text_.size() && text_[at_] == first && text_[at_ + 1] == second; }
  void Skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else if (Starts('/', '/')) {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (Starts('/', '*')) {
        at_ += 2;
        while (at_ < text_.size() && !Starts('*', '/')) ++at_;
        at_ = at_ + 2 < text_.size() ? at_ + 2 : text_.size();
      } else {
        return;
      }
    }
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

std::uint64_t Number(std::string_view word) {
  std::uint64_t value = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return value;
    if (value > (~std::uint64_t{0} >> 4) / 10) return ~std::uint64_t{0} >> 4;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

bool IsNumber(std::string_view word) { return !word.empty() && word[0] >= '0' && word[0] <= '9'; }

std::uint32_t WidthOf(std::string_view type) {
  for (const Width& row : kWidths) {
    if (row.type == type) return row.bytes;
  }
  return 0;
}

// ".param .align 8 .b8 name[16]" up to ',' or ')'; answers the terminator.
std::string_view Declaration(Lexer& lexer, std::string_view* name, std::uint64_t* bytes, std::uint32_t* alignment) {
  std::uint32_t width = 0;
  std::uint64_t count = 1;
  *alignment = 0;
  lexer.saw_texture = lexer.saw_surface = lexer.saw_managed = false;
  for (;;) {
    const std::string_view word = lexer.Next();
    if (word == ".texref") lexer.saw_texture = true;
    if (word == ".surfref") lexer.saw_surface = true;
    if (word.empty() || word == "," || word == ")" || word == ";" || word == "=" || word == "{" || word == "}") {
      if (*alignment == 0) *alignment = width == 0 ? 1 : width;
      *bytes = width * count;
      return word;
    }
    if (word == ".attribute") {  // "(.managed)", "(.managed, .unified(1, 2))"
      int depth = 0;
      for (std::string_view part = lexer.Next(); !part.empty(); part = lexer.Next()) {
        if (part == ".managed") lexer.saw_managed = true;
        depth += part == "(" ? 1 : part == ")" ? -1 : 0;
        if (depth == 0) break;
      }
    } else if (word == ".align") {
      *alignment = static_cast<std::uint32_t>(Number(lexer.Next()) & 0xffffU);
    } else if (WidthOf(word) != 0) {
      width = WidthOf(word);
    } else if (word == ".v2") {
      count *= 2;
    } else if (word == ".v4") {
      count *= 4;
    } else if (word == "[") {
      const std::uint64_t length = Number(lexer.Next());
      count = length != 0 && count < (std::uint64_t{1} << 40) / length ? count * length : count;
    } else if (word[0] != '.' && word != "]" && !IsNumber(word)) {
      *name = word;
    }
  }
}

// The list after a kernel's name; false when the text ends inside it.
bool Parameters(Arena& arena, Lexer& lexer, Symbol* symbol) {
  std::uint64_t offset = 0;
  symbol->parameters_known = true;
  symbol->parameters.Truncate(0);
  for (;;) {
    std::string_view name;
    std::uint64_t bytes = 0;
    std::uint32_t alignment = 1;
    const std::string_view end = Declaration(lexer, &name, &bytes, &alignment);
    if (bytes != 0) {
      offset = (offset + alignment - 1) / alignment * alignment;
      const Parameter parameter{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)};
      if (!symbol->parameters.Push(arena, parameter)) return false;
      offset += bytes;
    }
    if (end == ")") return true;
    if (end != ",") return false;
  }
}

}  // namespace

CUresult ParsePtx(Arena& arena, std::string_view text, Image* image) noexcept {
  Lexer lexer(text);
  std::string_view word = lexer.Next();
  if (word != ".version") return CUDA_ERROR_INVALID_IMAGE;
  bool target = false;
  int depth = 0;
  Symbol* kernel = nullptr;
  while (!(word = lexer.Next()).empty()) {
    if (word == "{") {
      ++depth;
    } else if (word == "}") {
      if (--depth < 0) return CUDA_ERROR_INVALID_PTX;
    } else if (depth != 0) {
      if (word != ".shared" || kernel == nullptr) continue;
      std::string_view name;
      std::uint64_t bytes = 0;
      std::uint32_t alignment = 1;
      if (Declaration(lexer, &name, &bytes, &alignment) == "}") --depth;
      kernel->shared_bytes += static_cast<std::uint32_t>(bytes);
    } else if (word == ".target") {
      target = true;
    } else if (word == ".func") {
      kernel = nullptr;
    } else if (word == ".entry") {
      const std::string_view name = lexer.Next();
      if (name.empty() || !(IsName(name[0]))) return CUDA_ERROR_INVALID_PTX;
      kernel = AddSymbol(arena, image, name, true);
      if (kernel == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
      kernel->parameters_known = true;
      word = lexer.Next();
      if (word == "(" && !Parameters(arena, lexer, kernel)) return CUDA_ERROR_INVALID_PTX;
      if (word == "{") ++depth;
    } else if (word == ".reqntid" && kernel != nullptr) {
      Lexer ahead = lexer;
      for (std::uint32_t& each : kernel->required_block) {
        each = static_cast<std::uint32_t>(Number(ahead.Next()));
        lexer = ahead;
        if (ahead.Next() != ",") break;
      }
      for (std::uint32_t& each : kernel->required_block) each = each == 0 ? 1 : each;
    } else if (word == ".maxntid" && kernel != nullptr) {
      const std::uint64_t threads = Number(lexer.Next());
      if (threads != 0 && threads < kernel->max_threads) kernel->max_threads = static_cast<std::uint32_t>(threads);
    } else if (word == ".global" || word == ".const") {
      std::string_view name;
      std::uint64_t bytes = 0;
      std::uint32_t alignment = 1;
      const std::string_view end = Declaration(lexer, &name, &bytes, &alignment);
      if (end.empty()) return CUDA_ERROR_INVALID_PTX;
      if (end == "{") ++depth;
      const bool reference = lexer.saw_texture || lexer.saw_surface;
      if (name.empty() || (bytes == 0 && !reference)) continue;
      Symbol* const variable = AddSymbol(arena, image, name, false);
      if (variable == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
      variable->bytes = bytes;
      variable->managed = lexer.saw_managed;
      variable->texture = lexer.saw_texture;
      variable->surface = lexer.saw_surface;
    }
  }
  return depth == 0 && target ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

}  // namespace cuaudit::sim
