// SPDX-License-Identifier: MIT
// program_vectors.h: what a program loses, where losing takes a process: the host's own calls fail, or somebody frees twice, or hangs.
//
// A file that includes this holds both: the program (compiled alone, with CUAUDIT_SUBJECT) and what cuaudit must say of it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace cuaudit::reducers {

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
