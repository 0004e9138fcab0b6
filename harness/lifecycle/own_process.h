// SPDX-License-Identifier: MIT
// own_process.h: what a lifecycle knows of its own process: the command line for a shell, whether cuaudit is a shared library in it, and
// the signals that ask it to stop.
//
//   Threads   safe.
//   Errors    "./test" when the system does not provide the command line.
//   Source    /proc/self/cmdline.
#pragma once

#include <string>
#include <vector>

namespace cuaudit::harness {

// The words that started this process.
std::vector<std::string> CommandWords();

// The command line with the filter from SetTestFilter. With such a filter, the process's own options for choosing tests are left out.
std::string CommandLine();

// `filter` is "Suite.Name" of the running test, or empty when none runs. cuaudit/gtest.h calls this.
void SetTestFilter(const std::string& filter);

// Whether cuaudit's code is in a shared library of its own, whose frames are not the program's.
//
//   Errors    false when the loader does not say.
//
// In a static build cuaudit's frames lie in the program's own file and are recognised by their names.

bool IsOwnObject() noexcept;

// While one exists, SIGINT, SIGTERM and SIGHUP do not end the process at once, so that a sweep can write what it found.
//
//   Owns      the handlers of the signals that the process does not ignore; the destructor puts back the ones from before.
//   Threads   one exists at a time; `Seen` from any thread.
//   Errors    none. A second signal, or five seconds after the first, has the effect that it has without this, because a step may hang.

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that came while one existed; 0: none.
  static int Seen() noexcept;
};

}  // namespace cuaudit::harness
