// SPDX-License-Identifier: MIT
// holding_driver.h: a driver in which one call does not return until the test says so. It passes on every call and holds one at a time.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "holding_driver.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <atomic>
#include <semaphore>

#include "faults/driver/call_shape.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

class HoldingDriver {
 public:
  explicit HoldingDriver(driver::DriverRef next) : next_(next) {}
  driver::DriverRef ref() { return {&Table(), this}; }
  void HoldNext(driver::CallId call) { wanted_ = static_cast<int>(driver::Index(call)); }
  void AwaitHeld() { arrived_.acquire(); }
  void LetGo() { go_.release(); }

 private:
  template <driver::CallId id, typename Function>
  struct Through;
  template <driver::CallId id, typename... P>
  struct Through<id, CUresult(P...)> {
    static CUresult Call(void* self, P... arguments) {
      HoldingDriver* const at = static_cast<HoldingDriver*>(self);
      int wanted = static_cast<int>(driver::Index(id));
      if (at->wanted_.load(std::memory_order_relaxed) == wanted && at->wanted_.compare_exchange_strong(wanted, -1)) {
        at->arrived_.release();
        at->go_.acquire();
      }
      using Entry = CUresult (*)(void*, P...);
      return reinterpret_cast<Entry>(at->next_.table->entry[driver::Index(id)])(at->next_.self, arguments...);
    }
  };

  static const driver::DriverTable& Table() {
    static const driver::DriverTable table = {{
#define CUAUDIT_CALL(id, base, version, per_thread) \
  reinterpret_cast<driver::Entry>(&Through<driver::CallId::id, driver::CallType<driver::CallId::id>::Function>::Call),
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                              },
                                              {
#define CUAUDIT_CALL(id, base, version, per_thread) true,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                              }};
    return table;
  }

  driver::DriverRef next_;
  std::atomic<int> wanted_{-1};
  std::binary_semaphore arrived_{0};
  std::binary_semaphore go_{0};
};

}  // namespace cuaudit::alloc
