// SPDX-License-Identifier: MIT
// Random programs on a gate in front of a simulated driver. The first bytes choose world and faults, the rest is the program. Known to be
// true of each: what the ledger makes of the journal is what the simulator's own books say, and a second run writes the same journal.
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "harness/ledger/ledger.h"
#include "include/cuaudit/fuzz_input.h"
#include "suites/fuzz/gated_run.h"
#include "suites/fuzz/machine.h"
#include "suites/fuzz/require.h"

namespace cuaudit::fuzz {
namespace {

// The program: its operations, chosen by the input (machine.h).

constexpr int kMostOperations = 48;
// A byte beyond the table chooses one of these, as it did when they were all: an operation that is added takes one byte from them, and all
// others mean what they meant.
constexpr std::size_t kFirstOperations = 171;

alignas(kPage) char g_host[kHostBytes];

const std::vector<Operation>& AllOperations() {
  static const auto* const all = [] {
    auto* const operations = new std::vector<Operation>;
    for (const std::span<const Operation> family :
         {MemoryOperations(), WorkOperations(), GraphOperations(), ObjectOperations(), ShareOperations(), FurtherOperations()}) {
      operations->insert(operations->end(), family.begin(), family.end());
    }
    return operations;
  }();
  return *all;
}

}  // namespace

char* Machine::Host() { return g_host; }

void RunProgram(Machine* machine) {
  const std::vector<Operation>& all = AllOperations();
  static_assert(kFirstOperations * 2 > 255);
  static_assert(sizeof(g_host) == kHostBytes);
  std::memset(g_host, 0, sizeof(g_host));
  for (int i = 0; i < kMostOperations && !machine->input.empty(); ++i) {
    const std::size_t which = machine->input.Byte();
    all[which < all.size() ? which : which % kFirstOperations](*machine);
  }
}

namespace {

using driver::BaseId;
using faults::Record;
using faults::RecordKind;

constexpr BaseId kCalled[] = {
#define CUAUDIT_CALLED(base) BaseId::base,
#include "suites/fuzz/called.def"
#undef CUAUDIT_CALLED
};
constexpr std::size_t kCalledCount = sizeof(kCalled) / sizeof(kCalled[0]);
static_assert(kCalledCount <= 256);

constexpr std::array<bool, driver::kBaseCount> IsCalled() {
  std::array<bool, driver::kBaseCount> called{};
  for (const BaseId base : kCalled) called[driver::Index(base)] = true;
  return called;
}
constexpr std::array<bool, driver::kBaseCount> kIsCalled = IsCalled();

// Of all entry points there are, or of those that programs can call, early rather than late.
enum class Where : std::uint8_t { Anywhere, InProgram };

faults::Fault ChooseFault(FuzzInput* input, Where where) {
  static constexpr faults::How kHows[] = {faults::How::Refuse,  faults::How::RefuseGarbage, faults::How::After,
                                          faults::How::Persist, faults::How::Burst,         faults::How::Sticky};
  static constexpr std::uint32_t kOccurrences[] = {1, 1, 1, 1, 2, 2, 3, 5};
  faults::Fault fault;
  if (where == Where::Anywhere) {
    fault.base = static_cast<BaseId>(input->Short() % driver::kBaseCount);
    fault.occurrence = 1 + input->Below(8);
  } else {
    fault.base = kCalled[input->Byte() % kCalledCount];
    fault.occurrence = kOccurrences[input->Below(8)];
  }
  fault.how = kHows[input->Below(6)];
  fault.burst = 1 + input->Below(3);
  const std::uint32_t code = input->Byte();
  const std::span<const CUresult> codes = driver::LegalCodes(fault.base);
  fault.code = fault.how == faults::How::Sticky || codes.empty() ? CUDA_ERROR_LAUNCH_FAILED : codes[code % codes.size()];
  return fault;
}

RunOptions ChooseRun(FuzzInput* input, bool* twice) {
  RunOptions options;
  const std::uint32_t shape = input->Byte();
  options.schedule = static_cast<sim::Schedule>(shape & 3U);
  options.devices = 1 + static_cast<int>((shape >> 2U) & 1U);
  options.pinned = (shape & 8U) != 0;
  // As inputs were read when a fault was one of all entry points: with 0 to 3 and 12 to 15.
  const std::uint32_t rest = shape >> 4U;
  const Where where = rest >= 4 && rest < 0xC ? Where::InProgram : Where::Anywhere;
  options.seed = input->Byte();
  *twice = rest == 0xF || (rest == 0xB && options.seed % 2 != 0);
  for (std::uint32_t faults = input->Below(4); faults != 0; --faults) {
    if (!options.plan.Add(ChooseFault(input, where))) break;
  }
  return options;
}

// Handles and addresses differ from world to world, so words are compared by where they came first.
class Renaming {
 public:
  bool Same(std::uint64_t one, std::uint64_t other) {
    constexpr std::uint64_t kSmall = 1U << 16U;
    if (one < kSmall || other < kSmall) return one == other;
    return forth_.try_emplace(one, other).first->second == other && back_.try_emplace(other, one).first->second == one;
  }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> forth_, back_;
};

void CompareRuns(const Run& one, const Run& other) {
  const std::span<const Record> first = one.records();
  const std::span<const Record> second = other.records();
  Renaming renaming;
  bool same = first.size() == second.size();
  std::size_t i = 0;
  for (; same && i < first.size(); ++i) {
    const Record& a = first[i];
    const Record& b = second[i];
    same = a.kind == b.kind && a.call == b.call && a.result == b.result && a.flags == b.flags && a.fault == b.fault && a.begin == b.begin &&
           a.end == b.end && a.occurrence == b.occurrence && renaming.Same(a.context, b.context);
    for (std::size_t k = 0; same && k < faults::kRecordArguments; ++k) same = renaming.Same(a.argument[k], b.argument[k]);
  }
  if (same) return;
  Require(false, "two runs write the same journal", "record " + std::to_string(i) + "\n" + one.Text() + "again\n" + other.Text());
}

void CheckCalls(const Run& run) {
  for (const Record& record : run.records()) {
    if (record.kind != RecordKind::Call || (record.flags & faults::kNested) != 0) continue;
    const BaseId base = driver::BaseOf(static_cast<driver::CallId>(record.call));
    if (!kIsCalled[driver::Index(base)]) Require(false, "called.def has what programs call", std::string(driver::Name(base)));
  }
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cuaudit::fuzz;
  static auto* const first = new Run;
  static auto* const second = new Run;
  cuaudit::FuzzInput input(data, size);
  bool twice = false;
  const RunOptions options = ChooseRun(&input, &twice);
  first->Execute(options, input);
  const cuaudit::harness::Ledger ledger = cuaudit::harness::Fold(first->records());
  CheckCalls(*first);
  CompareObjects(*first, ledger);
  CompareViolations(*first, ledger);
  first->Close();
  if (twice) {
    second->Execute(options, input);
    CompareRuns(*first, *second);
    second->Close();
  }
  return 0;
}
