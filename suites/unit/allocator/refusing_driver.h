// SPDX-License-Identifier: MIT
// refusing_driver.h: a driver that refuses the n-th call, whichever it is, with `code`, and passes on every other call.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "refusing_driver.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <cstdint>

#include "faults/driver/call_shape.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

class RefusingDriver {
 public:
  // `nth` counts from 1; 0 refuses nothing.
  RefusingDriver(driver::DriverRef next, std::uint64_t nth, CUresult code) : next_(next), nth_(nth), code_(code) {}
  driver::DriverRef ref() { return {&Table(), this}; }
  std::uint64_t calls() const { return calls_; }
  driver::CallId refused() const { return refused_; }  // of the call that was refused, if calls() got that far

 private:
  template <driver::CallId id, typename Function>
  struct Through;
  template <driver::CallId id, typename... P>
  struct Through<id, CUresult(P...)> {
    static CUresult Call(void* self, P... arguments) {
      RefusingDriver* const at = static_cast<RefusingDriver*>(self);
      if (++at->calls_ == at->nth_) {
        at->refused_ = id;
        return at->code_;
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
  std::uint64_t nth_;
  CUresult code_;
  std::uint64_t calls_ = 0;
  driver::CallId refused_{};
};

}  // namespace cuaudit::alloc
