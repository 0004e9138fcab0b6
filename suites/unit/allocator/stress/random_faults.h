// SPDX-License-Identifier: MIT
// random_faults.h: a driver whose calls fail at random, drawn from a seed, for any number of threads.
//
// A fault fires only on a thread that has a Call; other threads get the answers of the driver behind. A failing call returns an error
// that it is documented to return, but none that loses a context or ends the process. Some failing calls that acquire nothing are done
// nevertheless. Before some calls the driver yields, so that threads interleave.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "faults/driver/call_id.h"
#include "faults/driver/driver_ref.h"
#include "faults/driver/kinds.h"

namespace cuaudit::alloc {

enum class Counted { PerThread, Together };  // whose calls decide when the next one fails

class RandomFaults {
 public:
  // About one in `one_in` of the calls that can fail does fail.
  RandomFaults(driver::DriverRef next, std::uint64_t seed, std::uint64_t one_in, Counted counted);
  RandomFaults(const RandomFaults&) = delete;
  RandomFaults& operator=(const RandomFaults&) = delete;

  driver::DriverRef ref() { return {&table_, this}; }
  void Mend() { mended_.store(true); }  // nothing fails any more

  // One call of the subject, on this thread, which is the `thread`-th.
  class Call {
   public:
    Call(RandomFaults* faults, std::uint64_t thread);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    bool failed() const;  // a driver call did, in it
  };

  std::uint64_t fired() const { return fired_.load(); }
  std::uint64_t fired(driver::BaseId base) const { return fired_of_[driver::Index(base)].load(); }
  std::uint64_t refused(driver::Kind kind) const { return refused_of_[static_cast<std::size_t>(kind)].load(); }  // releases

 private:
  struct Decision {
    CUresult code = CUDA_SUCCESS;  // success: it does not fail
    bool is_done = false;
  };
  struct Wrap;
  Decision Decide(driver::CallId id) noexcept;

  driver::DriverTable table_;
  const driver::DriverRef next_;
  const std::uint64_t seed_;
  const std::uint64_t one_in_;
  const Counted counted_;
  std::atomic<bool> mended_{false};
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> fired_{0};
  std::array<std::atomic<std::uint64_t>, driver::kBaseCount> fired_of_{};
  std::array<std::atomic<std::uint64_t>, driver::kKindCount> refused_of_{};
};

}  // namespace cuaudit::alloc
