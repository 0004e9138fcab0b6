// SPDX-License-Identifier: MIT
// benign.h: what is declared of a program: failures that it does without, and objects that live as long as its process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/process/status.h"
#include "harness/sweep/run/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Declares calls that may fail without being reported, because a feature is optional.
//
//     cuMemPoolCreate                          any call of it
//     cuMemPoolCreate#2                        the second call, when faults are addressed by count
//     cuMemPoolCreate@make_pool                a call made directly or indirectly by a function of this name
//     cuMemPoolCreate@libvideo.so!make_pool    the same, by a function of this module
//
// A declaration is checked. A fault that the program does not absorb there is a finding. A declaration that no fault ever hit is a finding,
// too, because it could hide a later call.

struct Benign {
  std::string text;
  std::string call;
  std::uint32_t occurrence = 0;  // 0: any
  std::string module;            // empty: any
  std::string function;          // empty: any
};

Result<Benign> ParseBenign(const std::string& text);

// What is declared of the faults of one trial before anybody knows where they hit: a bit for each fault, from 0. Both bits may be set.
struct DeclaredFaults {
  std::uint64_t surely = 0;   // wherever the call is made
  std::uint64_t perhaps = 0;  // the declaration names a function
};
DeclaredFaults DeclaredOf(const std::vector<Benign>& declared, const std::vector<std::string>& faults);

// Sets the verdict of a trial whose faults are all declared: absorbed as declared, or a finding.
void ApplyBenign(const std::vector<Benign>& declared, TrialResult* trial);

// One finding for each declaration that no fault of any trial hit.
std::vector<TrialFindingText> NeverFired(const std::vector<Benign>& declared, const std::map<std::size_t, TrialResult>& results);

// The table of what a program keeps until it ends, on purpose (`cuaudit run --lifetime FILE`).
// The file is text. A row is
//
//   2 stream v2-0123456789abcdef  cuStreamCreate < open_pool
//
// at most so many objects, their kind, the fingerprint of the place that acquired them, and that place for the reader, up to the end of
// the line. The fingerprint is that of the defect that the objects alone would be: it survives a rebuild and moved lines. Empty lines and
// lines that begin with # are passed over.

struct Lifetime {
  std::uint64_t most = 0;
  std::string kind;
  std::string fingerprint;
  std::size_t line = 0;  // in the file, from 1
};

class Lifetimes {
 public:
  static Result<Lifetimes> Read(const std::string& file);
  static Result<Lifetimes> Parse(const std::string& file, std::string_view text);

  // Makes notes of those findings left_at_exit that the rows allow. Where more is left than a row allows, all of it stays a finding whose
  // detail says so. Returns the lines of rows to which nothing of the run belongs.
  std::vector<std::size_t> Allow(report::Run* run) const;

 private:
  std::vector<Lifetime> rows_;
};

// The table by which all findings left_at_exit of the run are allowed, in the order of the report. Called before Allow.
std::string LifetimeTable(const report::Run& run);

}  // namespace cuaudit::harness
