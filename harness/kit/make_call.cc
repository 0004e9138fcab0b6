// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "harness/kit/make_call.h"

#include <bit>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "faults/driver/call_shape.h"

namespace cuaudit::harness {
namespace {

using driver::CallId;

template <typename P>
P As(std::uint64_t word) noexcept {
  if constexpr (std::is_pointer_v<P>) {
    return reinterpret_cast<P>(word);
  } else if constexpr (std::is_integral_v<P> || std::is_enum_v<P>) {
    return static_cast<P>(word);
  } else if constexpr (std::is_same_v<P, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(word));
  } else {
    return word == 0 ? P{} : *reinterpret_cast<const P*>(word);
  }
}

template <CallId id, typename Function>
struct Made;

template <CallId id, typename... P>
struct Made<id, CUresult(P...)> {
  template <std::size_t... i>
  static CUresult With(driver::DriverRef driver, const std::uint64_t* words, std::index_sequence<i...>) noexcept {
    using Entry = CUresult (*)(void*, P...);
    return reinterpret_cast<Entry>(driver.table->entry[driver::Index(id)])(driver.self, As<P>(words[i])...);
  }
  static CUresult Call(driver::DriverRef driver, const std::uint64_t* words) noexcept {
    return With(driver, words, std::index_sequence_for<P...>());
  }
};

using Caller = CUresult (*)(driver::DriverRef, const std::uint64_t*) noexcept;
constexpr Caller kCallers[] = {
#define CUAUDIT_CALL(id, base, version, per_thread) &Made<CallId::id, driver::CallType<CallId::id>::Function>::Call,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
};

}  // namespace

CUresult MakeCall(driver::DriverRef driver, driver::CallId call, const std::uint64_t* words) noexcept {
  return kCallers[driver::Index(call)](driver, words);
}

}  // namespace cuaudit::harness
