// SPDX-License-Identifier: MIT
// passing_driver.h: drivers that pass on every call to another one, but for what each of them changes.
//
// RefusingDriver refuses the n-th call, whichever it is. In RecycledHandle one handle names one stream after another, as handles of a
// genuine driver do.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "passing_driver.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <cstdint>
#include <type_traits>

#include "faults/driver/call_shape.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

// `Driver` derives from this and hides Refuses or Meant.
template <typename Driver>
class PassingDriver {
 public:
  explicit PassingDriver(driver::DriverRef next) : next_(next) {}
  driver::DriverRef ref() { return {&Table(), static_cast<Driver*>(this)}; }
  // Whether the call is answered with `code` and not passed on.
  bool Refuses(driver::CallId, CUresult*) { return false; }
  // What is passed on for an argument.
  template <typename T>
  T Meant(T argument) {
    return argument;
  }

 private:
  template <driver::CallId id, typename Function>
  struct Through;
  template <driver::CallId id, typename... P>
  struct Through<id, CUresult(P...)> {
    static CUresult Call(void* self, P... arguments) {
      Driver* const at = static_cast<Driver*>(self);
      CUresult code = CUDA_SUCCESS;
      if (at->Refuses(id, &code)) return code;
      const driver::DriverRef next = static_cast<PassingDriver*>(at)->next_;
      using Entry = CUresult (*)(void*, P...);
      return reinterpret_cast<Entry>(next.table->entry[driver::Index(id)])(next.self, at->Meant(arguments)...);
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
};

class RefusingDriver : public PassingDriver<RefusingDriver> {
 public:
  // `nth` counts from 1; 0 refuses nothing.
  RefusingDriver(driver::DriverRef next, std::uint64_t nth, CUresult code) : PassingDriver(next), nth_(nth), code_(code) {}
  std::uint64_t calls() const { return calls_; }
  driver::CallId refused() const { return refused_; }  // of the call that was refused, if calls() got that far
  bool Refuses(driver::CallId id, CUresult* code) {
    if (++calls_ != nth_) return false;
    refused_ = id;
    *code = code_;
    return true;
  }

 private:
  std::uint64_t nth_;
  CUresult code_;
  std::uint64_t calls_ = 0;
  driver::CallId refused_{};
};

class RecycledHandle : public PassingDriver<RecycledHandle> {
 public:
  using PassingDriver::PassingDriver;
  CUstream handle() { return reinterpret_cast<CUstream>(this); }
  template <typename T>
  T Meant(T argument) {
    if constexpr (std::is_same_v<T, CUstream>) {
      if (argument == handle()) return means;
    }
    return argument;
  }
  CUstream means = nullptr;
};

}  // namespace cuaudit::alloc
