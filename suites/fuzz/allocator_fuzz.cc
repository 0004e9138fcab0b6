// SPDX-License-Identifier: MIT
// The allocator beside the reference model of suites/unit/allocator/model: the first bytes choose options, schedule and which driver calls
// fail, the rest is the program; the last ones may choose more.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "include/cuaudit/fuzz_input.h"
#include "suites/fuzz/require.h"
#include "suites/unit/allocator/model/execution.h"

namespace cuaudit::fuzz {
namespace {

using alloc::Act;
using alloc::Program;
using alloc::Step;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kMostSteps = 96;

// How often each is meant.
constexpr Act kActs[] = {
    Act::Allocate,     Act::Allocate,     Act::Allocate,   Act::Allocate,    Act::Allocate,  Act::Allocate,       Act::Allocate,
    Act::Free,         Act::Free,         Act::Free,       Act::Free,        Act::Free,      Act::Write,          Act::Write,
    Act::Read,         Act::Read,         Act::RecordUse,  Act::RecordUse,   Act::RecordUse, Act::RecordUse,      Act::RecordStream,
    Act::KeepAlive,    Act::Wait,         Act::Wait,       Act::Synchronize, Act::Query,     Act::EmptyCache,     Act::Trim,
    Act::CreatePool,   Act::BeginPool,    Act::EndPool,    Act::ReleasePool, Act::EmptyPool, Act::Retire,         Act::Destroy,
    Act::BeginCapture, Act::BeginCapture, Act::EndCapture, Act::Launch,      Act::DropGraph, Act::TakeCheckpoint, Act::Restore,
    Act::Wrong,        Act::Reopen,
};
// And these in programs with a trailer: with StreamRefs the first ones.
constexpr Act kFurtherActs[] = {Act::Allocate, Act::Allocate, Act::RecordUse, Act::RecordStream, Act::SetFraction};
constexpr std::size_t kByRef = 4;

// The last bytes of an input may choose what the first ones have no room for: three, and this one. Without them, and where it means
// nothing, all is as it was before there was a trailer.
constexpr std::uint8_t kTrailer = 0xA7;
constexpr std::size_t kTrailerBytes = 4;
struct Trailer {
  bool is_there = false;
  std::uint32_t sizes = 0;
  std::uint32_t limits = 0;
  std::uint32_t calls = 0;
};

Trailer ReadTrailer(const std::uint8_t* data, std::size_t* size) {
  if (*size < kTrailerBytes || data[*size - 1] != kTrailer) return {};
  *size -= kTrailerBytes;
  return {true, data[*size], data[*size + 1], data[*size + 2]};
}

void ChooseFurther(const Trailer& trailer, Program* program) {
  alloc::Options& options = program->options;
  static constexpr std::uint32_t kDivisions[] = {0, 4, 8, 64};
  const std::uint32_t divisions = kDivisions[trailer.sizes & 3U];
  // All intervals alike, or every second one.
  for (std::size_t i = 0; i < options.roundup_power2_divisions.size(); i += (trailer.sizes & 4U) != 0 ? 2 : 1)
    options.roundup_power2_divisions[i] = divisions;
  if ((trailer.sizes & 8U) != 0) options.max_non_split_rounding = 2 * kMiB;
  if ((trailer.sizes & 16U) != 0) options.large_segment_size = 10 * kMiB;
  if ((trailer.sizes & 32U) != 0) options.thread_cache_bytes = 64 * 1024;
  static constexpr double kThresholds[] = {0.0, 0.25, 0.5, 0.9};
  options.garbage_collection_threshold = kThresholds[trailer.limits & 3U];
  options.memory_fraction = 1.0 - ((trailer.limits >> 2U) & 3U) / 4.0;
  if ((trailer.limits & 16U) != 0 && options.expandable_segments && !options.deterministic) {
    options.remap_budget = 1.0;
    options.page_size = ((trailer.limits & 32U) != 0 ? 4 : 2) * kMiB;
  }
  if ((trailer.calls & 1U) != 0) options.capture_check_interval = 1;
  program->captures_anywhere = (trailer.calls & 2U) != 0;
  program->observes = (trailer.calls & 4U) != 0;
  program->gives_back = (trailer.calls & 8U) != 0;
  Require(alloc::Check(options) == nullptr, "the further options fit, too");
}

alloc::Options ChooseOptions(FuzzInput* input) {
  alloc::Options options;
  const std::uint32_t one = input->Byte();
  const std::uint32_t two = input->Byte();
  options.reuse = (one & 1U) != 0 ? alloc::Reuse::Wait : alloc::Reuse::Poll;
  options.deterministic = (one & 2U) != 0 && options.reuse == alloc::Reuse::Wait;
  options.expandable_segments = (one & 4U) != 0;
  options.thread_cache = (one & 8U) == 0;
  options.trust_stream_handles = (one & 16U) != 0;
  options.capture_reuse_by_topology = (one & 32U) == 0;
  if ((one & 64U) != 0) options.max_stamps_per_stream = 4;
  if ((one & 128U) != 0) options.max_split_size = 24 * kMiB;
  static constexpr alloc::CrossStream kCrossings[] = {alloc::CrossStream::Never, alloc::CrossStream::Ready, alloc::CrossStream::Wait,
                                                      alloc::CrossStream::Ready};
  options.cross_stream = kCrossings[two & 3U];
  if (options.cross_stream == alloc::CrossStream::Wait && options.reuse != alloc::Reuse::Wait)
    options.cross_stream = alloc::CrossStream::Ready;
  if ((two & 4U) != 0 && options.reuse == alloc::Reuse::Poll) options.completion = alloc::Completion::StreamWrites;
  if (alloc::Check(options) != nullptr) options.deterministic = false;
  Require(alloc::Check(options) == nullptr, "the options fit one another");
  return options;
}

// Sizes that repeat, and borders.
std::size_t ChooseBytes(FuzzInput* input) {
  static constexpr std::size_t kUsual[] = {512,           4096,     100 * 1024,   700 * 1024, kMiB,      kMiB + 1,  2 * kMiB,
                                           3 * kMiB + 77, 5 * kMiB, 9 * kMiB + 5, 10 * kMiB,  12 * kMiB, 20 * kMiB, 33 * kMiB};
  const std::uint32_t which = input->Byte();
  if (which < 224) return kUsual[which % std::size(kUsual)];
  const std::size_t any = input->Short();
  return 1 + any * (which < 240 ? 1 : 400);
}

Step ChooseStep(FuzzInput* input, int threads, bool further) {
  Step step;
  const std::uint32_t what = input->Byte();
  const std::uint32_t where = input->Byte();
  const std::size_t which = what % (std::size(kActs) + (further ? std::size(kFurtherActs) : 0));
  step.act = which < std::size(kActs) ? kActs[which] : kFurtherActs[which - std::size(kActs)];
  step.by_ref = which >= std::size(kActs) && which - std::size(kActs) < kByRef;
  const bool has_slot = step.act <= Act::KeepAlive;
  if (has_slot) {
    step.a = static_cast<std::uint8_t>((where & 15U) % alloc::kSlots);
  } else if (step.act == Act::Wrong || step.act == Act::SetFraction) {
    step.a = static_cast<std::uint8_t>(where & 15U);
  } else {
    step.a = static_cast<std::uint8_t>(
        (where & 15U) % (step.act >= Act::CreatePool && step.act != Act::Retire && step.act != Act::Destroy ? 2 : alloc::kPlaces));
  }
  step.b = static_cast<std::uint8_t>((where >> 4U) % alloc::kPlaces);
  step.thread = static_cast<std::uint8_t>((where >> 6U) % static_cast<std::uint32_t>(threads));
  if (step.act == Act::Allocate) step.bytes = ChooseBytes(input);
  if (step.act == Act::Trim) step.bytes = (where >> 4U) * 10 * kMiB;
  return step;
}

// A fixed number of bytes, so that the program keeps its place.
std::vector<alloc::ChosenFault> ChooseFaults(FuzzInput* input) {
  using faults::How;
  static constexpr How kHows[] = {How::Refuse, How::RefuseGarbage, How::After, How::Persist, How::Burst, How::Sticky};
  constexpr std::uint32_t kMost = 3;
  const std::uint32_t count = input->Below(kMost + 1);
  std::vector<alloc::ChosenFault> chosen;
  for (std::uint32_t i = 0; i < kMost; ++i) {
    alloc::ChosenFault fault;
    fault.after_calls = input->Byte();
    fault.after_calls += 256U * (input->Byte() % 3U);
    fault.code = input->Byte();
    fault.how = kHows[input->Below(6)];
    if (i < count) chosen.push_back(fault);
  }
  return chosen;
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cuaudit::fuzz;
  const Trailer trailer = ReadTrailer(data, &size);
  cuaudit::FuzzInput input(data, size);
  Program program;
  program.options = ChooseOptions(&input);
  if (trailer.is_there) ChooseFurther(trailer, &program);
  const std::uint32_t shape = input.Byte();
  cuaudit::alloc::Conditions conditions;
  conditions.schedule = static_cast<cuaudit::sim::Schedule>(shape & 3U);
  conditions.seed = input.Byte();
  program.device_bytes = (shape & 4U) != 0 ? 96 * kMiB : 192 * kMiB;
  program.seed = (shape >> 3U) & 1U;  // whether blocks are left to Close
  if ((conditions.seed & 3U) == 3U) program.devices = cuaudit::alloc::kDevices;
  const int threads = (shape & 0xF0U) == 0xF0U ? cuaudit::alloc::kWorkers : 1;
  conditions.faults = ChooseFaults(&input);
  while (!input.empty() && program.steps.size() < kMostSteps) program.steps.push_back(ChooseStep(&input, threads, trailer.is_there));
  const cuaudit::alloc::Executed outcome = cuaudit::alloc::Execute(program, conditions);
  if (!outcome.failure.empty()) {
    Require(false, "the allocator does what the reference says",
            outcome.failure + "\nschedule " + std::to_string(shape & 3U) + ", " + std::to_string(program.device_bytes / kMiB) +
                " MiB, Options" + cuaudit::alloc::TextOf(program.options) + ":\n" + outcome.listing);
  }
  return 0;
}
