// SPDX-License-Identifier: MIT
// text_writer.h: a report as text, for the person at the terminal.
//
//   Owns      nothing; borrows the run and the stream for the call.
//   Threads   safe on different streams.
//   Errors    false when the stream failed. Control characters in strings are shown escaped.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "reports/run.h"

namespace cuaudit::report {

// Stacks are cut to the innermost frames with a known source line, or to the innermost frames when no line is known.
bool WriteText(const Run& run, std::ostream& out, bool colour);

// "Function file.c:12", "Function (module)" or "module+0x1f30": as much as is known.
std::string Describe(const Frame& frame);

// The frames worth showing of a stack, innermost first.
std::vector<Frame> ShownFrames(const std::vector<Frame>& stack);

}  // namespace cuaudit::report
