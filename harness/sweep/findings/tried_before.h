// SPDX-License-Identifier: MIT
// tried_before.h: the places at which an earlier sweep made calls fail, so that a sweep with little time begins at the others.
//
//   Errors    none.
//
// A place of an earlier release has moved to other lines and has another stack. So places are compared by the call and by the function of
// the program that makes it, and within a function by their number.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/run.h"

namespace cuaudit::harness {

// Where the program makes a call, told by functions and lines, so that it is one place however it was compiled.
struct ProgramPlace {
  std::string function;     // the innermost of the program, without parameters; empty: unknown
  std::uint64_t place = 0;  // a hash
};
ProgramPlace PlaceInProgram(const std::vector<report::Frame>& stack);

// In the order in which they are tried.
enum class Novelty : std::uint8_t {
  New,      // the earlier sweep made this call fail nowhere in this function
  Changed,  // it did so at another number of places
  Known,
};

class TriedBefore {
 public:
  using Function = std::pair<std::string, std::string>;  // entry point, and function of the program

  // `places` is the number of places in the function; 0: unknown.
  void Add(const std::string& call, const std::string& function, std::uint64_t places);

  // What each place is; `places` are those of the new sweep.
  std::vector<Novelty> Compare(const std::vector<report::Acquired>& places) const;

 private:
  std::map<Function, std::uint64_t> places_;
};

}  // namespace cuaudit::harness
