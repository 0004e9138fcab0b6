// SPDX-License-Identifier: MIT
// recycled_handle.h: a driver in which one handle names one stream after another, as handles of a genuine driver do. It passes on every
// call.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "recycled_handle.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <type_traits>

#include "faults/driver/call_shape.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

class RecycledHandle {
 public:
  explicit RecycledHandle(driver::DriverRef next) : next_(next) {}
  driver::DriverRef ref() { return {&Table(), this}; }
  CUstream handle() { return reinterpret_cast<CUstream>(this); }
  CUstream means = nullptr;

 private:
  template <driver::CallId id, typename Function>
  struct Through;
  template <driver::CallId id, typename... P>
  struct Through<id, CUresult(P...)> {
    static CUresult Call(void* self, P... arguments) {
      RecycledHandle* const at = static_cast<RecycledHandle*>(self);
      using Entry = CUresult (*)(void*, P...);
      return reinterpret_cast<Entry>(at->next_.table->entry[driver::Index(id)])(at->next_.self, at->Meant(arguments)...);
    }
  };
  template <typename T>
  T Meant(T argument) {
    if constexpr (std::is_same_v<T, CUstream>) {
      if (argument == handle()) return means;
    }
    return argument;
  }

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

}  // namespace cuaudit::alloc
