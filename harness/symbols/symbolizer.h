// SPDX-License-Identifier: MIT
// symbolizer.h: the call stacks of a journal as functions and source lines, after the run.
//
//   Owns      the object files it opened, and what it has resolved so far.
//   Threads   not thread-safe; one per thread.
//   Units     Frame::offset is an address in the module as its file numbers it.
//   Errors    never fails: what cannot be resolved keeps module and offset. A file that is gone, or whose build id is not the
//             journal's any more, is not believed.
//   Faults    makes no driver calls.
//   Source    elfutils libdwfl. Separate debug files are found by build id under /usr/lib/debug; nothing is ever downloaded.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "faults/journal/journal_view.h"
#include "reports/run.h"

namespace cuaudit::harness {

class Symbolizer {
 public:
  Symbolizer();
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // Innermost frame first, inlined functions as frames of their own, trimmed as by Trim. Empty for stack 0.
  std::vector<report::Frame> Resolve(const faults::JournalView& journal, std::uint32_t stack);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Without cuaudit's own frames at the inner end and without the C library's start code at the outer end. A stack that is
// nothing but these comes back whole.
std::vector<report::Frame> Trim(std::vector<report::Frame> frames);

// Of the C library by its module alone, of the program by its function.
bool IsStartCode(const report::Frame& frame);

}  // namespace cuaudit::harness
