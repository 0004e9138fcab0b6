// SPDX-License-Identifier: MIT
#include "faults/interpose/options.h"

#include <stdio.h>
#include <string.h>

#include <string_view>

namespace cuaudit::faults {
namespace {

constexpr std::string_view kKeys[] = {
#define CUAUDIT_OPTION(key, fallback, help) #key,
#include "faults/interpose/options.def"
#undef CUAUDIT_OPTION
};

bool CopyPath(std::string_view value, char* path) noexcept {
  if (value.size() >= kMaxPath) return false;
  memcpy(path, value.data(), value.size());
  path[value.size()] = '\0';
  return true;
}

constexpr std::size_t kShown = 80;  // characters shown of a wrong value, so that the expectation fits on the line, too

struct Line {
  char* text;
  std::size_t capacity;
  const char* Say(std::string_view key, std::string_view value, const char* expected, const char* more = "") noexcept {
    const std::size_t shown = value.size() < kShown ? value.size() : kShown;
    snprintf(text, capacity, "CUAUDIT_OPTIONS: %.*s=%.*s%s: expected %s%s", static_cast<int>(key.size() < kShown ? key.size() : kShown),
             key.data(), static_cast<int>(shown), value.data(), shown < value.size() ? "..." : "", expected, more);
    return OneLine();
  }
  const char* SayFault(std::string_view value, const ParseError& error) noexcept {
    const std::size_t shown = value.size() < kMaxFaultText ? value.size() : kMaxFaultText;
    snprintf(text, capacity, "CUAUDIT_OPTIONS: fault=%.*s%s: column %zu: expected %s", static_cast<int>(shown), value.data(),
             shown < value.size() ? "..." : "", error.column, error.expected);
    return OneLine();
  }

 private:
  // Replaces unprintable bytes, because a value may hold any byte.
  const char* OneLine() noexcept {
    for (char* at = text; *at != '\0'; ++at) {
      if ((*at >= '\0' && *at < ' ') || *at == '\x7f') *at = '?';
    }
    return text;
  }
};

const char* SetOption(std::string_view key, std::string_view value, InterposeOptions* options, Line line) noexcept {
  if (key == "journal") return CopyPath(value, options->journal) ? nullptr : line.Say(key, value, "a path shorter than 1024 bytes");
  if (key == "record") {
    options->record = true;
    return CopyPath(value, options->journal) ? nullptr : line.Say(key, value, "a path shorter than 1024 bytes");
  }
  if (key == "forks") return CopyPath(value, options->forks) ? nullptr : line.Say(key, value, "a path shorter than 1024 bytes");
  if (key == "cycles") return CopyPath(value, options->cycles) ? nullptr : line.Say(key, value, "a path shorter than 1024 bytes");
  if (key == "real_driver") {
    if (!value.empty() && value.front() != '/') return line.Say(key, value, "an absolute path");
    return CopyPath(value, options->real_driver) ? nullptr : line.Say(key, value, "a path shorter than 1024 bytes");
  }
  if (key == "driver") {
    if (value == "auto") options->driver = DriverChoice::Auto;
    else if (value == "real") options->driver = DriverChoice::Genuine;
    else if (value == "sim") options->driver = DriverChoice::Simulated;
    else return line.Say(key, value, "auto, real or sim");
    return nullptr;
  }
  if (key == "scope") {
    if (value == "pinned") options->scope = Scope::Pinned;
    else if (value == "process") options->scope = Scope::Process;
    else return line.Say(key, value, "pinned or process");
    return nullptr;
  }
  if (key == "host") {
    if (value == "heap") options->host = HostChoice::Heap;
    else if (value == "basic") options->host = HostChoice::Basic;
    else if (value == "none") options->host = HostChoice::None;
    else return line.Say(key, value, "heap, basic or none");
    return nullptr;
  }
  if (key == "fault") {
    Fault fault;
    const ParseError error = ParseFault(value, &fault);
    if (error.expected != nullptr) return line.SayFault(value, error);
    if (options->plan.Add(fault)) return nullptr;
    return line.Say(key, value,
                    fault.follows && options->plan.size() == 0 ? "a fault before one that counts from it (#+N)" : "at most 16 faults");
  }
  if (IsWorldKey(key)) {
    const char* const expected = SetWorldOption(key, value, &options->world);
    return expected == nullptr ? nullptr : line.Say(key, value, expected);
  }
  std::size_t length = 0;
  char known[256] = "one of";
  length = strlen(known);
  for (const std::string_view name : kKeys) {
    length +=
        static_cast<std::size_t>(snprintf(known + length, sizeof(known) - length, " %.*s", static_cast<int>(name.size()), name.data()));
  }
  return line.Say(key, value, known);
}

}  // namespace

const char* ParseOptions(const char* text, InterposeOptions* options, char* message, std::size_t capacity) noexcept {
  Line line{message, capacity};
  const char* at = text;
  while (*at != '\0') {
    const char* stop = strchrnul(at, ';');
    const std::string_view pair(at, static_cast<std::size_t>(stop - at));
    at = *stop == ';' ? stop + 1 : stop;
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return line.Say(pair, "", "key=value pairs separated by semicolons");
    const std::string_view key(pair.data(), equals);
    const std::string_view value(pair.data() + equals + 1, pair.size() - equals - 1);
    if (const char* error = SetOption(key, value, options, line)) return error;
  }
  if (options->driver == DriverChoice::Genuine && options->world.given != nullptr) {
    return line.Say("driver", "real", "the simulated driver with ", options->world.given);
  }
  return nullptr;
}

}  // namespace cuaudit::faults
