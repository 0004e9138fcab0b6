// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "harness/kit/parameters.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include "faults/driver/call_shape.h"

namespace cuaudit::harness {
namespace {

constexpr std::string_view kDeclared[] = {
#define CUAUDIT_PARAMS(id, parameters, arguments) #parameters,
#include "driver_params.inc"
#undef CUAUDIT_PARAMS
};
// The rows of driver_params.inc, so that they need not stand in the order of CallId.
constexpr driver::CallId kRows[] = {
#define CUAUDIT_PARAMS(id, parameters, arguments) driver::CallId::id,
#include "driver_params.inc"
#undef CUAUDIT_PARAMS
};
static_assert(sizeof(kRows) / sizeof(kRows[0]) == sizeof(kDeclared) / sizeof(kDeclared[0]));

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool IsNameLetter(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "CUarray * pHandle"
ParameterText Parse(std::string_view declared) {
  declared = Trimmed(declared);
  std::size_t at = declared.size();
  while (at > 0 && IsNameLetter(declared[at - 1])) --at;
  return {std::string(Trimmed(declared.substr(0, at))), std::string(declared.substr(at))};
}

std::vector<ParameterText> ParseAll(std::string_view declared) {
  std::vector<ParameterText> parameters;
  declared = declared.substr(1, declared.size() - 2);
  while (!Trimmed(declared).empty() && Trimmed(declared) != "void") {
    const std::size_t comma = declared.find(',');
    parameters.push_back(Parse(declared.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    declared.remove_prefix(comma + 1);
  }
  return parameters;
}

}  // namespace

std::string ParameterText::pointee() const {
  std::string_view text = type;
  if (constant()) text.remove_prefix(6);
  if (!text.empty() && text.back() == '*') text.remove_suffix(1);
  return std::string(Trimmed(text));
}

std::span<const ParameterText> ParametersOf(driver::CallId call) {
  static const auto* const all = [] {
    auto* const table = new std::vector<std::vector<ParameterText>>(driver::kCallCount);
    for (std::size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); ++i) (*table)[driver::Index(kRows[i])] = ParseAll(kDeclared[i]);
    return table;
  }();
  return (*all)[driver::Index(call)];
}

std::string DeclaredParameters(driver::CallId call) {
  std::string text;
  for (const ParameterText& one : ParametersOf(call)) {
    text += (text.empty() ? "" : ", ") + one.type + (one.pointer() ? "" : " ") + one.name;
  }
  return text.empty() ? "void" : text;
}

bool NamesAVariable(driver::CallId call) {
  const driver::BaseId base = driver::BaseOf(call);
  return base == driver::BaseId::ModuleGetGlobal || base == driver::BaseId::LibraryGetGlobal || base == driver::BaseId::LibraryGetManaged;
}

bool WaitsForValue(driver::BaseId base) { return base == driver::BaseId::StreamWaitValue32 || base == driver::BaseId::StreamWaitValue64; }

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
constexpr Row kStructures[] = {
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
  const auto* const found = std::find_if(std::begin(kStructures), std::end(kStructures), same);
  return found == std::end(kStructures) ? nullptr : found;
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

namespace {

// As faults/shim/call_record.cc reads it.
CUstreamAttrValue StreamAttribute(std::uint64_t attribute, std::uint64_t number, void* memory) {
  CUstreamAttrValue value = {};
  if (attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) {
    value.accessPolicyWindow.base_ptr = memory;
    value.accessPolicyWindow.num_bytes = number;
    value.accessPolicyWindow.hitRatio = 1;
    value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
  } else if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) {
    value.memSyncDomainMap = {static_cast<unsigned char>(number), static_cast<unsigned char>(number >> 8U)};
  } else {
    value.priority = static_cast<int>(number);  // any number of 32 bits
  }
  return value;
}

bool IsOfStream(driver::CallId call) { return driver::BaseOf(call) == driver::BaseId::StreamSetAttribute; }

}  // namespace

void FillPointee(driver::CallId call, std::uint64_t key, std::uint64_t number, void* memory, void* room) {
  if (!IsOfStream(call)) {
    std::memcpy(room, &number, sizeof(number));
    return;
  }
  const CUstreamAttrValue value = StreamAttribute(key, number, memory);
  std::memcpy(room, &value, sizeof(value));
}

std::string PointeeText(driver::CallId call, std::uint64_t key, std::uint64_t number) {
  if (!IsOfStream(call)) return fmt::format("&(cuuint64_t){{{}ULL}}", number);
  const auto member = [number](const char* name) {
    return fmt::format("&(CUstreamAttrValue){{.{} = {}}}", name, static_cast<int>(number));
  };
  switch (key) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      return fmt::format(
          "&(CUstreamAttrValue){{.accessPolicyWindow = {{.base_ptr = room, .num_bytes = {}, .hitRatio = 1, "
          ".hitProp = CU_ACCESS_PROPERTY_PERSISTING}}}}",
          number);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      return fmt::format("&(CUstreamAttrValue){{.memSyncDomainMap = {{{}, {}}}}}", number & 0xffU, number >> 8U);
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      return member("syncPolicy");
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return member("memSyncDomain");
    default:
      return member("priority");
  }
}

}  // namespace cuaudit::harness
