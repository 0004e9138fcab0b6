// SPDX-License-Identifier: MIT
// setting_calls.h: the driver calls that ask for a setting, change it and work with what has it, for the traces of settings.h.
#pragma once

#include <cuda.h>

#include "suites/support/cases/deficits.h"

namespace cuaudit::testing {

// Which setting, and what tells the former value: a question, or the value that a new object has (New...).
enum class Setting {
  Limit,
  NewCacheConfig,
  Flags,
  CaptureMode,
  Threshold,
  NewThreshold,
  PoolOfDevice,
  DefaultPool,
  PrimaryFlags,
  FunctionAttribute,
  NewFunctionCache,
  KernelAttribute,
  NewWindow,
  StreamPriority,
  NewReadMostly,      // has two values
  NewNode,            // the same
  Node,               // the same
  PreferredLocation,  // the caller chose the former one
};

inline constexpr std::uint64_t kFormerValue = 0;
inline constexpr std::uint64_t kOtherValue = 5;
inline constexpr std::uint64_t kPoolOfProgram = 0x9000;
inline constexpr std::uint64_t kDefaultPool = 0x9100;
inline constexpr std::uint64_t kFunctionOfProgram = 0x8000;
inline constexpr std::uint64_t kKernelOfProgram = 0x8100;
inline constexpr std::uint64_t kLibraryOfProgram = 0x8200;
inline constexpr std::uint64_t kStreamOfProgram = 0x8300;
inline constexpr std::uint64_t kMemoryOfProgram = 0x800000;
inline constexpr std::uint64_t kExecutableOfProgram = 0x8400;
inline constexpr std::uint64_t kNodeOfProgram = 0x8500;

// Calls of one setting, and one that works with it.
template <Setting setting>
struct SettingCalls {
  using CallId = driver::CallId;
  Trace& t;
  std::uint64_t former = kFormerValue;

