// SPDX-License-Identifier: MIT
// environment.h: what the parts of one allocator share: the driver, the options, whether calls may go on, and the records of blocks.
//
//   Owns      what ArenaEnvironment owns, and a page that a forked child finds wiped.
//   Threads   any thread; driver, options and tracer are set while there is only one.
//   Errors    Usable: NOT_INITIALIZED (a forked child), ILLEGAL_STATE (closed), DEINITIALIZED (the process is exiting).
//   Faults    makes no driver calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/blocks/block.h"
#include "allocator/blocks/free_bins.h"
#include "allocator/options.h"
#include "allocator/trace.h"
#include "allocator/uses/stamps.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

// What the arenas of one allocator share; it has no way to the driver.
struct ArenaEnvironment {
  explicit ArenaEnvironment(const Options& the_options) noexcept : options(the_options) {}
  const Options options;
  const bool notes_ages = options.garbage_collection_threshold > 0.0;
  const bool moves_pages = options.remap_budget > 0.0;
  Tracer tracer;
  std::atomic<std::uint64_t> captured_streams{0};  // records of another scope than Stream
  AddressMap map;
  alignas(64) BlockStore store;  // written often, unlike what is above
  StampCounts stamp_counts;

  bool IsOversize(std::size_t size) const noexcept { return options.max_split_size != 0 && size >= options.max_split_size; }
  bool Traced() const noexcept { return tracer.record != nullptr; }
  void* CaptureStack() const noexcept { return tracer.capture == nullptr ? nullptr : tracer.capture(tracer.self); }
};

struct Environment : ArenaEnvironment {
  Environment(driver::DriverRef the_driver, const Options& the_options) noexcept : ArenaEnvironment(the_options), driver(the_driver) {}
  ~Environment();

  bool Open() noexcept;  // false: no host memory
  CUresult Usable(const char* call) noexcept {
    // Where the path without locks is open, the allocator is not closed, the process is not exiting, and this is no forked child.
    return fast_serial() == serial ? CUDA_SUCCESS : WhyNot(call);
  }
  CUresult Note(CUresult result) noexcept;  // remembers that the process is exiting
  bool Forked() const noexcept;
  bool has_barrier() const noexcept { return has_barrier_; }  // RunBarrier runs one
  std::size_t Round(std::size_t bytes) const noexcept;        // what a request for so many is given at least

  // Reasons to close the path without locks: a tracer, routes, being closed, a driver that is shut down, rounding by divisions.
  void AddDetour() noexcept;
  void RemoveDetour() noexcept;
  // The number of the allocators whose caches may take that path: its own, or 0 while it is closed and in a forked child.
  std::uint64_t fast_serial() const noexcept { return own_->fast_serial.load(std::memory_order_relaxed); }

 private:
  struct OfThisProcess {
    std::uint64_t serial;
    std::atomic<std::uint64_t> fast_serial;
  };
  // What the path without locks reads, on one line.
  alignas(64) OfThisProcess* own_ = nullptr;  // in the page that a forked child finds wiped

 public:
  std::size_t cache_bytes = 0;
  bool serves_directly = false;  // no option asks for more than the best fit among what is free for certain

  const driver::DriverRef driver;
  std::uint64_t serial = 0;
  std::atomic<bool> exiting{false};
  std::atomic<bool> closed{false};

 private:
  CUresult WhyNot(const char* call) noexcept;
  bool has_barrier_ = false;
  bool wipes_ = false;  // a forked child finds own_ wiped
  int process_ = 0;
  Lock detour_lock_;
  std::uint32_t detours_ = 0;

 public:
  // Of the whole allocator, since a use may join two devices; written often, unlike what is above.
  alignas(64) std::atomic<std::uint64_t> uses_recorded{0};
  std::atomic<std::uint64_t> uses_own{0}, uses_merged{0}, uses_captured{0}, double_frees{0}, foreign_pointers{0}, served_shared_pool{0};
};

}  // namespace cuaudit::alloc
