// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/driver_choice.h"
#include "harness/cli/session.h"
#include "harness/process/program.h"
#include "harness/process/shell_lines.h"

namespace cuaudit::harness {
namespace {

// Entries of cuaudit in a variable that holds a list.
struct ListVariable {
  const char* name;
  const char* separators;
  std::vector<std::string> ours;
  bool set;  // false: the entries are taken out again
};

std::optional<std::string> Current(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The list that the variable is to have: ours in front, once, however often the lines were evaluated before.
std::optional<std::string> Changed(const ListVariable& variable) {
  const std::string theirs = WithoutEntries(Current(variable.name).value_or(""), variable.ours, variable.separators);
  std::string list;
  if (variable.set) {
    for (const std::string& entry : variable.ours) list += (list.empty() ? "" : ":") + entry;
  }
  if (!theirs.empty()) list += (list.empty() ? "" : ":") + theirs;
  return list.empty() ? std::nullopt : std::optional<std::string>(std::move(list));
}

// What must change in the environment for the simulated driver (`on`), or for what was there before.
std::vector<Variable> Changes(const Machine& machine, const std::string& world, bool on, bool preload) {
  std::vector<std::string> directories = {machine.drop_in_dir};
  std::vector<std::string> libraries = {machine.drop_in_dir + "/libcuda.so.1"};
  if (!machine.cudart_dir.empty()) {
    directories.push_back(machine.cudart_dir);
    for (const char* const soname : {"libcudart.so.13", "libcudart.so.12"}) {
      const std::string file = OwnRuntime(machine, soname);
      if (!file.empty()) libraries.push_back(file);
    }
  }
  std::vector<Variable> variables;
  // What is set is said even where it is set already, so that the lines can be kept in a file.
  const auto add = [&variables](const char* name, std::optional<std::string> value, bool set) {
    if (set || value != Current(name)) variables.push_back({name, std::move(value)});
  };
  add("LD_LIBRARY_PATH", Changed({"LD_LIBRARY_PATH", ":;", directories, on}), on);
  add("LIBRARY_PATH", Changed({"LIBRARY_PATH", ":", directories, on}), on);  // where compilers look for -lcuda, after all -L
  add("LD_PRELOAD", Changed({"LD_PRELOAD", ": ", libraries, on && preload}), on && preload);
  add("CUAUDIT_OPTIONS", on ? std::optional<std::string>("driver=sim" + (world.empty() ? "" : ";" + world)) : std::nullopt, on);
  return variables;
}

// The loader splits LD_LIBRARY_PATH at colons and semicolons, and LD_PRELOAD at spaces, too.
Status CheckPlace(const Machine& machine, bool preload) {
  if (!machine.drop_in) return {Exit::Environment, machine.drop_in_dir + "/libcuda.so.1: not found: the installation is not whole"};
  if (preload) return CheckDropInPath(machine.drop_in_dir);
  if (machine.drop_in_dir.find_first_of(":;") == std::string::npos) return {};
  return {Exit::Environment, "'" + machine.drop_in_dir + "': the loader takes no library from a directory with ':' or ';' in its path: " +
                                 "install cuaudit elsewhere"};
}

Exit RunWith(const std::vector<Variable>& variables, const std::vector<std::string>& command) {
  const Result<Program> program = ResolveProgram(command.front());
  if (!program.ok()) return Refuse(program.status());
  for (const Variable& variable : variables) {
    const char* const name = variable.name.c_str();
    if ((variable.value.has_value() ? setenv(name, variable.value->c_str(), 1) : unsetenv(name)) != 0)
      return Refuse({Exit::Failure, variable.name + ": " + std::strerror(errno)});
  }
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  execvp(words.front(), words.data());
  return Refuse({Exit::Usage, command.front() + ": " + std::strerror(errno)});
}

}  // namespace

Exit EnvCommand(const Options& options) {
  const Result<std::string> world = WorldText(options);
  if (!world.ok()) return Refuse(world.status());
  const std::string orders = ";" + Current("CUAUDIT_OPTIONS").value_or("");
  if (orders.find(";journal=") != std::string::npos)
    return Refuse({Exit::Usage, "an audit is under way here: CUAUDIT_OPTIONS has its orders, and other ones would end it unseen"});
  const Result<Machine> machine = LookAround("");
  if (!machine.ok()) return Refuse(machine.status());
  const Result<ChosenDriver> chosen = ChooseDriver(options.off ? "sim" : options.driver, *machine);
  if (!chosen.ok()) return Refuse(chosen.status());
  const bool on = !options.off && chosen->driver == DriverChoice::Simulated;
  if (!on && !world->empty())
    return Refuse({Exit::Usage, *world + ": only the simulated driver can be asked for it: expected --driver=sim, and no --off"});
  const Status place = on ? CheckPlace(*machine, options.preload) : Status();
  if (!place.ok()) return Refuse(place);
  if (options.driver == "auto" && !options.off) Say(std::string("driver: ") + (on ? "simulated: " : "real: ") + chosen->why);
  const std::vector<Variable> changes = Changes(*machine, *world, on, options.preload);
  if (!options.program.empty()) return RunWith(changes, options.program);
  return Print(ShellLines(options.shell == "fish" ? Shell::Fish : Shell::Posix, changes));
}

}  // namespace cuaudit::harness