  Step Ask(std::uint64_t value, std::uint32_t stack) {
    switch (setting) {
      case Setting::Limit:
        return t.Call(CallId::CtxGetLimit).In(1, CU_LIMIT_STACK_SIZE).Out(0, value).Stack(stack);
      case Setting::Flags:
        return t.Call(CallId::CtxGetFlags).Out(0, value).Stack(stack);
      case Setting::Threshold:
        return t.Call(CallId::MemPoolGetAttribute)
            .In(0, kPoolOfProgram)
            .In(1, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
            .In(2, 0xbeef)
            .Out(3, value)
            .Stack(stack);
      case Setting::PoolOfDevice:
        return t.Call(CallId::DeviceGetMemPool).Out(0, value).Stack(stack);
      case Setting::PrimaryFlags:
        return t.Call(CallId::DevicePrimaryCtxGetState).Out(1, value).Stack(stack);
      case Setting::FunctionAttribute:
        return t.Call(CallId::FuncGetAttribute)
            .Out(0, value == kFormerValue ? 0xffffffff : value)
            .In(1, 8)
            .In(2, kFunctionOfProgram)
            .Stack(stack);
      case Setting::KernelAttribute:
        return t.Call(CallId::KernelGetAttribute).Out(0, value).In(1, 8).In(2, kKernelOfProgram).Stack(stack);
      case Setting::StreamPriority:
        return t.Call(CallId::StreamGetAttribute)
            .In(0, kStreamOfProgram)
            .In(1, CU_LAUNCH_ATTRIBUTE_PRIORITY)
            .In(2, 0xbeef)
            .Out(3, value)
            .Stack(stack);
      case Setting::Node:
        return t.Call(CallId::GraphNodeGetEnabled)
            .In(0, kExecutableOfProgram)
            .In(1, kNodeOfProgram)
            .Out(2, value == kFormerValue)
            .Stack(stack);
      case Setting::PreferredLocation:
        return Give(value, 104);
      case Setting::NewNode:
      case Setting::NewCacheConfig:
      case Setting::NewThreshold:
      case Setting::DefaultPool:
      case Setting::CaptureMode:
      case Setting::NewFunctionCache:
      case Setting::NewWindow:
      case Setting::NewReadMostly:
        break;
    }
    return t.Call(CallId::DeviceGetCount).Out(0, 1).Stack(stack);  // a question about something else
  }

  Step Give(std::uint64_t value, std::uint32_t stack) {
    const std::uint64_t before = former;
    former = value;
    switch (setting) {
      case Setting::Limit:
        return t.Call(CallId::CtxSetLimit).In(0, CU_LIMIT_STACK_SIZE).In(1, value).Stack(stack);
      case Setting::NewCacheConfig:
        return t.Call(CallId::CtxSetCacheConfig).In(0, value).Stack(stack);
      case Setting::Flags:
        return t.Call(CallId::CtxSetFlags).In(0, value).Stack(stack);
      case Setting::CaptureMode:
        return t.Call(CallId::ThreadExchangeStreamCaptureMode).Out(0, before).In(1, value).Stack(stack);
      case Setting::Threshold:
      case Setting::NewThreshold:
        return t.Call(CallId::MemPoolSetAttribute)
            .In(0, kPoolOfProgram)
            .In(1, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
            .In(2, 0xbeef)
            .In(3, value)
            .Stack(stack);
      case Setting::PoolOfDevice:
        return t.Call(CallId::DeviceSetMemPool).In(1, value).Stack(stack);
      case Setting::DefaultPool:  // it asks for the default one to put it back
        if (value == kFormerValue) t.Call(CallId::DeviceGetDefaultMemPool).Out(0, kDefaultPool).Stack(stack + 10);
        return t.Call(CallId::DeviceSetMemPool).In(1, value == kFormerValue ? kDefaultPool : value).Stack(stack);
      case Setting::PrimaryFlags:
        return t.Call(CallId::DevicePrimaryCtxSetFlags_v2).In(1, value).Stack(stack);
      case Setting::NewFunctionCache:
        return t.Call(CallId::FuncSetCacheConfig).In(0, kFunctionOfProgram).In(1, value).Stack(stack);
      case Setting::KernelAttribute:
        return t.Call(CallId::KernelSetAttribute).In(0, 8).In(1, value).In(2, kKernelOfProgram).Stack(stack);
      case Setting::NewWindow:
      case Setting::StreamPriority:
        return t.Call(CallId::StreamSetAttribute)
            .In(0, kStreamOfProgram)
            .In(1, setting == Setting::NewWindow ? CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW : CU_LAUNCH_ATTRIBUTE_PRIORITY)
            .In(2, 0xbeef)
            .In(3, value)
            .Stack(stack);
      case Setting::NewReadMostly:
        return t.Call(CallId::MemAdvise)
            .In(0, kMemoryOfProgram)
            .In(1, 4096)
            .In(2, value == kFormerValue ? CU_MEM_ADVISE_UNSET_READ_MOSTLY : CU_MEM_ADVISE_SET_READ_MOSTLY)
            .Stack(stack);
      case Setting::Node:
      case Setting::NewNode:
        return t.Call(CallId::GraphNodeSetEnabled)
            .In(0, kExecutableOfProgram)
            .In(1, kNodeOfProgram)
            .In(2, value == kFormerValue)
            .Stack(stack);
      case Setting::PreferredLocation:
        return t.Call(CallId::MemAdvise)
            .In(0, kMemoryOfProgram)
            .In(1, 4096)
            .In(2, CU_MEM_ADVISE_SET_PREFERRED_LOCATION)
            .In(3, value)
            .Stack(stack);
      case Setting::FunctionAttribute:
        break;
    }
    const std::uint64_t with_sign = value == kFormerValue ? ~std::uint64_t{0} : value;  // -1 is the default of a carveout
    return t.Call(CallId::FuncSetAttribute).In(0, kFunctionOfProgram).In(1, 8).In(2, with_sign).Stack(stack);
  }

  void Work(std::uint32_t stack) {
    switch (setting) {
      case Setting::FunctionAttribute:
      case Setting::NewFunctionCache:
        t.Call(CallId::LaunchKernel).In(0, kFunctionOfProgram).Stack(stack);
        return;
      case Setting::KernelAttribute:
        t.Call(CallId::LaunchKernel).In(0, kKernelOfProgram).Stack(stack);
        return;
      case Setting::NewWindow:
      case Setting::StreamPriority:
        t.Call(CallId::LaunchKernel).In(0, kFunctionOfProgram).In(8, kStreamOfProgram).Stack(stack);
        return;
      case Setting::NewReadMostly:
      case Setting::PreferredLocation:
        t.Call(CallId::MemsetD8_v2).In(0, kMemoryOfProgram).Stack(stack);
        return;
      case Setting::Node:
      case Setting::NewNode:
        t.Call(CallId::GraphLaunch).In(0, kExecutableOfProgram).Stack(stack);
        return;
      default:
        break;
    }
    Step alloc = setting == Setting::PoolOfDevice || setting == Setting::DefaultPool
                     ? t.Call(CallId::MemAllocAsync)
                     : t.Call(CallId::MemAllocFromPoolAsync).In(2, kPoolOfProgram);
    alloc.Out(0, 0x7000).In(1, 16).Context(kCallers).Stack(stack);
    t.Call(CallId::MemFreeAsync).In(0, 0x7000).Context(kCallers).Stack(stack + 1);
  }
};

}  // namespace cuaudit::testing
