// SPDX-License-Identifier: MIT
// Random programs against a reference model, on devices that run late, at random, and against us. What fails is shrunk and printed.
//
// CUAUDIT_MODEL_PROGRAMS=N runs N programs from seed CUAUDIT_MODEL_SEED (1) on instead of the few that are fixed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <map>
#include <random>
#include <utility>

#include "suites/unit/allocator/model/execution.h"

namespace cuaudit::alloc::model_test {
namespace {

constexpr std::size_t kSteps = 120;
constexpr std::uint64_t kPrograms = 80;  // that are fixed
constexpr sim::Schedule kSchedules[] = {sim::Schedule::Lazy, sim::Schedule::Fifo, sim::Schedule::Random, sim::Schedule::Adversarial};
constexpr const char* kScheduleNames[] = {"Lazy", "Fifo", "Random", "Adversarial"};

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Conditions ConditionsOf(std::uint64_t seed) {
  Conditions conditions = {.schedule = kSchedules[seed % 4], .seed = seed};
  conditions.failing = seed % 4 < 2 ? seed % 8 < 4 : seed % 8 >= 4;  // every second one, under each schedule
  return conditions;
}

// What is wrong, without how much: a program is shrunk while it goes on showing the same.
std::string KindOf(const std::string& failure) {
  std::string kind;
  for (const char c : failure.substr(0, 48)) {
    if (c < '0' || c > '9') kind += c;
  }
  return kind.substr(0, 24);
}

std::string Smallest(const Program& program, const Conditions& conditions, const std::string& failure) {
  const Program small = Shrink(program, [&](const Program& one) { return KindOf(Execute(one, conditions).failure) == KindOf(failure); });
  const Executed outcome = Execute(small, conditions);
  return "seed " + std::to_string(program.seed) + ", " + kScheduleNames[static_cast<std::size_t>(conditions.schedule)] + ", " +
         std::to_string(small.devices) + " x " + std::to_string(small.device_bytes >> 20) + " MiB, Options" + TextOf(small.options) +
         ":\n" + outcome.listing;
}

// What the programs must have met, or the test says nothing.
class Reached {
 public:
  void Add(const Executed& outcome, const Options& options) {
    const Statistics& s = outcome.statistics;
    const std::pair<const char*, std::uint64_t> all[] = {
        {"served by a thread cache", s.served_thread_cache},
        {"served ready", s.served_own_ready},
        {"served from another stream", s.served_other_ready},
        {"served pending, progress not asked for", options.deterministic ? s.served_pending : 0},
        {"served pending, not over when asked", options.deterministic ? 0 : s.served_pending},
        {"served by the order of a capture", s.served_capture_order},
        {"out of memory", static_cast<std::uint64_t>(s.num_ooms)},
        {"retries", static_cast<std::uint64_t>(s.num_alloc_retries)},
        {"all uses waited for", static_cast<std::uint64_t>(s.num_sync_all_streams)},
        {"waits", s.waits_issued},
        {"waits elided", s.waits_elided},
        {"uses merged", s.uses_merged},
        {"uses captured", s.uses_captured},
        {"stamps shared", s.stamps_shared},
        {"checkpoints restored", outcome.restores},
        {"graphs launched", outcome.launches},
        {"streams retired", outcome.retired},
        {"promises of RecordStream paid by RetireStream", outcome.paid},
        {"allocations in a capture through a StreamRef from before", outcome.moved},
        {"steps on other threads", outcome.borrowed_threads},
        {"pending uses asked after", outcome.checked_pending},
        {"uses on another device's stream", outcome.far_uses},
        {"kept alive until an event", outcome.kept_alive},
        {"releases at the end that failed", outcome.failed_releases},
        {"pages moved", s.pages_moved},
    };
    for (const auto& [what, count] : all) count_[what] += count;
  }
  void Expect() const {
    for (const auto& [what, count] : count_) EXPECT_GT(count, 0U) << what;
  }

