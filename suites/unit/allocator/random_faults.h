// SPDX-License-Identifier: MIT
// random_faults.h: a driver some of whose calls fail, drawn from a seed, on as many threads at once as call it.
//
//   Owns      a table in front of another driver's.
//   Threads   any. Faults fire on a thread only while it has a Call; whoever has none gets what the driver behind gives.
//   Errors    a failing call answers a code that it is documented to answer, but none that loses a context or ends the process.
//   Faults    passes on every other call; of those that acquire nothing some are done although they fail. Before some it
//             yields, so that threads come in between one another.
//   Source    ours.
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
  // Of calls that can fail about one in `one_in` does.
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
