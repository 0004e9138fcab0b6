// SPDX-License-Identifier: MIT
#include "harness/kit/reducer_text.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/driver/shape.h"
#include "harness/kit/parameters.h"
#include "harness/verdict/context/counted_places.h"

namespace cuaudit::harness {
namespace {

std::string Number(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof(text), number < 65536 ? "%llu" : "%lluULL", static_cast<unsigned long long>(number));
  return text;
}

// The letters of a variable's name.
const char* Stem(const CallVariable& variable) {
  if (variable.host_bytes != 0) return "host";
  const std::pair<const char*, const char*> stems[] = {
      {"CUcontext", "context"},   {"CUstream", "stream"},        {"CUevent", "event"},
      {"CUdeviceptr", "memory"},  {"void *", "pinned"},          {"CUmodule", "module"},
      {"CUfunction", "function"}, {"CUlibrary", "library"},      {"CUkernel", "kernel"},
      {"CUgraph", "graph"},       {"CUgraphExec", "executable"}, {"CUgraphNode", "node"},
      {"CUmemoryPool", "pool"},   {"CUarray", "array"},          {"CUmipmappedArray", "mipmapped"},
      {"CUtexObject", "texture"}, {"CUsurfObject", "surface"},   {"CUmemGenericAllocationHandle", "physical"},
      {"CUuserObject", "object"}, {"CUlinkState", "link"},       {"CUdevice", "device"}};
  for (const auto& [type, stem] : stems) {
    if (variable.type == type) return stem;
  }
  return "value";
}

class Writer {
 public:
  Writer(const CallList& list, bool by_place) : list_(list), by_place_(by_place) { NameVariables(); }

  std::string Text(const std::vector<std::string>& heading) {
    std::string body;
    AddStage(0, "  ", &body);
    const std::string caller = in_two_ ? Caller() : "";
    std::string text;
    for (const std::string& line : heading) text += "// " + CommentText(line) + "\n";
    text += "#include <cuda.h>\n#include <stdlib.h>\n\n";
    for (const driver::CallId call : undeclared_) {
      text += "// The version that the program calls; cuda.h names a newer one.\nCUresult CUDAAPI " + std::string(driver::Name(call)) +
              "(" + DeclaredParameters(call) + ");\n";
    }
    if (!undeclared_.empty()) text += "\n";
    for (const std::string& type : functions_) text += FunctionText(type) + "\n";
    if (!functions_.empty()) text += "\n";
    if (image_) text += ImageText() + "\n";
    for (const int variable : used_) {
      const CallVariable& one = Of(variable);
      if (one.host_bytes != 0 && given_.count(variable) == 0) {
        text += "static _Alignas(4096) char " + names_[variable] + "[" + Number(one.host_bytes) + "];\n";
      }
    }
    for (const std::string& helper : helpers_) text += helper;
    if (room_) text += "static _Alignas(4096) char room[65536];  // what a call reads or writes and nobody looks at\n";
    if (in_two_) text += Declarations("static ");
    text += text.ends_with("\n\n") ? "" : "\n";
    text += in_two_ ? "// The function that does not put back what it changed.\nstatic int leaves_it_changed(void) {\n"
                    : "static int lifecycle(void) {\n";
    text += in_two_ ? "" : Declarations("  ");
    for (const int variable : given_) {
      if (in_two_) text += "  " + names_[variable] + " = " + NewMemory(variable);
    }
    if (list_.has_faults()) text += "  CUresult result;\n";
    text += body + "}\n\n" + caller + kMain;
    return text;
  }

 private:
  static constexpr const char* kMain =
      "int main(int argc, char **argv) {\n"
      "  int cycles = argc > 1 ? atoi(argv[1]) : 2;\n"
      "  int failed = 0;\n"
      "  for (; cycles > 0; --cycles) failed |= lifecycle();\n"
      "  return failed;\n"
      "}\n";

  std::string Declarations(const std::string& before) {
    std::string text;
    for (const int variable : used_) {
      const CallVariable& one = Of(variable);
      const bool pointer = one.type.back() == '*';
      if (given_.count(variable) != 0) text += before + "void *" + names_[variable] + " = " + (in_two_ ? "0;\n" : NewMemory(variable));
      else if (one.host_bytes == 0) text += before + one.type + (pointer ? "" : " ") + names_[variable] + " = 0;\n";
    }
    return text;
  }

  std::string NewMemory(int variable) const {
    const std::uint64_t bytes = (Of(variable).host_bytes + 4095) / 4096 * 4096;
    return "aligned_alloc(4096, " + Number(bytes) + ");  // new in each lifecycle: the driver may still hold it\n";
  }

