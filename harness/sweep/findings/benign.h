// SPDX-License-Identifier: MIT
// benign.h: declares calls that may fail without being reported, because a feature is optional.
//
//     cuMemPoolCreate                          any call of it
//     cuMemPoolCreate#2                        the second call, when faults are addressed by count
//     cuMemPoolCreate@make_pool                a call made directly or indirectly by a function of this name
//     cuMemPoolCreate@libvideo.so!make_pool    the same, by a function of this module
//
//   Errors    ParseBenign answers one line that says what was expected.
//
// A declaration is checked. A fault that the program does not absorb there is a finding. A declaration that no fault ever hit is a finding,
// too, because it could hide a later call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/process/status.h"
#include "harness/sweep/run/trial.h"

namespace cuaudit::harness {

struct Benign {
  std::string text;
  std::string call;
  std::uint32_t occurrence = 0;  // 0: any
  std::string module;            // empty: any
  std::string function;          // empty: any
};

// `where` names the source of the text in messages.
Result<Benign> ParseBenign(const std::string& text, std::string_view where = "--benign");

// The declaration that covers the fault `text` when it hits at `site`; null for none.
const Benign* FindBenign(const std::vector<Benign>& declared, const std::string& text, const report::Acquired& site);

// Sets the verdict of a trial whose faults are all declared: absorbed as declared, or a finding.
void ApplyBenign(const std::vector<Benign>& declared, TrialResult* trial);

// One finding for each declaration that no fault of any trial hit.
std::vector<TrialFindingText> NeverFired(const std::vector<Benign>& declared, const std::map<std::size_t, TrialResult>& results);

}  // namespace cuaudit::harness
