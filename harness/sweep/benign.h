// SPDX-License-Identifier: MIT
// benign.h: calls that a program may lose without losing anything: optional features, declared place by place.
//
//     cuMemPoolCreate                          wherever it is called
//     cuMemPoolCreate#2                        its second call, where faults are addressed by count
//     cuMemPoolCreate@make_pool                called, directly or not, by a function of that name
//     cuMemPoolCreate@libvideo.so!make_pool    the same, in that object
//
//   Owns      its strings.
//   Threads   pure.
//   Errors    ParseBenign: one line that says what was expected.
//   Faults    makes no driver calls.
//
// A declaration is a promise that is held: a fault there that the program does not absorb is a finding, and so is a declaration that no
// fault ever hit, which would go on excusing whatever comes to be called so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/sweep/status.h"
#include "harness/sweep/trial.h"

namespace cuaudit::harness {

struct Benign {
  std::string text;
  std::string call;
  std::uint32_t occurrence = 0;  // 0: any
  std::string module;            // empty: any
  std::string function;          // empty: any
};

// `where` it was said, for the message.
Result<Benign> ParseBenign(const std::string& text, std::string_view where = "--benign");

// The one that the fault `text` falls under when it hits at `site`, null for none.
const Benign* FindBenign(const std::vector<Benign>& declared, const std::string& text, const report::Acquired& site);

// Calls a trial whose faults are all declared benign what it is: absorbed as declared, or not absorbed.
void ApplyBenign(const std::vector<Benign>& declared, TrialResult* trial);

// One finding for each declaration that no trial's fault hit: it would go on excusing whatever comes to be called so.
std::vector<TrialFindingText> NeverFired(const std::vector<Benign>& declared, const std::map<std::size_t, TrialResult>& results);

}  // namespace cuaudit::harness
