// SPDX-License-Identifier: MIT
// blame.h: the function of the program that left without making a release, told from call stacks alone; and which function ran during two
// calls.
//
//   Errors    none: without any stack there is no blame.
//
// README.md, section "Who is blamed", has the rule.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "reports/run.h"

namespace cuaudit::harness {

// Which function was running both when one call was made and when another was.
//
//   Errors    none. Stacks that share no frame have no common activation.
//
// Two stacks of one thread have the outer frames of every function that was running at both times in common, down to the same line. The
// innermost such function may have moved on to another line: it is the one that made, directly or not, both calls.

using Stack = std::vector<report::Frame>;  // innermost frame first

// Indices of the frames of one function in two stacks.
struct Common {
  std::size_t in_a = 0;
  std::size_t in_b = 0;
};

// The innermost function that both stacks were in. A stack may be cut off at its outer end. Recursion counts as running on.
std::optional<Common> CommonActivation(const Stack& a, const Stack& b);

// Index in `later` of the innermost function that was running since the call with the stack `earlier`; the size when there is none. A
// function that makes the same call again without a way back to it has been left in between.
std::size_t RunningSince(const Stack& earlier, const Stack& later);

// True when both frames are in the same function. A function without a name is known by where it begins.
bool SameFunction(const report::Frame& a, const report::Frame& b);

// True when both frames are at the same line of the same function.
bool SamePlace(const report::Frame& a, const report::Frame& b);

// The calls of one trial by which a loss is judged. Each stack is that of a call of the program.
struct LossEvidence {
  const Stack& acquired;                     // where the object was acquired
  const Stack& failed;                       // the call that failed last
  const Stack& released;                     // where the fault-free run releases the object; empty: it makes none, or keeps it
  std::size_t still_running = 0;             // index in `failed`: functions further in were not running all the time since the acquisition
  std::span<const Stack* const> afterwards;  // calls of the faulted cycle from the failing one on
  // When the call that failed is a release: the calls of the fault-free run.
  std::span<const Stack* const> rehearsed = {};
  bool passed_over = false;  // the release was made after the failure, of an object that was acquired between this one and the failure
};

std::optional<report::Blame> BlameForLoss(const LossEvidence& evidence);

// For what a single call does wrong: the innermost function of the program.
std::optional<report::Blame> BlameForCall(const Stack& stack);

// For a failure that is remembered, so that a later cycle fails: the innermost function of the program itself, or of a library the function
// that the program called. A library fails as a whole, wherever in it the call was made. The program itself is the module of the outermost
// frame that is not the system's.
std::optional<report::Blame> BlameForNoRecovery(const Stack& failed);

// False for frames of the system, of the driver and of cuaudit itself, and for the standard library's code inside the program.
bool IsProgram(const report::Frame& frame);

}  // namespace cuaudit::harness
