// SPDX-License-Identifier: MIT
// symbolizer.h: turns the call stacks of a journal into functions and source lines after the run.
//
//   Owns      the object files it opened, and all frames it has resolved.
//   Threads   not thread-safe; one per thread.
//   Units     Frame::offset is an address in the numbering of the module's file.
//   Errors    never fails. An unresolved frame keeps module and offset. A file that is missing, or has another build id than the journal
//             says, is not used.
//   Source    elfutils libdwfl. Separate debug files are found by build id under /usr/lib/debug; nothing is ever downloaded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/driver/kinds.h"
#include "faults/journal/journal_view.h"
#include "reports/run.h"

namespace cuaudit::harness {

class Symbolizer {
 public:
  Symbolizer();
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // Innermost frame first. Inlined functions are frames of their own. The stack is trimmed as by Trim. Empty for stack 0.
  std::vector<report::Frame> Resolve(const faults::JournalView& journal, std::uint32_t stack);

  // Object files are also looked for below this directory: as .build-id/AB/CDEF... (with or without .debug), and by their names. A file
  // with another build id is not used.
  void LookIn(const std::string& directory);

  // Object files of which a frame was asked for and that were found nowhere: path and build id in hexadecimal, sorted.
  std::vector<std::pair<std::string, std::string>> NotFound() const;

  // The same as Resolve, with nothing trimmed.
  std::vector<report::Frame> Whole(const faults::JournalView& journal, std::uint32_t stack);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Removes cuaudit's own frames at the inner end and those of its host probes everywhere (a library that dlopen loads runs inside of them),
// the C library's start code at the outer end, what calls a step of a lifecycle in C++ with all outside of it, and the standard library's
// frames between a std::function and its target. A stack with no other frames is returned
// whole.
std::vector<report::Frame> Trim(std::vector<report::Frame> frames);

// Whether a text begins with one of these.
inline bool BeginsWithOneOf(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [text](std::string_view one) { return text.starts_with(one); });
}

// Module of the frames that are Python functions.
inline constexpr const char* kPythonModule = "python";

// Of the C library by its module alone, of the program by its function.
bool IsStartCode(const report::Frame& frame);

// Removes functions of the C and C++ runtime at the inner end, in which a program merely stops: raise, abort, memcpy, pthread_mutex_lock.
// Their names depend on the processor and on what is installed. A stack of nothing else is returned whole.
std::vector<report::Frame> WithoutRuntime(std::vector<report::Frame> frames);

// Tells what a CUDA runtime acquired for itself from what a program acquired through it.
//
//   Threads   one thread.
//   Errors    none: a stack without names or modules is the program's.
//
// A runtime retains the primary context for itself and never gives the program a reference. It loads the modules of the program's kernels
// when they are first needed. A library that the program loads by cudaLibraryLoadData or cudaLibraryLoadFromFile is the program's.

// True for kinds that a runtime acquires for itself.
bool MayBeOfRuntime(driver::Kind kind);

// `stack` is that of the acquiring call, whole, innermost frame first.
bool IsOfRuntime(driver::Kind kind, const std::vector<report::Frame>& stack);

}  // namespace cuaudit::harness
