// SPDX-License-Identifier: MIT
#include "suites/unit/allocator/model/program.h"

#include <algorithm>
#include <random>

namespace cuaudit::alloc {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15U + 1) {}
  std::size_t Below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  bool OneIn(std::size_t n) { return Below(n) == 0; }
  std::uint8_t Small(int n) { return static_cast<std::uint8_t>(Below(static_cast<std::size_t>(n))); }

 private:
  std::mt19937_64 engine_;
};

// Sizes that repeat, so that memory is asked for again, and borders.
std::size_t Bytes(Draw& draw) {
  static constexpr std::size_t kUsual[] = {512,           4096,     100 * 1024,   700 * 1024, kMiB,      kMiB + 1,  2 * kMiB,
                                           3 * kMiB + 77, 5 * kMiB, 9 * kMiB + 5, 10 * kMiB,  12 * kMiB, 20 * kMiB, 33 * kMiB};
  switch (draw.Below(8)) {
    case 0:
      return 1 + draw.Below(3000);
    case 1:
      return 1 + draw.Below(2 * kMiB);
    case 2:
      return 1 + draw.Below(24 * kMiB);
    default:
      return kUsual[draw.Below(std::size(kUsual))];
  }
}

struct Weight {
  Act act;
  std::size_t parts;
};
constexpr Weight kWeights[] = {
    {Act::Allocate, 34},    {Act::Free, 24},     {Act::Write, 9},       {Act::Read, 9},           {Act::RecordUse, 7},
    {Act::RecordStream, 2}, {Act::KeepAlive, 2}, {Act::Wait, 6},        {Act::Synchronize, 1},    {Act::Query, 4},
    {Act::EmptyCache, 1},   {Act::Trim, 1},      {Act::CreatePool, 2},  {Act::BeginPool, 2},      {Act::EndPool, 3},
    {Act::ReleasePool, 1},  {Act::EmptyPool, 1}, {Act::Retire, 1},      {Act::Destroy, 1},        {Act::BeginCapture, 3},
    {Act::EndCapture, 2},   {Act::Launch, 2},    {Act::DropGraph, 1},   {Act::TakeCheckpoint, 2}, {Act::Restore, 2},
    {Act::Wrong, 0},        {Act::Reopen, 0},    {Act::SetFraction, 0},
};
static_assert(std::size(kWeights) == kActs);

Act AnyAct(Draw& draw) {
  std::size_t sum = 0;
  for (const Weight& weight : kWeights) sum += weight.parts;
  std::size_t at = draw.Below(sum);
  for (const Weight& weight : kWeights) {
    if (at < weight.parts) return weight.act;
    at -= weight.parts;
  }
  return Act::Allocate;
}

Options AnyOptions(Draw& draw) {
  Options options = {.reuse = draw.OneIn(2) ? Reuse::Wait : Reuse::Poll};
  options.deterministic = options.reuse == Reuse::Wait && draw.OneIn(4);
  options.expandable_segments = draw.OneIn(3);
  options.thread_cache = !draw.OneIn(3);
  options.cross_stream = draw.OneIn(2) ? CrossStream::Never : CrossStream::Ready;
  if (options.cross_stream == CrossStream::Ready && options.reuse == Reuse::Wait && !draw.OneIn(3))
    options.cross_stream = CrossStream::Wait;
  if (options.reuse == Reuse::Poll && draw.OneIn(3)) options.completion = Completion::StreamWrites;
  options.trust_stream_handles = draw.OneIn(4);
  options.capture_reuse_by_topology = !draw.OneIn(3);
  if (draw.OneIn(3)) options.max_stamps_per_stream = 4;
  if (draw.OneIn(5)) options.max_split_size = 24 * kMiB;
  return options;
}

// A fork, uses on both branches, mostly a join, and memory asked for again: what a capture is about.
void AddCapturedWork(Draw& draw, Program* program, std::uint8_t origin) {
  const auto other = static_cast<std::uint8_t>((origin + 1 + draw.Below(kPlaces - 1)) % kPlaces);
  program->steps.push_back({Act::Wait, 0, origin, other, 0});
  for (int round = 0; round < 3; ++round) {
    const std::uint8_t slot = draw.Small(kSlots);
    const std::size_t bytes = Bytes(draw);
    program->steps.push_back({Act::Free, 0, slot, 0, 0});
    program->steps.push_back({Act::Allocate, 0, slot, origin, bytes});
    program->steps.push_back({draw.OneIn(2) ? Act::Read : Act::Write, 0, slot, other, 0});
    program->steps.push_back({draw.OneIn(4) ? Act::RecordStream : Act::RecordUse, 0, slot, other, 0});
    program->steps.push_back({Act::Free, 0, slot, 0, 0});
    if (!draw.OneIn(3)) program->steps.push_back({Act::Wait, 0, other, origin, 0});
    program->steps.push_back({Act::Allocate, 0, draw.Small(kSlots), draw.OneIn(3) ? other : origin, bytes});
  }
}

