// SPDX-License-Identifier: MIT
// kept_ground.h: ranges and host memory under what is mapped or registered there.
#pragma once

#include "suites/support/trace.h"

namespace cuaudit::testing {

enum class Ground { Range, Heap, Pages };
inline constexpr Ground kGrounds[] = {Ground::Range, Ground::Heap, Ground::Pages};

inline void TakeGround(Trace& t, Ground ground, std::uint64_t at) {
  if (ground == Ground::Range) {
    t.Call(driver::CallId::MemAddressReserve).Out(0, at).In(1, 0x4000).Stack(1);
  } else {
    t.Host(ground == Ground::Heap ? faults::HostCall::Allocate : faults::HostCall::Map, at, 0x4000).Stack(1);
  }
}

inline void GiveGround(Trace& t, Ground ground, std::uint64_t at) {
  if (ground == Ground::Range) {
    t.Call(driver::CallId::MemAddressFree).In(0, at).In(1, 0x4000).Stack(4);
  } else {
    t.Host(ground == Ground::Heap ? faults::HostCall::Deallocate : faults::HostCall::Unmap, at, ground == Ground::Heap ? 0 : 0x4000)
        .Stack(4);
  }
}

inline void Cover(Trace& t, Ground ground, std::uint64_t at) {
  const auto call = ground == Ground::Range ? driver::CallId::MemMap : driver::CallId::MemHostRegister_v2;
  t.Call(call).In(0, at).In(1, 0x1000).Stack(2);
}

inline Step Uncover(Trace& t, Ground ground, std::uint64_t at) {
  const auto call = ground == Ground::Range ? driver::CallId::MemUnmap : driver::CallId::MemHostUnregister;
  Step step = t.Call(call).In(0, at).Stack(3);
  if (ground == Ground::Range) step.In(1, 0x1000);
  return step;
}

// What the fault-free run does: two pages are covered, and all is given back.
inline Trace CoversTwoPages(Ground ground) {
  Trace t;
  TakeGround(t, ground, 0x10000);
  for (const std::uint64_t at : {0x10000U, 0x12000U}) Cover(t, ground, at);
  for (const std::uint64_t at : {0x10000U, 0x12000U}) Uncover(t, ground, at);
  GiveGround(t, ground, 0x10000);
  return t;
}

}  // namespace cuaudit::testing
