// SPDX-License-Identifier: MIT
// kit_lists.h: lists of calls for the tests of harness/kit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/kit/call_list.h"
#include "harness/kit/defect_shown.h"

namespace cuaudit::harness::kit_lists {

using driver::CallId;
using Is = CallValue::Is;

inline constexpr JudgeOptions kAbandonedIsLeak = {.abandoned_is_leak = true};

inline CallValue Number(std::uint64_t number) { return {Is::Number, number}; }
inline CallValue Of(int variable) { return {Is::Variable, 0, variable}; }
inline CallValue To(int variable) { return {Is::Output, 0, variable}; }

// Each call comes from an instruction and a call stack of its own.
inline Step Call(CallId call, std::vector<CallValue> values, std::string place = "somewhere, a.c:1") {
  static std::uint32_t next = 0;
  Step step{call, std::move(values), std::move(place)};
  step.caller = step.stack = next++;
  return step;
}

// A program that loses its first stream when its event cannot be had, and works with memory and another stream meanwhile.
inline CallList LosesAStream() {
  enum { kContext, kLost, kOther, kMemory, kEvent };
  CallList list;
  for (const char* const type : {"CUcontext", "CUstream", "CUstream", "CUdeviceptr", "CUevent"}) list.variables.push_back({type});
  const auto end = [](std::vector<Step>* steps) {
    steps->push_back(Call(CallId::MemFree_v2, {Of(kMemory)}));
    steps->push_back(Call(CallId::StreamDestroy_v2, {Of(kOther)}));
    steps->push_back(Call(CallId::DevicePrimaryCtxRelease_v2, {Number(0)}));
  };
  Stage first;
  first.steps = {Call(CallId::Init, {Number(0)}),
                 Call(CallId::DevicePrimaryCtxRetain, {To(kContext), Number(0)}),
                 Call(CallId::CtxSetCurrent, {Of(kContext)}),
                 Call(CallId::StreamCreate, {To(kLost), Number(0)}),
                 Call(CallId::StreamCreate, {To(kOther), Number(0)}),
                 Call(CallId::MemAlloc_v2, {To(kMemory), Number(4096)}),
                 Call(CallId::StreamSynchronize, {Of(kOther)})};
  faults::Fault fault = {.base = driver::BaseId::EventCreate};
  fault.occurrence = 7;  // of the recorded run
  fault.code = CUDA_ERROR_OUT_OF_MEMORY;
  first.failing = FailingStep{Call(CallId::EventCreate, {To(kEvent), Number(0)}), fault};
  first.rest = {Call(CallId::EventDestroy_v2, {Of(kEvent)}), Call(CallId::StreamDestroy_v2, {Of(kLost)})};
  end(&first.rest);
  Stage second;
  end(&second.steps);
  list.stages = {std::move(first), std::move(second)};
  return list;
}

// A function raises the limit of its caller's context, and leaves it so when there is no memory. Its caller goes on either way.
inline CallList LeavesALimit() {
  enum { kContext, kLimit, kMemory, kStream, kOther };
  CallList list;
  for (const char* const type : {"CUcontext", "size_t", "CUdeviceptr", "CUstream", "CUdeviceptr"}) list.variables.push_back({type});
  const auto go_on = [](std::vector<Step>* steps) {
    for (Step step : {Call(CallId::MemAlloc_v2, {To(kOther), Number(64)}), Call(CallId::MemFree_v2, {Of(kOther)}),
                      Call(CallId::StreamDestroy_v2, {Of(kStream)}), Call(CallId::DevicePrimaryCtxRelease_v2, {Number(0)})}) {
      step.goes_on = true;
      steps->push_back(step);
    }
  };
  Stage first;
  first.steps = {Call(CallId::Init, {Number(0)}),
                 Call(CallId::DevicePrimaryCtxRetain, {To(kContext), Number(0)}),
                 Call(CallId::CtxSetCurrent, {Of(kContext)}),
                 Call(CallId::StreamCreate, {To(kStream), Number(0)}),
                 Call(CallId::CtxGetLimit, {To(kLimit), Number(CU_LIMIT_STACK_SIZE)}),
                 Call(CallId::CtxSetLimit, {Number(CU_LIMIT_STACK_SIZE), Number(8192)})};
  faults::Fault fault = {.base = driver::BaseId::MemAlloc, .code = CUDA_ERROR_OUT_OF_MEMORY};
  first.failing = FailingStep{Call(CallId::MemAlloc_v2, {To(kMemory), Number(4096)}), fault};
  first.rest = {Call(CallId::MemFree_v2, {Of(kMemory)}), Call(CallId::CtxSetLimit, {Number(CU_LIMIT_STACK_SIZE), Of(kLimit)})};
  go_on(&first.rest);
  Stage second;
  go_on(&second.steps);
  list.stages = {std::move(first), std::move(second)};
  return list;
}

}  // namespace cuaudit::harness::kit_lists