  // Makes the calls that follow the function: rules that ask whether it has returned see another one.
  std::string Caller() {
    std::string text = "static int lifecycle(void) {\n  const int path = leaves_it_changed();\n";
    for (std::size_t path = 0; path < list_.stages.size(); ++path) {
      const bool is_last = path + 1 == list_.stages.size();
      std::string calls;
      AddSteps(is_last ? list_.stages[path].steps : list_.stages[path].rest, true, "    ", &calls);
      if (!calls.empty()) text += "  if (path == " + std::to_string(path) + ") {\n" + calls + "  }\n";
    }
    return text + "  return path != 0;\n}\n\n";
  }

  const CallVariable& Of(int variable) const { return list_.variables[static_cast<std::size_t>(variable)]; }

  void Note(const Step& step) {
    const driver::EffectRow& row = driver::EffectOf(driver::BaseOf(step.call));
    if (by_place_ && IsCountedByPlace(row.kind)) ++made_[{step.caller, step.call}];
    if (row.effect == driver::Effect::AcquiresGiven && row.object >= 0) {
      const CallValue& value = step.values[static_cast<std::size_t>(row.object)];
      if (value.variable != kNoVariable && Of(value.variable).host_bytes != 0) given_.insert(value.variable);
    }
    for (const CallValue& value : step.values) {
      if (value.variable != kNoVariable) used_.insert(value.variable);
    }
    in_two_ = in_two_ || step.goes_on;
  }

  void NameVariables() {
    for (const Stage& stage : list_.stages) {
      for (const Step& step : stage.steps) Note(step);
      for (const Step& step : stage.rest) Note(step);
      if (stage.failing) Note(stage.failing->step);
    }
    std::map<std::string, int> total;
    for (const int variable : used_) ++total[Stem(Of(variable))];
    std::map<std::string, int> given;
    for (const int variable : used_) {
      const std::string stem = Stem(Of(variable));
      names_[variable] = total[stem] == 1 ? stem : stem + std::to_string(++given[stem]);
    }
  }

  // The name of the function; a version that cuda.h does not declare under its own name is declared by the reducer.
  std::string Function(driver::CallId call) {
    const driver::BaseRow& base = driver::kBases[driver::Index(driver::BaseOf(call))];
    if (base.current == call) return std::string(base.name);
    undeclared_.insert(call);
    return std::string(driver::Name(call));
  }

  std::string Value(const Step& step, const CallValue& value, const ParameterText& parameter, std::size_t index) {
    switch (value.is) {
      case CallValue::Is::Number:
        if (parameter.type == "float") return std::to_string(std::bit_cast<float>(static_cast<std::uint32_t>(value.number))) + "f";
        return driver::ShapeOf(step.call).parameter[index].size == 4 && value.number > 0x7fffffffU && parameter.type != "unsigned int"
                   ? "(" + parameter.type + ")" + Number(value.number)
                   : Number(value.number);
      case CallValue::Is::Variable: {
        const std::string& name = names_[value.variable];
        const bool same = Of(value.variable).type == parameter.type;
        if (value.number == 0) return same ? name : "(" + parameter.type + ")" + name;
        const bool pointer = parameter.pointer();
        return (pointer ? "(char *)" : "(" + parameter.type + ")") + name + " + " + Number(value.number);
      }
      case CallValue::Is::Output:
      case CallValue::Is::Exchange:
        return "&" + names_[value.variable];
      case CallValue::Is::Pointee: {
        if (value.variable != kNoVariable) return "&" + names_[value.variable];
        const std::string text = PointeeText(step.call, step.values[1].number, value.number);
        room_ = room_ || text.find("room") != std::string::npos;
        return text;
      }
      case CallValue::Is::Structure: {
        const std::string type = parameter.pointer() ? parameter.pointee() : parameter.type;
        const std::string object = value.variable == kNoVariable ? "0" : names_[value.variable];
        const std::string text = StructureText(type, value.kind, object, "room");
        room_ = room_ || text.find("room") != std::string::npos;
        if (const std::size_t at = text.find("nothing_"); at != std::string::npos) {
          functions_.insert(text.substr(at + 8, text.find_first_of(",} ", at) - at - 8));
        }
        return (parameter.pointer() ? "&(" : "(") + type + ")" + text;
      }
      case CallValue::Is::Text:
        return NamesAVariable(step.call) ? "\"variable\"" : "\"kernel\"";
      case CallValue::Is::Image:
        image_ = true;
        return "kModule";
      case CallValue::Is::Function:
        functions_.insert(parameter.type);
        return "&nothing_" + parameter.type;
      case CallValue::Is::Room:
        room_ = true;
        return "(" + parameter.type + ")room";
      case CallValue::Is::Nothing:
        return "0";
    }
    return "0";
  }

