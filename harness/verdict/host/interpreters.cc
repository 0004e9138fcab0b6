// SPDX-License-Identifier: MIT
#include "harness/verdict/host/interpreters.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace cuaudit::harness {
namespace {

// Interpreters by file name, up to the first character that is no letter or underscore.
constexpr std::string_view kInterpreters[] = {
    "python",  "libpython", "pypy",   "libpypy",      "node",        "libnode",    "java", "libjvm",   "ruby",   "libruby", "perl",
    "libperl", "lua",       "liblua", "luajit",       "libluajit",   "julia",      "php",  "libjulia", "libphp", "mono",    "dotnet",
    "guile",   "tclsh",     "libtcl", "liboctinterp", "libmonosgen", "libcoreclr", "libR", "libguile", "Rscript"};

}  // namespace

bool IsInterpreter(std::string_view path) noexcept {
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const std::string_view word = name.substr(0, static_cast<std::size_t>(std::find_if_not(name.begin(), name.end(), letter) - name.begin()));
  return std::find(std::begin(kInterpreters), std::end(kInterpreters), word) != std::end(kInterpreters);
}

}  // namespace cuaudit::harness
