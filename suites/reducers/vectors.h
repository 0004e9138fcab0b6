// SPDX-License-Identifier: MIT
// vectors.h: what reducers lose, as one line: as lifecycles, and as programs where losing takes a process.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "cuaudit/gtest.h"

namespace cuaudit::reducers {

// What a lifecycle loses under one fault, as one line: "event 2, stream 1"; other findings by their rule.

struct Row {
  std::string fault;
  std::string lost;
};

// For defects that show in every cycle without a fault. The counts are those of the three cycles after the first.
inline constexpr CycleOptions kFourCycles = {.warm_up = 1, .cycles = 3};

inline constexpr const char* kCannotBeForked = "a crash is a verdict in a process of its own, and a genuine driver does not survive fork";

std::string Lost(const Audit& audit);

// Each row alone, then the whole sweep of first faults: no other call may lose anything.
// A teardown that fails may be called once more.
void ExpectVectors(Lifecycle defective, const std::vector<Row>& rows);

// Where the fuzz target of the reducers takes the repaired ones, instead of a sweep of each.
std::vector<Lifecycle>*& Collector();

// First and second order, all states; and ten cycles.
void ExpectSilent(Lifecycle repaired);

// What a program loses, where losing takes a process: the host's own calls fail, or somebody frees twice, or hangs.
//
// A file that includes this holds both: the program (compiled alone, with CUAUDIT_SUBJECT) and what cuaudit must say of it.

// What every cycle adds, and what else is wrong: "host_heap 1 (40 bytes), mutex_freed mutex". What the driver keeps for itself is left
// out.
std::string PerCycle(const std::string& program, const std::string& form);

// What one run loses, without a fault or under the one named: "host_heap 1, thread 2, crash", and the message of a run that proves nothing.
// A rule that was broken is named once for each object: "double_release context, double_release context".
std::string InOneRun(const std::string& program, const std::string& form);
std::string Replayed(const std::string& fault, const std::string& program, const std::string& form, const std::string& deadline_ms = "0");

// All the ways in which the driver's calls fail: nothing is lost.
void ExpectUnwindsCleanly(const std::string& program, const std::string& form);

// And all in which the host's do, as many as named.
void ExpectNothingLost(const std::string& program, const std::string& form, const std::string& host_how, std::size_t host_faults);

}  // namespace cuaudit::reducers
