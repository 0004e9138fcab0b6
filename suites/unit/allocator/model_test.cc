// SPDX-License-Identifier: MIT
// Random programs against a reference model, on devices that run late, at random, and against us. What fails is shrunk and printed.
//
// CUAUDIT_MODEL_PROGRAMS=N runs N programs from seed CUAUDIT_MODEL_SEED (1) on instead of the few that are fixed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "suites/unit/allocator/model/execution.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kSteps = 120;
constexpr sim::Schedule kSchedules[] = {sim::Schedule::Lazy, sim::Schedule::Fifo, sim::Schedule::Random, sim::Schedule::Adversarial};
constexpr const char* kScheduleNames[] = {"Lazy", "Fifo", "Random", "Adversarial"};

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Conditions ConditionsOf(std::uint64_t seed) {
  Conditions conditions;
  conditions.schedule = kSchedules[seed % 4];
  conditions.seed = seed;
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
  const Outcome outcome = Execute(small, conditions);
  return "seed " + std::to_string(program.seed) + ", " + kScheduleNames[static_cast<std::size_t>(conditions.schedule)] + ", " +
         std::to_string(small.device_bytes >> 20) + " MiB, Options" + TextOf(small.options) + ":\n" + outcome.listing;
}

struct Reached {
  std::uint64_t thread_cache = 0, own = 0, other = 0, pending = 0, capture_order = 0, shared_pool = 0, ooms = 0, retries = 0;
  std::uint64_t waits = 0, elided = 0, merged = 0, captured = 0, restores = 0, launches = 0, retired = 0, threads = 0, checked = 0, syncs = 0;
  void Add(const Outcome& outcome) {
    const Statistics& s = outcome.statistics;
    thread_cache += s.served_thread_cache;
    own += s.served_own_ready;
    other += s.served_other_ready;
    pending += s.served_pending;
    capture_order += s.served_capture_order;
    shared_pool += s.served_shared_pool;
    ooms += static_cast<std::uint64_t>(s.num_ooms);
    retries += static_cast<std::uint64_t>(s.num_alloc_retries);
    syncs += static_cast<std::uint64_t>(s.num_sync_all_streams);
    waits += s.waits_issued;
    elided += s.waits_elided;
    merged += s.uses_merged;
    captured += s.uses_captured;
    restores += outcome.restores;
    launches += outcome.launches;
    retired += outcome.retired;
    threads += outcome.borrowed_threads;
    checked += outcome.checked_pending;
  }
};

TEST(Model, RandomProgramsDoWhatTheReferenceSays) {
  const std::uint64_t count = FromEnvironment("CUAUDIT_MODEL_PROGRAMS", 100);
  const std::uint64_t first = FromEnvironment("CUAUDIT_MODEL_SEED", 1);
  Reached reached;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Program program = MakeProgram(seed, kSteps);
    const Outcome outcome = Execute(program, ConditionsOf(seed));
    reached.Add(outcome);
    if (outcome.failure.empty()) continue;
    ADD_FAILURE() << outcome.failure << '\n'
           << Smallest(program, ConditionsOf(seed), outcome.failure);
  }
  // What the fixed programs must have met, or the test says nothing.
  std::printf("  cache %llu, own %llu, other %llu, pending %llu, captured order %llu, borrowed %llu; oom %llu of %llu retries\n",
              static_cast<unsigned long long>(reached.thread_cache), static_cast<unsigned long long>(reached.own),
              static_cast<unsigned long long>(reached.other), static_cast<unsigned long long>(reached.pending),
              static_cast<unsigned long long>(reached.capture_order), static_cast<unsigned long long>(reached.shared_pool),
              static_cast<unsigned long long>(reached.ooms), static_cast<unsigned long long>(reached.retries));
  for (const std::uint64_t one : {reached.thread_cache, reached.own, reached.other, reached.pending, reached.capture_order, reached.ooms,
                                  reached.retries, reached.waits, reached.elided, reached.merged, reached.captured, reached.restores,
                                  reached.launches, reached.retired, reached.threads, reached.checked, reached.syncs})
    EXPECT_GT(one, 0U);
}

}  // namespace
}  // namespace cuaudit::alloc
