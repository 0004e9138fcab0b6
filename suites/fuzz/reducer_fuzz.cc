// SPDX-License-Identifier: MIT
// Every repaired reducer of suites/reducers that is a lifecycle, with faults chosen by the input's first bytes; the two bytes behind them
// say which one: that whose name's hash is nearest. So a reducer that is added takes the inputs near its own hash, and no others change
// what they mean. A repair answers for a refusal and for a second one while unwinding: nothing is found then. Of three, or of other kinds,
// this must hold: what a trial amounts to without call stacks is what a replay of its faults says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cuaudit/fuzz.h"
#include "suites/fuzz/require.h"
#include "suites/reducers/owner.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::fuzz {
namespace {

struct Reducer {
  std::uint16_t place;
  Lifecycle lifecycle;
  Fuzzer* fuzzer;
};

// FNV-1a, folded.
std::uint16_t PlaceOf(std::string_view name) {
  std::uint32_t hash = 0x811C9DC5;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x01000193;
  return static_cast<std::uint16_t>(hash >> 16U ^ hash);
}

// By its place, the numbers from 0 to 65535 being a ring.
const Reducer& Nearest(const std::vector<Reducer>& all, std::uint32_t point) {
  const auto distance = [point](const Reducer& one) {
    return std::min<std::uint16_t>(static_cast<std::uint16_t>(one.place - point), static_cast<std::uint16_t>(point - one.place));
  };
  return *std::min_element(all.begin(), all.end(), [&](const Reducer& a, const Reducer& b) { return distance(a) < distance(b); });
}

// The tests of the reducers hand over what they would sweep.
std::vector<Reducer> RepairedReducers() {
  reducers::Drop::bound = {};
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
  for (const Lifecycle& one : repaired) {
    const std::uint16_t place = PlaceOf(one.name());
    const bool is_taken = std::any_of(all.begin(), all.end(), [place](const Reducer& other) { return other.place == place; });
    Require(!is_taken, "no two reducers' names have one hash", one.name());
    all.push_back({place, one, new Fuzzer(one)});
  }
  return all;
}

// What a repair answers for, and its test sweeps: a refusal, and a second one while unwinding from the first.
bool IsPromised(const std::vector<std::string>& faults) {
  return faults.size() <= 2 &&
         std::all_of(faults.begin(), faults.end(), [](const std::string& fault) { return fault.ends_with(",refuse"); });
}

// A trial that is not spotless is judged by what Replay does: of it this says that it does the same again.
void ReplayToo(const Reducer& reducer, const FuzzTrial& trial) {
  const Audit audit = Replay(reducer.lifecycle, trial.faults);
  // A fuzzer reads no meters of the host.
  const bool found = std::any_of(audit.findings.begin(), audit.findings.end(),
                                 [](const Finding& finding) { return finding.kind != "host_heap" && finding.kind != "heap_bytes"; });
  const std::string verdict = audit.verdicts.empty() ? std::string() : audit.verdicts.begin()->first;
  // Of what was judged before without finding the trial has no verdict.
  const bool same = trial.verdict.empty() || verdict == trial.verdict;
  Require(found == trial.finding && same, "a replay says what the trial said",
          audit.Text() + verdict + "\nbut the trial: " + trial.verdict + "\n" + trial.text);
}

void Try(const Reducer& reducer, const FaultChoice& faults, bool replay) {
  const FuzzTrial trial = reducer.fuzzer->Try(faults);
  if (trial.faults.empty() || !trial.fired) return;
  Require(!trial.finding || !IsPromised(trial.faults), "a repaired reducer unwinds cleanly", trial.text);
  if (replay) ReplayToo(reducer, trial);
}

// One input in sixteen: with its stacks a replay costs five times what the trial does.
bool IsReplayed(const std::uint8_t* data, std::size_t size) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum = sum * 31 + data[i];
  return (sum >> 4U) % 16 == 0;
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Never destroyed: LeakSanitizer looks after that.
  static const auto& all = *new std::vector<cuaudit::fuzz::Reducer>(cuaudit::fuzz::RepairedReducers());
  cuaudit::FuzzInput input(data, size);
  const cuaudit::FaultChoice faults(&input);
  cuaudit::fuzz::Try(cuaudit::fuzz::Nearest(all, input.Short()), faults, cuaudit::fuzz::IsReplayed(data, size));
  return 0;
}
