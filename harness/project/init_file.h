// SPDX-License-Identifier: MIT
// init_file.h: a first cuaudit.toml for a program, with what fault-free runs of it showed.
//
//   Units     milliseconds where a name says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/process/program.h"
#include "harness/project/case_settings.h"
#include "reports/run.h"

namespace cuaudit::harness {

// What the runs showed.
struct ProgramSeen {
  DriverKind driver = DriverKind::Simulated;
  std::string why;  // why this one, when nobody chose it
  std::uint64_t calls = 0;
  std::uint64_t threads = 0;    // that call the driver
  std::uint64_t processes = 0;  // the same
  std::uint64_t cycles = 0;     // marked
  std::string drift;            // the first call at which two runs differ; empty: they are equal
  std::uint64_t run_ms = 0;     // of the slower run
  std::vector<report::LiveRow> host;
};

// A name of a case: the text with '_' for what such a name may not have, and cut.
inline constexpr std::size_t kMostOfText = 80;
std::string CaseNameFrom(const std::string& text);
// The name of a program's case, after its file.
std::string CaseNameOf(const std::string& program);

// The file. `one` has the settings that were given; `folder` is that of the file, and `here` the absolute path of the current directory.
std::string InitFile(const ProjectCase& one, const ProgramSeen& seen, const std::string& folder, const std::string& here);

}  // namespace cuaudit::harness
