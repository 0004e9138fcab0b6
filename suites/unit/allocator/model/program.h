// SPDX-License-Identifier: MIT
// program.h: random programs for an allocator and several streams; Shrink, which finds the smallest program that shows the same failure;
// and the threads that carry out its steps.
//
// Every list of steps is a program: a step that makes no sense where it is (freeing an empty slot) is skipped. So a program stays valid
// when steps are taken away. Shrink takes away smaller and smaller runs of steps (delta debugging, Zeller). Sizes are in bytes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "allocator/options.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

inline constexpr int kSlots = 14;
inline constexpr int kPlaces = 4;    // streams alive at a time
inline constexpr int kFarPlace = 3;  // with two devices: the one of the second
inline constexpr int kDevices = 2;
inline constexpr int kWorkers = 3;
inline constexpr int kPoolSlots = 2;
inline constexpr int kGraphSlots = 2;

enum class Act : std::uint8_t {
  Allocate,      // a: slot, b: stream, bytes
  Free,          // a: slot
  Write,         // a: slot, b: stream; ordered behind what the block's users did before
  Read,          // the same
  RecordUse,     // a: slot, b: stream
  RecordStream,  // a: slot, b: stream
  KeepAlive,     // a: slot, b: stream, whose event it is; then the event is recorded elsewhere and destroyed
  Wait,          // stream b waits for stream a; into a capture when a is in one
  Synchronize,   // a: stream
  Query,         // a: stream
  EmptyCache,
  Trim,        // bytes
  CreatePool,  // a: pool slot, b: 1 no_split, 2 use_on_oom
  BeginPool,   // a: pool slot
  EndPool,
  ReleasePool,
  EmptyPool,
  Retire,        // a: stream: RetireStream, which pays RecordStream's promises, then it is destroyed and another takes its place
  Destroy,       // the same without telling
  BeginCapture,  // a: graph slot, b: stream
  EndCapture,
  Launch,          // a: graph slot, b: stream
  DropGraph,       // a: graph slot
  TakeCheckpoint,  // a: pool slot
  Restore,         // a: pool slot
  Wrong,           // a: what is asked that must be refused, b: stream
  Reopen,          // Close, with whatever is live, then Create
  SetFraction,     // a: quarters of the memory less one, b: stream whose device it is
};
inline constexpr int kActs = 28;

struct Step {
  Act act{};
  std::uint8_t thread = 0;  // on which of kWorkers threads
  std::uint8_t a = 0;
  std::uint8_t b = 0;
  std::size_t bytes = 0;
  bool by_ref = false;  // Allocate, RecordUse, RecordStream: through the StreamRef that the stream had outside captures
};

struct Program {
  std::uint64_t seed = 0;
  Options options;
  int devices = 1;
  std::size_t device_bytes = 0;    // of each
  bool captures_anywhere = false;  // several at once, and on any device
  bool observes = false;           // an OomObserver looks on
  bool gives_back = false;         // a FreeMemoryCallback frees blocks
  std::vector<Step> steps;
};

Program MakeProgram(std::uint64_t seed, std::size_t steps);
// `options` as a brace list of what differs from the default.
std::string TextOf(const Options& options);
// Returns the smallest program found for which `fails` is true. `fails(program)` must be true. Calls `fails` at most `most_runs` times.
Program Shrink(Program program, const std::function<bool(const Program&)>& fails, int most_runs = 2000);

// Threads that carry out given work one at a time, so that a program runs on several threads in a fixed order. They are started when first
// needed and end with this object. Call Run from one thread. The context is current on each worker.
class Workers {
 public:
  Workers(driver::DriverRef driver, CUcontext context) : driver_(driver), context_(context) {}
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  void Run(int worker, const std::function<void()>& work);  // 0: here

 private:
  void Serve(int worker);
  driver::DriverRef driver_;
  CUcontext context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = 0;
  bool ending_ = false;
  const std::function<void()>* work_ = nullptr;
  std::thread threads_[kWorkers];
};

}  // namespace cuaudit::alloc
