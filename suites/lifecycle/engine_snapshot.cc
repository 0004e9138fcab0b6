// SPDX-License-Identifier: MIT
// engine_snapshot.cc: writes every audit that the tests of this program make to the file that CUAUDIT_SNAPSHOT names (engine_snapshot.py).
//
// The linker sends calls of Sweep, Replay and RunCycles here (--wrap in CMakeLists.txt), so the tests need not know.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "cuaudit/lifecycle.h"

namespace cuaudit::testing::engine_snapshot {
namespace {

void Write(const Audit& audit) {
  const char* const path = std::getenv("CUAUDIT_SNAPSHOT");
  const ::testing::TestInfo* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (path == nullptr || test == nullptr) return;
  std::ofstream file(path, std::ios::app);
  file << "== " << test->test_suite_name() << "." << test->name() << "\n" << audit.Text();
  for (const Finding& note : audit.notes) {
    file << "  note: " << note.rule << " " << note.kind << " " << note.count << " in " << note.trials << ": " << note.title;
    for (const std::string& fault : note.faults) file << " after " << fault;
    file << "\n";
  }
}

}  // namespace

Audit RealSweep(const Lifecycle& lifecycle,
                const SweepOptions& options) __asm__("__real__ZN7cuaudit5SweepERKNS_9LifecycleERKNS_12SweepOptionsE");
Audit RealReplay(const Lifecycle& lifecycle, const std::vector<std::string>& faults, const SweepOptions& options) __asm__(
    "__real__ZN7cuaudit6ReplayERKNS_9LifecycleERKSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS9_EERKNS_"
    "12SweepOptionsE");
Audit RealCycles(const Lifecycle& lifecycle,
                 const CycleOptions& options) __asm__("__real__ZN7cuaudit9RunCyclesERKNS_9LifecycleERKNS_12CycleOptionsE");

Audit WrappedSweep(const Lifecycle& lifecycle,
                   const SweepOptions& options) __asm__("__wrap__ZN7cuaudit5SweepERKNS_9LifecycleERKNS_12SweepOptionsE");
Audit WrappedReplay(const Lifecycle& lifecycle, const std::vector<std::string>& faults, const SweepOptions& options) __asm__(
    "__wrap__ZN7cuaudit6ReplayERKNS_9LifecycleERKSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS9_EERKNS_"
    "12SweepOptionsE");
Audit WrappedCycles(const Lifecycle& lifecycle,
                    const CycleOptions& options) __asm__("__wrap__ZN7cuaudit9RunCyclesERKNS_9LifecycleERKNS_12CycleOptionsE");

Audit WrappedSweep(const Lifecycle& lifecycle, const SweepOptions& options) {
  Audit audit = RealSweep(lifecycle, options);
  Write(audit);
  return audit;
}

Audit WrappedReplay(const Lifecycle& lifecycle, const std::vector<std::string>& faults, const SweepOptions& options) {
  Audit audit = RealReplay(lifecycle, faults, options);
  Write(audit);
  return audit;
}

Audit WrappedCycles(const Lifecycle& lifecycle, const CycleOptions& options) {
  Audit audit = RealCycles(lifecycle, options);
  Write(audit);
  return audit;
}

}  // namespace cuaudit::testing::engine_snapshot