  std::string Helper(const Step& step) {
    const auto [known, made] = helper_of_.try_emplace({step.caller, step.call}, "instruction" + std::to_string(helper_of_.size() + 1));
    if (!made) return known->second;
    std::string arguments;
    for (const ParameterText& one : ParametersOf(step.call)) arguments += (arguments.empty() ? "" : ", ") + one.name;
    helpers_.push_back("// One instruction of the program" + (step.place.empty() ? std::string() : ": " + CommentText(step.place)) +
                       "\nstatic CUresult " + known->second + "(" + DeclaredParameters(step.call) + ") { return " + Function(step.call) +
                       "(" + arguments + "); }\n");
    return known->second;
  }

  std::string Call(const Step& step) {
    const auto shared = made_.find({step.caller, step.call});
    const bool helped = shared != made_.end() && shared->second > 1;
    std::string text = (helped ? Helper(step) : Function(step.call)) + "(";
    const std::span<const ParameterText> parameters = ParametersOf(step.call);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      text += (i == 0 ? "" : ", ") + Value(step, step.values[i], parameters[i], i);
    }
    return text + ")";
  }

  static std::string Place(const Step& step) { return step.place.empty() ? std::string() : "  // " + CommentText(step.place); }

  // What variables must hold before the call.
  std::string Before(const Step& step, const std::string& indent) {
    std::string text;
    for (const CallValue& value : step.values) {
      if (value.is == CallValue::Is::Exchange) text += indent + names_[value.variable] + " = " + Number(value.number) + ";\n";
    }
    return text;
  }

  // The steps that follow the function that does not put back what it changed, or the others.
  void AddSteps(const std::vector<Step>& steps, bool goes_on, const std::string& indent, std::string* text) {
    for (const Step& step : steps) {
      if (step.goes_on == goes_on) *text += Before(step, indent) + indent + Call(step) + ";" + Place(step) + "\n";
    }
  }

  // What the function answers is the path that it took.
  std::string Return(std::size_t path) const { return "return " + std::to_string(in_two_ ? path : std::min<std::size_t>(path, 1)) + ";\n"; }

  void AddStage(std::size_t number, const std::string& indent, std::string* text) {
    const Stage& stage = list_.stages[number];
    AddSteps(stage.steps, false, indent, text);
    if (!stage.failing) {
      *text += indent + Return(number);
      return;
    }
    *text +=
        Before(stage.failing->step, indent) + indent + "result = " + Call(stage.failing->step) + ";" + Place(stage.failing->step) + "\n";
    *text += indent + "if (result != CUDA_SUCCESS) {  // the call that fails\n";
    AddStage(number + 1, indent + "  ", text);
    *text += indent + "}\n";
    AddSteps(stage.rest, false, indent, text);
    *text += indent + Return(number);
  }

  static std::string ImageText() {
    std::string text = "// Stands for the program's modules: one empty kernel.\nstatic const char kModule[] =\n    \"";
    for (const char* at = kModuleText; *at != '\0'; ++at) {
      if (*at == '\n') text += at[1] == '\0' ? "\\n\";\n" : "\\n\"\n    \"";
      else text += *at;
    }
    return text;
  }

  const CallList& list_;
  const bool by_place_;
  std::set<int> used_;
  std::set<int> given_;  // host memory that the driver is given to keep
  std::map<int, std::string> names_;
  std::map<std::pair<std::uint32_t, driver::CallId>, int> made_;  // calls of counted things, by instruction
  std::map<std::pair<std::uint32_t, driver::CallId>, std::string> helper_of_;
  std::vector<std::string> helpers_;
  std::set<driver::CallId> undeclared_;
  std::set<std::string> functions_;
  bool in_two_ = false;  // calls follow the function that does not put back what it changed
  bool image_ = false;
  bool room_ = false;
};

}  // namespace

std::string CommentText(const std::string& text) {
  constexpr std::size_t kMost = 200;
  std::string safe;
  for (const char c : text.substr(0, kMost)) safe += c >= ' ' && c < 0x7f ? c : '?';
  if (text.size() > kMost) safe += "...";
  while (!safe.empty() && safe.back() == '\\') safe.pop_back();  // would take the next line into the comment
  return safe;
}

std::string ReducerText(const CallList& list, const std::vector<std::string>& heading, bool by_place) {
  return Writer(list, by_place).Text(heading);
}

}  // namespace cuaudit::harness
