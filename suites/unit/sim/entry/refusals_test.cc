// SPDX-License-Identifier: MIT
// The log of refused calls: what callbacks hear, and what a dump has.
#include <string>
#include <vector>

#include "suites/support/sim_world.h"

#if CUDA_VERSION >= 12090
namespace cuaudit::sim::refusals_test {
namespace {

constexpr const char* kLine = "cuMemAlloc_v2 answers CUDA_ERROR_INVALID_VALUE";

struct Hearing {
  driver::DriverRef d;
  std::vector<std::string> lines;
  CUresult inside = CUDA_SUCCESS;
};

void Hear(void* data, CUlogLevel, char* text, std::size_t size) {
  Hearing& hearing = *static_cast<Hearing*>(data);
  CUdevice device = 0;
  hearing.lines.emplace_back(text, size);
  hearing.inside = hearing.d.CtxGetDevice(&device, nullptr);
}

void Refuse(const Simulated& sim) {
  CUdeviceptr p = 0;
  EXPECT_EQ(sim.d.MemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
}

std::string Dump(const Simulated& sim, CUlogIterator* from, std::size_t room) {
  std::string text(room, '\0');
  EXPECT_OK(sim.d.LogsDumpToMemory(from, text.data(), &room, 0));
  text.resize(room);
  return text;
}

TEST(Refusals, AreToldUntilTheCallbackEnds) {
  Simulated sim;
  Hearing hearing{sim.d, {}, CUDA_SUCCESS};
  CUlogsCallbackHandle handle = nullptr;
  EXPECT_OK(sim.d.LogsRegisterCallback(Hear, &hearing, &handle));
  Refuse(sim);
  EXPECT_EQ(hearing.lines, std::vector<std::string>{kLine});
  EXPECT_EQ(hearing.inside, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_OK(sim.d.LogsUnregisterCallback(handle));
  Refuse(sim);
  EXPECT_EQ(hearing.lines.size(), 1U);
}

TEST(Refusals, WhatIsNotReadyIsNotRefused) {
  Simulated sim;
  CUlogIterator before = 0, after = 0;
  CUstream s = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.LaunchHostFunc(
      s, [](void*) {}, nullptr));
  EXPECT_OK(sim.d.LogsCurrent(&before, 0));
  EXPECT_EQ(sim.d.StreamQuery(s), CUDA_ERROR_NOT_READY);
  EXPECT_OK(sim.d.LogsCurrent(&after, 0));
  EXPECT_EQ(before, after);
}

TEST(Refusals, ADumpHasTheNewestLinesThatFitAndMovesOn) {
  Simulated sim;
  CUlogIterator from = 0;
  EXPECT_OK(sim.d.LogsCurrent(&from, 0));
  for (int i = 0; i < 3; ++i) Refuse(sim);
  CUlogIterator again = from;
  std::string line(kLine);
  line += '\n';
  EXPECT_EQ(Dump(sim, &again, 4096), line + line + line);
  EXPECT_EQ(again, from + 3);
  EXPECT_EQ(Dump(sim, &again, 4096), "");
  again = from;
  EXPECT_EQ(Dump(sim, &again, 2 * line.size() + 1), line + line);
  EXPECT_EQ(Dump(sim, nullptr, line.size()), "");
}

TEST(Refusals, ADumpReachesBackAsFarAsTheLogIsKept) {
  Simulated sim;
  CUlogIterator from = 0;
  for (int i = 0; i < 200; ++i) Refuse(sim);
  EXPECT_EQ(Dump(sim, &from, 100'000).size(), 64 * (std::string(kLine).size() + 1));
}

}  // namespace
}  // namespace cuaudit::sim::refusals_test
#endif
