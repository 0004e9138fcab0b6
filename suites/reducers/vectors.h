// SPDX-License-Identifier: MIT
// vectors.h: what a lifecycle loses under one fault, as one line: "event 2, stream 1"; other findings by their rule.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cuaudit/gtest.h"

namespace cuaudit::reducers {

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

}  // namespace cuaudit::reducers
