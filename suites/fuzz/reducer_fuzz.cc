// SPDX-License-Identifier: MIT
// Every repaired reducer of suites/reducers that is a lifecycle, with faults chosen by the input's first bytes; the byte behind them says
// which one. A repair answers for one fault and for a second while unwinding, which its test sweeps; of three, of any kind, this must hold:
// what a trial amounts to without call stacks (it is spotless, and nobody looks again) is what a replay of its faults says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuaudit/fuzz.h"
#include "suites/fuzz/require.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::fuzz {
namespace {

struct Reducer {
  Lifecycle lifecycle;
  Fuzzer* fuzzer;
};

// The tests of the reducers hand over what they would sweep.
std::vector<Reducer> RepairedReducers() {
  static std::vector<Lifecycle> repaired;
  reducers::Collector() = &repaired;
  int count = 3;
  char program[] = "fuzz_reducer";
  char filter[] = "--gtest_filter=*Repaired*:*Silent*";
  char brief[] = "--gtest_brief=1";
  char* words[] = {program, filter, brief, nullptr};
  ::testing::InitGoogleTest(&count, words);
  Require(RUN_ALL_TESTS() == 0 && !repaired.empty(), "the reducers hand over what they would sweep");
  std::vector<Reducer> all;
  for (const Lifecycle& one : repaired) all.push_back({one, new Fuzzer(one)});
  return all;
}

void Try(const Reducer& reducer, const FaultChoice& faults) {
  const FuzzTrial trial = reducer.fuzzer->Try(faults);
  if (trial.faults.empty() || !trial.fired) return;
  const Audit audit = Replay(reducer.lifecycle, trial.faults);
  // A fuzzer reads no meters of the host.
  const bool found = std::any_of(audit.findings.begin(), audit.findings.end(),
                                 [](const Finding& finding) { return finding.kind != "host_heap" && finding.kind != "heap_bytes"; });
  Require(found == trial.finding, "a replay says what the trial said",
          audit.Text() + "but the trial: " + trial.verdict + "\n" + trial.text);
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Never destroyed: LeakSanitizer looks after that.
  static const auto& all = *new std::vector<cuaudit::fuzz::Reducer>(cuaudit::fuzz::RepairedReducers());
  cuaudit::FuzzInput input(data, size);
  const cuaudit::FaultChoice faults(&input);
  cuaudit::fuzz::Try(all[input.Below(static_cast<std::uint32_t>(all.size()))], faults);
  return 0;
}