// Freed while another stream has much to do on it, and asked for again: it is not over when the allocator looks, mostly.
void AddLateUse(Draw& draw, Program* program) {
  const std::uint8_t owner = draw.Small(kPlaces);
  const auto other = static_cast<std::uint8_t>((owner + 1 + draw.Below(kPlaces - 1)) % kPlaces);
  const std::uint8_t slot = draw.Small(kSlots);
  const std::size_t bytes = Bytes(draw);
  program->steps.push_back({Act::Free, 0, slot, 0, 0});
  program->steps.push_back({Act::Allocate, 0, slot, owner, bytes});
  for (int i = 0; i < 8; ++i) program->steps.push_back({Act::Write, 0, slot, other, 0});
  program->steps.push_back({Act::RecordUse, 0, slot, other, 0});
  program->steps.push_back({Act::Free, 0, slot, 0, 0});
  program->steps.push_back({Act::Allocate, 0, slot, owner, bytes});
}

// What is drawn last, so that the programs without it are what they were.
void AddFurther(Draw& draw, Program* program) {
  Options& options = program->options;
  const std::uint32_t divisions = draw.OneIn(2) ? 0 : 1U << draw.Below(7);
  for (std::uint32_t& one : options.roundup_power2_divisions) one = draw.OneIn(4) ? 0 : divisions;
  if (draw.OneIn(3)) options.max_non_split_rounding = 2 * kMiB;
  if (draw.OneIn(3)) options.large_segment_size = 10 * kMiB;
  if (draw.OneIn(3)) options.thread_cache_bytes = 64 * 1024;
  if (draw.OneIn(2)) options.garbage_collection_threshold = 0.25;
  if (draw.OneIn(3)) options.memory_fraction = 0.5;
  program->captures_anywhere = draw.OneIn(2);
  program->observes = draw.OneIn(2);
  program->gives_back = draw.OneIn(3);
  for (Step& step : program->steps) {
    if (step.act == Act::RecordUse || step.act == Act::RecordStream) step.by_ref = draw.OneIn(2);
    if (step.act == Act::Query && draw.OneIn(3)) step = Step{.act = Act::SetFraction, .a = draw.Small(4), .b = step.b};
  }
}

}  // namespace

Program MakeProgram(std::uint64_t seed, std::size_t steps) {
  Draw draw(seed);
  Draw late(~seed);
  Program program;
  program.seed = seed;
  do {
    program.options = AnyOptions(draw);
  } while (Check(program.options) != nullptr);
  program.device_bytes = (draw.OneIn(2) ? 96 : 256) * kMiB;
  program.devices = draw.OneIn(3) ? kDevices : 1;
  const int workers = draw.OneIn(2) ? 1 : kWorkers;
  for (std::size_t i = 0; i < steps; ++i) {
    Step step = {.act = AnyAct(draw), .thread = draw.Small(workers)};
    const bool slot = step.act <= Act::KeepAlive;
    step.a = draw.Small(slot ? kSlots : step.act >= Act::CreatePool ? kPoolSlots : kPlaces);
    if (step.act == Act::Retire || step.act == Act::Destroy) step.a = draw.Small(kPlaces);
    step.b = draw.Small(kPlaces);
    if (step.act == Act::Allocate) step.bytes = Bytes(draw);
    if (step.act == Act::Trim) step.bytes = draw.Below(4) * 20 * kMiB;
    program.steps.push_back(step);
    if (step.act == Act::BeginCapture) AddCapturedWork(draw, &program, step.b);
    if (late.OneIn(24)) AddLateUse(late, &program);
  }
  Draw refs(seed ^ 0x5265667300000000);
  for (Step& step : program.steps) step.by_ref = step.act == Act::Allocate && refs.OneIn(3);
  Draw further(seed ^ 0x4675727468657200);
  if (further.OneIn(3)) AddFurther(further, &program);
  Draw pages(seed ^ 0x5061676573000000);
  if (program.options.expandable_segments && !program.options.deterministic && pages.OneIn(2)) {
    program.options.remap_budget = 1.0;
    program.options.page_size = (pages.OneIn(2) ? 2 : 4) * kMiB;
  }
  return program;
}

