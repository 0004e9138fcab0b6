// SPDX-License-Identifier: MIT
// exports.h: how an exported function is made from its implementation: the way in, the call, the way out.
//
//   Owns      nothing.
//   Threads   safe.
//   Errors    a call whose thread had lost its context is tried once more after the thread got one; process.h has the rest.
//   Faults    as the function.
//   Source    ours.
#pragma once

#include "faults/cudart/calls.h"

namespace cuaudit::cudart {

template <Need need, bool per_thread, typename Function>
cudaError_t Run(Function function) noexcept {
  const Access access = Enter(need, per_thread);
  if (access.error != cudaSuccess) [[unlikely]]
    return Record(access.error);
  cudaError_t result = function(access.driver);
  if (need == Need::context && result == cudaErrorDeviceUninitialized && Rebind()) result = function(access.driver);
  return Record(result);
}

}  // namespace cuaudit::cudart

#define CUDART_PUBLIC extern "C" __attribute__((visibility("default")))
// The headers of 13.0 declare some names of 12.4 with other parameters, so those get their names from the assembler.
#ifdef CUDART_BY_LABEL
#define CUDART_DEFINE(result, symbol, parameters)                     \
  CUDART_PUBLIC result labelled_##symbol parameters __asm__(#symbol); \
  CUDART_PUBLIC result labelled_##symbol parameters
#else
#define CUDART_DEFINE(result, symbol, parameters) CUDART_PUBLIC result symbol parameters
#endif
#define CUDART_EXPORT(symbol, function, need, per_thread, parameters, arguments)                                        \
  CUDART_DEFINE(cudaError_t, symbol, parameters) {                                                                      \
    using namespace cuaudit::cudart;                                                                                    \
    return Run<Need::need, per_thread>([&](DriverRef driver) noexcept { return cuaudit::cudart::function arguments; }); \
  }
#define CUDART_PROCESS(symbol, function, parameters, arguments) \
  CUDART_DEFINE(cudaError_t, symbol, parameters) { return cuaudit::cudart::Record(cuaudit::cudart::function arguments); }
#define CUDART_PLAIN(symbol, function, result, parameters, arguments) \
  CUDART_DEFINE(result, symbol, parameters) { return cuaudit::cudart::function arguments; }
#define CUDART_ABSENT(symbol, parameters)                 \
  CUDART_DEFINE(cudaError_t, symbol, parameters) {        \
    static std::atomic<bool> said{false};                 \
    return cuaudit::cudart::NotSupported(#symbol, &said); \
  }