 private:
  std::map<std::string, std::uint64_t> count_;
};

TEST(Model, RandomProgramsDoWhatTheReferenceSays) {
  const std::uint64_t count = FromEnvironment("CUAUDIT_MODEL_PROGRAMS", kPrograms);
  const std::uint64_t first = FromEnvironment("CUAUDIT_MODEL_SEED", 1);
  Reached reached;
  int failures = 0;
  for (std::uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    const Program program = MakeProgram(seed, kSteps);
    const Executed outcome = Execute(program, ConditionsOf(seed));
    reached.Add(outcome, program.options);
    if (outcome.failure.empty()) continue;
    ++failures;
    ADD_FAILURE() << outcome.failure << '\n' << Smallest(program, ConditionsOf(seed), outcome.failure);
  }
  if (count >= kPrograms) reached.Expect();
}

// Up to three driver calls of the allocator fail, at any place and in any way: nothing is lost, and its books stay right.
TEST(Model, ProgramsOfWhichDriverCallsFailDoWhatTheReferenceSays) {
  using faults::How;
  constexpr How kHows[] = {How::Refuse, How::RefuseGarbage, How::After, How::Persist, How::Burst, How::Sticky};
  const std::uint64_t count = FromEnvironment("CUAUDIT_MODEL_PROGRAMS", kPrograms);
  const std::uint64_t first = FromEnvironment("CUAUDIT_MODEL_SEED", 1);
  std::size_t fired = 0;
  std::size_t certain = 0;
  int failures = 0;
  for (std::uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    Program program = MakeProgram(seed, kSteps / 2);
    Conditions conditions = ConditionsOf(seed);
    std::mt19937_64 draw(seed);
    for (std::uint64_t i = 1 + draw() % 3; i != 0; --i) {
      ChosenFault fault;
      fault.after_calls = static_cast<std::uint32_t>(draw() % 150);
      fault.code = static_cast<std::uint8_t>(draw());
      fault.how = kHows[draw() % std::size(kHows)];
      conditions.faults.push_back(fault);
    }
    // Every fourth ends the allocator half way.
    if (seed % 4 == 0) program.steps.insert(program.steps.begin() + static_cast<std::ptrdiff_t>(kSteps / 4), Step{.act = Act::Reopen});
    program.steps.push_back(Step{.act = Act::Wrong, .a = static_cast<std::uint8_t>(seed % 16)});
    const Executed outcome = Execute(program, conditions);
    fired += outcome.fired;
    certain += outcome.fired != 0 && outcome.is_certain ? 1 : 0;
    if (outcome.failure.empty()) continue;
    ++failures;
    ADD_FAILURE() << outcome.failure << '\n' << Smallest(program, conditions, outcome.failure);
  }
  if (count < kPrograms) return;
  EXPECT_GT(fired, kPrograms / 2);
  EXPECT_GT(certain, kPrograms / 3);
}

// The detector is alive: a program that does not tell of its uses is told of, and so is an allocator that reuses memory too early; and what
// is shown is short.
void ExpectMisuse(const std::function<void(std::uint64_t, Program*, Conditions*)>& spoil, const char* must_show) {
  int told = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Program program = MakeProgram(seed, kSteps);
    Conditions conditions = ConditionsOf(seed);
    spoil(seed, &program, &conditions);
    const Executed outcome = Execute(program, conditions);
    if (!outcome.is_misuse) continue;
    if (++told != 1) continue;
    const Program small = Shrink(program, [&](const Program& one) { return Execute(one, conditions).is_misuse; });
    EXPECT_LE(small.steps.size(), 8U);
    EXPECT_GE(small.steps.size(), 2U);
    const std::string listing = Execute(small, conditions).listing;
    EXPECT_NE(listing.find(must_show), std::string::npos) << listing;
    EXPECT_NE(listing.find("<-- misuse"), std::string::npos) << listing;
  }
  EXPECT_GE(told, 5);
}

TEST(Model, AProgramThatForgetsItsUsesIsToldOf) {
  ExpectMisuse([](std::uint64_t, Program*, Conditions* conditions) { conditions->forgetful = true; }, "RecordUse(");
}

TEST(Model, AnAllocatorThatReusesTooEarlyIsToldOf) {
  for (const Reuse reuse : {Reuse::Poll, Reuse::Wait}) {
    ExpectMisuse(
        [reuse](std::uint64_t, Program* program, Conditions* conditions) {
          program->options = {};
          program->options.reuse = reuse;
          conditions->deceived = true;
          conditions->schedule = sim::Schedule::Lazy;
        },
        "RecordUse(");
  }
}

// And a release that is repeated when somebody else has the address.
TEST(Model, AnAllocatorThatReleasesTwiceIsToldOf) {
  int told = 0;
  for (std::uint64_t seed = 1; seed <= 200 && told < 3; ++seed) {
    const Program program = MakeProgram(seed, kSteps / 4);
    Conditions conditions = ConditionsOf(seed);
    if (!conditions.failing) continue;
    ASSERT_EQ(Execute(program, conditions).failure, "");
    conditions.repeating = true;
    told += Execute(program, conditions).is_misuse;
  }
  EXPECT_EQ(told, 3);
}

TEST(Model, DeterministicAddressesAndPeaksAreTheSameHoweverTheDeviceRuns) {
  std::uint64_t addresses = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Program program = MakeProgram(seed, kSteps);
    program.options.reuse = Reuse::Wait;
    program.options.completion = Completion::Events;
    program.options.cross_stream = seed % 2 == 0 ? CrossStream::Never : CrossStream::Wait;
    program.options.remap_budget = 0.0;
    program.options.deterministic = true;
    ASSERT_EQ(Check(program.options), nullptr);
    std::vector<std::uint64_t> expected;
    for (std::uint64_t i = 0; i < 6; ++i) {
      Conditions conditions = {.schedule = kSchedules[i % 4], .seed = i + 1};
      const Executed outcome = Execute(program, conditions);
      ASSERT_EQ(outcome.failure, "") << outcome.listing;
      if (i == 0) expected = outcome.trace;
      const auto differs = [&](const Program& one) { return Execute(one, conditions).trace != Execute(one, Conditions()).trace; };
      if (outcome.trace != expected) {
        const Program small = Shrink(program, differs);
        ADD_FAILURE() << "seed " << seed << ": differs from Lazy under " << kScheduleNames[i % 4] << " with Options"
                      << TextOf(small.options) << ":\n"
                      << Execute(small, conditions).listing;
        break;
      }
      addresses += outcome.trace.size();
    }
  }
  EXPECT_GT(addresses, 1000U);
}

// The test above can fail: without the option, progress decides.
TEST(Model, WithoutTheOptionAddressesFollowTheDevice) {
  int different = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    Program program = MakeProgram(seed, kSteps);
    program.options = {};
    Conditions late;
    Conditions soon = {.schedule = sim::Schedule::Fifo};
    different += Execute(program, late).trace != Execute(program, soon).trace;
  }
  EXPECT_GE(different, 3);
}

}  // namespace
}  // namespace cuaudit::alloc::model_test
