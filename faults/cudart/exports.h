// SPDX-License-Identifier: MIT
// exports.h: makes an exported function from its implementation: Enter, the call, Record.
//
//   Errors    if the thread's context was destroyed meanwhile, the call binds a context again and is tried once more. process.h has the
//             other rules.
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
// The 13.0 headers declare some functions of 12.4 with other parameters. Their definitions get the exported symbol by an asm label.
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
