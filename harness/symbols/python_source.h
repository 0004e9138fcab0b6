// SPDX-License-Identifier: MIT
// python_source.h: whether a Python function that makes a call again was called again, by its source text.
//
//   Owns      the lines of the files that it has read.
//   Threads   one thread.
//   Errors    none: where the text does not tell for sure, the answer is false.
//
// Of a Python function a journal has the line of a call and not the instruction. A call is made again by a loop around it, or because the
// line makes it twice.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuaudit::harness {

// `line` counts from 1. `callee`: the called Python function as a call stack names it; empty: a function of the driver.
bool CallsOnce(std::span<const std::string> lines, std::size_t line, std::string_view callee);

class PythonSources {
 public:
  bool CallsOnce(const std::string& file, int line, std::string_view callee);

 private:
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace cuaudit::harness