std::string TextOf(const Options& options) {
  std::string text;
  const auto say = [&text](bool differs, const std::string& what) {
    if (differs) text += (text.empty() ? "" : ", ") + what;
  };
  say(options.reuse == Reuse::Wait, ".reuse = Reuse::Wait");
  say(options.cross_stream != CrossStream::Never,
      std::string(".cross_stream = CrossStream::") + (options.cross_stream == CrossStream::Ready ? "Ready" : "Wait"));
  say(options.completion == Completion::StreamWrites, ".completion = Completion::StreamWrites");
  say(options.deterministic, ".deterministic = true");
  say(options.expandable_segments, ".expandable_segments = true");
  say(options.page_size != 0, ".page_size = " + std::to_string(options.page_size));
  say(options.remap_budget > 0.0, ".remap_budget = " + std::to_string(options.remap_budget));
  say(!options.thread_cache, ".thread_cache = false");
  say(options.trust_stream_handles, ".trust_stream_handles = true");
  say(!options.capture_reuse_by_topology, ".capture_reuse_by_topology = false");
  say(options.max_stamps_per_stream != 64, ".max_stamps_per_stream = " + std::to_string(options.max_stamps_per_stream));
  say(options.max_split_size != 0, ".max_split_size = " + std::to_string(options.max_split_size));
  const Options plain;
  say(options.memory_fraction != plain.memory_fraction, ".memory_fraction = " + std::to_string(options.memory_fraction));
  say(options.garbage_collection_threshold != 0, ".garbage_collection_threshold = " + std::to_string(options.garbage_collection_threshold));
  say(options.max_non_split_rounding != plain.max_non_split_rounding,
      ".max_non_split_rounding = " + std::to_string(options.max_non_split_rounding));
  say(options.large_segment_size != plain.large_segment_size, ".large_segment_size = " + std::to_string(options.large_segment_size));
  say(options.thread_cache_bytes != plain.thread_cache_bytes, ".thread_cache_bytes = " + std::to_string(options.thread_cache_bytes));
  say(options.capture_check_interval != plain.capture_check_interval,
      ".capture_check_interval = " + std::to_string(options.capture_check_interval));
  std::string divisions;
  for (const std::uint32_t one : options.roundup_power2_divisions) divisions += (divisions.empty() ? "" : ", ") + std::to_string(one);
  say(options.roundup_power2_divisions != plain.roundup_power2_divisions, ".roundup_power2_divisions = {" + divisions + "}");
  return "{" + text + "}";
}

Program Shrink(Program program, const std::function<bool(const Program&)>& fails, int most_runs) {
  const auto try_it = [&](const Program& smaller) {
    if (most_runs-- <= 0 || !fails(smaller)) return false;
    program = smaller;
    return true;
  };
  for (bool any = true; any && most_runs > 0;) {
    any = false;
    for (std::size_t run = std::max<std::size_t>(program.steps.size() / 2, 1); run != 0; run /= 2) {
      for (std::size_t at = 0; at < program.steps.size();) {
        Program smaller = program;
        const auto first = smaller.steps.begin() + static_cast<std::ptrdiff_t>(at);
        const auto count = static_cast<std::ptrdiff_t>(std::min(run, smaller.steps.size() - at));
        smaller.steps.erase(first, first + count);
        if (try_it(smaller)) {
          any = true;
        } else {
          at += run;
        }
      }
    }
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      Program simpler = program;
      simpler.steps[i].thread = 0;
      if (program.steps[i].thread != 0) any = try_it(simpler) || any;
      for (const std::size_t bytes : {std::size_t{512}, 2 * kMiB, 12 * kMiB}) {
        if (program.steps[i].act != Act::Allocate || program.steps[i].bytes <= bytes) continue;
        simpler = program;
        simpler.steps[i].bytes = bytes;
        if (!try_it(simpler)) continue;
        any = true;
        break;
      }
    }
    if (program.devices != 1) {
      Program simpler = program;
      simpler.devices = 1;
      any = try_it(simpler) || any;
    }
    for (bool Program::*const member : {&Program::captures_anywhere, &Program::observes, &Program::gives_back}) {
      if (!(program.*member)) continue;
      Program simpler = program;
      simpler.*member = false;
      any = try_it(simpler) || any;
    }
    const Options plain;
    const auto try_option = [&](auto member) {
      if (program.options.*member == plain.*member) return;
      Program simpler = program;
      simpler.options.*member = plain.*member;
      if (Check(simpler.options) == nullptr) any = try_it(simpler) || any;
    };
    try_option(&Options::memory_fraction);
    try_option(&Options::garbage_collection_threshold);
    try_option(&Options::max_non_split_rounding);
    try_option(&Options::large_segment_size);
    try_option(&Options::thread_cache_bytes);
    try_option(&Options::capture_check_interval);
    try_option(&Options::roundup_power2_divisions);
    try_option(&Options::max_split_size);
    try_option(&Options::max_stamps_per_stream);
    try_option(&Options::trust_stream_handles);
    try_option(&Options::capture_reuse_by_topology);
    try_option(&Options::page_size);
    try_option(&Options::remap_budget);
    try_option(&Options::expandable_segments);
    try_option(&Options::completion);
    try_option(&Options::deterministic);
    try_option(&Options::cross_stream);
    try_option(&Options::reuse);
    if (program.options.thread_cache) {
      Program simpler = program;
      simpler.options.thread_cache = false;
      any = try_it(simpler) || any;
    }
  }
  return program;
}

Workers::~Workers() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Workers::Serve(int worker) {
  (void)driver_.CtxSetCurrent(context_);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || turn_ == worker; });
    if (turn_ != worker) break;
    (*work_)();
    turn_ = 0;
    changed_.notify_all();
  }
  (void)driver_.CtxSetCurrent(nullptr);
}

void Workers::Run(int worker, const std::function<void()>& work) {
  if (worker == 0) return work();
  if (!threads_[worker].joinable()) threads_[worker] = std::thread([this, worker] { Serve(worker); });
  std::unique_lock<std::mutex> lock(mutex_);
  work_ = &work;
  turn_ = worker;
  changed_.notify_all();
  changed_.wait(lock, [&] { return turn_ == 0; });
}

}  // namespace cuaudit::alloc
