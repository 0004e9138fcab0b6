// SPDX-License-Identifier: MIT
// cluster_bench: the results of many trials as one report with its defects.
// Usage   cluster_bench [trials]      default 100000
//
// Half of the trials find something: one to eight objects that are lost together, from 200 places and blamed on 50 functions, as a library
// with leaking error paths has them. Each second trial has two faults. Prints seconds of the processor, the peak of the resident memory and
// the counts.
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "harness/sweep/findings/aggregate.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kPlaces = 200;
constexpr std::size_t kFunctions = 50;
constexpr std::size_t kFrames = 12;

report::Frame FrameOf(std::size_t function, int line) {
  report::Frame frame;
  frame.module = "libvideo.so.1";
  frame.function = "video_filter_function_" + std::to_string(function);
  frame.file = "/usr/src/video/libvideo/filter_" + std::to_string(function % 20) + ".c";
  frame.line = line;
  frame.offset = function * 64 + static_cast<std::size_t>(line);
  return frame;
}

std::vector<PlaceText> MakePlaces() {
  std::vector<PlaceText> places;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    report::Acquired words;
    words.call = place % 2 == 0 ? "cuMemAlloc" : "cuStreamCreate";
    for (std::size_t frame = 0; frame < kFrames; ++frame)
      words.stack.push_back(FrameOf((place + frame) % kFunctions, static_cast<int>(place)));
    places.emplace_back(std::move(words));
  }
  return places;
}

TrialResult TrialOf(std::size_t index, const std::vector<PlaceText>& places) {
  TrialResult trial;
  trial.index = index;
  trial.fired = true;
  trial.verdict = index % 2 == 0 ? Verdict::Pass : Verdict::Leak;
  trial.faults = {"cuMemAlloc#" + std::to_string(index % 5000 + 1) + "=OUT_OF_MEMORY,refuse"};
  trial.fault_key = index % kPlaces + 1;
  trial.fault_site = places[index % kPlaces];
  if (index % 4 >= 2) {
    trial.faults.push_back("cuStreamDestroy#" + std::to_string(index % 7 + 1) + "=INVALID_CONTEXT,refuse");
    trial.later_keys = {index % kPlaces % 17 + 1};
    trial.later_sites = {places[index % kPlaces % 17]};
  }
  for (std::size_t i = 0; index % 2 == 1 && i < 1 + index / 2 % 8; ++i) {
    const std::size_t place = (index + i) % kPlaces;
    TrialFindingText finding;
    finding.rule = Rule::Leak;
    finding.kind = place % 2 == 0 ? driver::Kind::DeviceMemory : driver::Kind::Stream;
    finding.count = 1 + index % 3;
    finding.acquired_key = place + 1;
    finding.acquired = places[place];
    finding.released = places[(place + 7) % kPlaces];
    finding.blame = report::Blame{FrameOf(place % kFunctions, 0), report::BlamedBecause::HeldIt};
    trial.findings.push_back(std::move(finding));
  }
  return trial;
}

double Processor() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace
}  // namespace cuaudit::harness

int main(int argc, char** argv) {
  using namespace cuaudit;
  const std::size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100000;
  const std::vector<harness::PlaceText> places = harness::MakePlaces();
  std::vector<harness::TrialResult> trials;
  for (std::size_t i = 0; i < count; ++i) trials.push_back(harness::TrialOf(i, places));
  std::vector<const harness::TrialResult*> in_order;
  for (const harness::TrialResult& trial : trials) in_order.push_back(&trial);
  const double begun = harness::Processor();
  report::Run run;
  harness::Groups groups;
  harness::AddTrials(in_order, {"cuaudit replay --driver=sim", "cuaudit run --driver=sim", "./program with arguments"}, {}, &groups, &run);
  const double merged = harness::Processor();
  groups.defects.Find(&run);
  const double found = harness::Processor();
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  std::printf("%zu trials: %.2f s merged into %zu findings, %.2f s clustered into %zu defects, %ld MiB at the peak\n", trials.size(),
              merged - begun, run.findings.size(), found - merged, run.defects.size(), used.ru_maxrss / 1024);
  return run.defects.empty() ? 1 : 0;
}
