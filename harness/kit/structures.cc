// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "harness/kit/structures.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "faults/driver/call_shape.h"

namespace cuaudit::harness {

const char kModuleText[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .global .align 4 .b8 variable[64];\n.visible .entry kernel()\n{\n ret;\n}\n";

namespace {

#define CUAUDIT_STRUCTURE(...)
#define CUAUDIT_FUNCTION(type, parameters) \
  void CUDA_CB nothing_##type parameters {}
// The parameters have names for the text of a reducer.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "harness/kit/structures.def"
#pragma GCC diagnostic pop
#undef CUAUDIT_FUNCTION
#undef CUAUDIT_STRUCTURE

using Fill = void (*)(std::uint64_t object, void* memory, void* room);

struct Row {
  std::string_view type;
  driver::Kind kind;
  const char* members;
  Fill fill;
};

// The initialisers are those of a C program: they cast as C does, and leave out members that are zero.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define OBJECT object
#define ROOM memory
#define CUAUDIT_TEXT_OF(...) #__VA_ARGS__
#define CUAUDIT_FUNCTION(type, parameters)
constexpr Row kRows[] = {
#define CUAUDIT_STRUCTURE(type, kind, ...)                                                       \
  {#type, driver::Kind::kind, #__VA_ARGS__, [](std::uint64_t object, void* memory, void* room) { \
     const type value = {__VA_ARGS__};                                                           \
     std::memcpy(room, &value, sizeof(value));                                                   \
   }},
#include "harness/kit/structures.def"
#undef CUAUDIT_STRUCTURE
};
#undef CUAUDIT_FUNCTION
#undef OBJECT
#undef ROOM
#pragma GCC diagnostic pop

struct FunctionRow {
  std::string_view type;
  const char* parameters;
  const void* function;
};
#define CUAUDIT_STRUCTURE(...)
#define CUAUDIT_FUNCTION(type, parameters) {#type, #parameters, reinterpret_cast<const void*>(&nothing_##type)},
const FunctionRow kFunctions[] = {
#include "harness/kit/structures.def"
};
#undef CUAUDIT_FUNCTION
#undef CUAUDIT_STRUCTURE

const Row* RowOf(std::string_view type, driver::Kind kind) {
  const auto same = [&](const Row& row) { return row.type == type && (row.kind == kind || row.kind == driver::Kind::None); };
  const auto* const found = std::find_if(std::begin(kRows), std::end(kRows), same);
  return found == std::end(kRows) ? nullptr : found;
}

const FunctionRow* FunctionOf(std::string_view type) {
  const auto same = [&](const FunctionRow& row) { return row.type == type; };
  const auto* const found = std::find_if(std::begin(kFunctions), std::end(kFunctions), same);
  return found == std::end(kFunctions) ? nullptr : found;
}

void Replace(const std::string& word, const std::string& with, std::string* text) {
  for (std::size_t at = text->find(word); at != std::string::npos; at = text->find(word, at + with.size())) {
    text->replace(at, word.size(), with);
  }
}

}  // namespace

bool KnowsStructure(std::string_view type, driver::Kind kind) { return RowOf(type, kind) != nullptr; }

void FillStructure(std::string_view type, driver::Kind kind, std::uint64_t object, void* memory, void* room) {
  const Row* const row = RowOf(type, kind);
  if (row != nullptr) row->fill(object, memory, room);
}

std::string StructureText(std::string_view type, driver::Kind kind, const std::string& object, const std::string& memory) {
  const Row* const row = RowOf(type, kind);
  std::string text = row == nullptr ? "0" : row->members;
  Replace("OBJECT", object, &text);
  Replace("ROOM", memory, &text);
  return "{" + text + "}";
}

const void* NothingFunction(std::string_view type) {
  const FunctionRow* const row = FunctionOf(type);
  return row == nullptr ? nullptr : row->function;
}

std::string FunctionText(std::string_view type) {
  const FunctionRow* const row = FunctionOf(type);
  const std::string parameters = row == nullptr ? "(void)" : row->parameters;
  return "static void CUDA_CB nothing_" + std::string(type) + parameters + " {}";
}

}  // namespace cuaudit::harness
