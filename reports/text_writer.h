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
#include <string_view>
#include <vector>

#include "reports/run.h"

namespace cuaudit::report {

// Findings that differ only in the call that was made to fail are told as one. JSON has them all.
bool WriteText(const Run& run, std::ostream& out, bool colour);

// "Function file.c:12", "Function (module)" or "module+0x1f30": as much as is known.
std::string Describe(const Frame& frame);

// "host kernels stood in for 4; 2 launches of kernels did nothing: ..."
std::string Describe(const Kernels& kernels);

// "96.1 %: 124 of 129 ways to fail, 12 of 148 documented errors of these calls"
std::string Describe(const Coverage& coverage);

// One place for one line: the innermost frame with a function name, and after it the innermost one with a source line when that is
// another. Without any name the innermost frame.
std::string DescribeOrigin(const std::vector<Frame>& stack);

// The frames worth showing of a stack, innermost first, 16 at most: all whose function is known, and of neighbours of one module
// without a name the innermost. A stack without any name is shown as it is.
std::vector<Frame> ShownFrames(const std::vector<Frame>& stack);

// Rules about objects that a failing call made the program lose; of the others it only came before.
bool WasLost(std::string_view rule);

}  // namespace cuaudit::report
