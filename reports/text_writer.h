// SPDX-License-Identifier: MIT
// text_writer.h: writes a report as text, for the person at the terminal. Control characters in strings are shown escaped.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "reports/run.h"

namespace cuaudit::report {

struct TextOptions {
  bool colour = false;
  bool findings = false;  // below the defects list each finding, those that differ only in the failing call as one
};

// Returns false when the stream failed.
bool WriteText(const Run& run, std::ostream& out, const TextOptions& options);

// An audit of a lifecycle in C++, as the test that made it knows it.
struct LifecycleAudit {
  std::string name;
  std::string says;                              // why there are no findings, in one line
  std::string driver;                            // in words; empty: none was opened
  std::string drift;                             // first call in which two fault-free runs differ; empty: they are equal
  std::map<std::string, std::uint64_t> skipped;  // by reason
  std::vector<std::string> unmetered;            // host resources that were not audited, each with the reason
};

// The failure message of a test: the report without what the test itself tells and without notes.
std::string LifecycleText(const Run& run, const LifecycleAudit& audit);

// "Function file.c:12", "Function (module)" or "module+0x1f30", depending on what is known.
std::string Describe(const Frame& frame);

// "host kernels stood in for 4; 2 launches of kernels did nothing: ..."
std::string Describe(const Kernels& kernels);

// "96.1 %: 124 of 129 ways to fail, 12 of 148 documented errors of these calls"
std::string Describe(const Coverage& coverage);

// Describes a place in one line: the innermost frame with a function name, followed by the innermost frame with a source line when that
// is another frame. A stack without any function name is described by its innermost frame.
std::string DescribeOrigin(const std::vector<Frame>& stack);

// At most 16 frames of a stack, innermost first, without the code of the C++ library that was compiled into the program. A stack of
// nothing else is not filtered.
std::vector<Frame> ShownFrames(const std::vector<Frame>& stack);

// True for rules about objects that the program lost because a call failed. For other rules the failing call merely came before.
bool WasLost(Rule rule);

}  // namespace cuaudit::report
