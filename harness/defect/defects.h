// SPDX-License-Identifier: MIT
// defects.h: which findings of a report have one cause.
//
//   Threads   one thread.
//
// A *thing* is what is wrong, whichever fault showed it: an object that is lost, with the function blamed for it, or a call that is wrong.
// README.md, section "What is one defect", lists which things are one. Findings without a fault have no trials in which they could come
// alone: those of one rule are one defect when one function is blamed for them. Mutexes that become more and whose memory was freed are
// one, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "faults/driver/kinds.h"
#include "reports/run.h"

namespace cuaudit::harness {

// One thing that one trial shows.
struct Shown {
  std::size_t trial = 0;
  std::size_t finding = 0;  // index in Run::findings
  driver::Kind kind{};
  std::uint64_t place = 0;  // key of the place where it was acquired, or where it showed
  std::optional<report::Blame> blame;
  const report::Acquired* released = nullptr;  // where the fault-free run releases it; may be null
  // What relates it to what other trials show; 0: unknown.
  std::uint64_t common_call = 0;  // key of an object's acquisition and of the release that explains what is wrong
  std::size_t faults = 0;         // number of calls that the trial made fail
  std::uint64_t first_fault = 0;  // key of the first failing call, with its occurrence
  std::uint64_t failed_at = 0;    // key of the place where all of them were made; 0: at several places
  std::uint64_t acquirer = 0;     // key of the function that acquired the object
  std::uint64_t count = 0;        // of objects
};

class DefectFinder {
 public:
  // `rule` is that of the finding.
  void Add(const Shown& shown, report::Rule rule);

  // Called once, after the last Add. Fills run->defects, in the order of the findings. Findings that were not added are told from what they
  // show themselves.
  void Find(report::Run* run);

 private:
  struct Thing {
    report::Rule rule{};
    driver::Kind kind{};
    std::optional<report::Blame> blame;
    report::Acquired released;
    std::uint64_t blamed = 0;           // key of the blamed function; 0: nobody is blamed
    std::vector<std::size_t> trials;    // each once, in order; empty: shown without a fault
    std::vector<std::size_t> findings;  // likewise
    std::size_t joined = 0;             // a thing of the same defect; itself in the first one
    bool alone = false;                 // shown by one failing call, or by none
    std::vector<std::uint64_t> again;   // how the first loss of each trial with several faults is known (by_first_); 0: there is none
    std::vector<std::uint64_t> taken;   // first fault of each such trial
  };

  // Of how many objects the trials that show a thing by one finding tell.
  struct Counts {
    std::size_t thing = 0;
    std::uint64_t least = 0;
    std::uint64_t most = 0;
  };

  std::size_t Take(const Shown& shown, report::Rule rule);
  void AddOthers(const report::Run& run);
  std::size_t First(std::size_t thing);
  void Join(std::size_t a, std::size_t b);
  void JoinByFinding();
  void JoinByBlame();
  void JoinByTrials();
  void JoinConsequences();
  void NoteFaults(const Shown& shown, report::Rule rule, std::size_t thing);
  void JoinSecondTimes();
  report::Defect ToDefect(const std::vector<std::size_t>& things, const report::Run& run) const;

  std::vector<Thing> things_;
  std::unordered_map<std::uint64_t, std::size_t> by_key_;
  std::map<std::size_t, std::vector<Counts>> by_finding_;                 // the things that each finding shows
  std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> by_call_;  // by trial and Shown::common_call
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_first_;  // losses after one fault: by kind, acquirer and place
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> takers_;    // who takes a primary reference, by the only fault
};

// Of findings alone, without what their trials knew.
void FindDefects(report::Run* run);

// Names of a defect and of a function that stay the same when the program is built again.

// "v2-" and 16 digits, from the rule, the kind, the call and the function that acquired the object, and the blamed function. Lines,
// other calls, the failing calls and the numbers of trials do not change it. A function without a name counts as its module.
std::string DefectFingerprint(const report::Finding& root, const std::optional<report::Blame>& blame);

// True for a text of that form, of any version; "-2" may stand behind it, for the second defect of that name.
bool IsFingerprint(std::string_view text);
// True for one that DefectFingerprint can make today.
bool IsPresentFingerprint(std::string_view text);

// Identifies a function within one report. A function without a name is identified by its address.
std::uint64_t FunctionKey(const report::Frame& frame);

// Identifies the way from the blamed function to a call within one report: however that function was called, what it loses is the same. A
// stack without that function, or nobody blamed: the whole way.
std::uint64_t WayKey(const report::Acquired& place, const std::optional<report::Blame>& blame);

// The function as it is written in the source: without parameters and without what a compiler adds to the name of a copy.
std::string_view PlainName(std::string_view function);

}  // namespace cuaudit::harness
