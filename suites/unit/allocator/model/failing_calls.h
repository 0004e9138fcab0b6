// SPDX-License-Identifier: MIT
// failing_calls.h: a driver in which chosen calls report an error, either refused or done nevertheless. It passes on every other call.
//
// Each error is `code`, for as many calls as `times` says.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

enum class Failing { Refused, Done };

class FailingCalls {
 public:
  explicit FailingCalls(driver::DriverRef next) : table_(*next.table), next_(next) {
    Put<driver::CallId::MemFree_v2, CUdeviceptr>();
    Put<driver::CallId::MemFreeHost, void*>();
    Put<driver::CallId::MemAddressReserve, CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long>();
    Put<driver::CallId::MemMap, CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long>();
    Put<driver::CallId::MemCreate, CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*, unsigned long long>();
    Put<driver::CallId::MemSetAccess, CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t>();
    Put<driver::CallId::MemUnmap, CUdeviceptr, std::size_t>();
    Put<driver::CallId::MemRelease, CUmemGenericAllocationHandle>();
    Put<driver::CallId::MemAddressFree, CUdeviceptr, std::size_t>();
    Put<driver::CallId::EventDestroy_v2, CUevent>();
    Put<driver::CallId::StreamDestroy_v2, CUstream>();
    Put<driver::CallId::DevicePrimaryCtxRelease_v2, CUdevice>();
    Put<driver::CallId::EventRecord, CUevent, CUstream>();
    Put<driver::CallId::EventQuery, CUevent>();
    Put<driver::CallId::EventSynchronize, CUevent>();
    Put<driver::CallId::StreamSynchronize, CUstream>();
    Put<driver::CallId::StreamIsCapturing, CUstream, CUstreamCaptureStatus*>();
    Put<driver::CallId::MemAlloc_v2, CUdeviceptr*, std::size_t>();
    Put<driver::CallId::PointerGetAttribute, void*, CUpointer_attribute, CUdeviceptr>();
    Put<driver::CallId::StreamWriteValue64_v2, CUstream, CUdeviceptr, cuuint64_t, unsigned>();
    Put<driver::CallId::CtxPopCurrent_v2, CUcontext*>();
    Put<driver::CallId::CtxGetCurrent, CUcontext*>();
    Put<driver::CallId::CtxSynchronize_v2, CUcontext>();
    Put<driver::CallId::ThreadExchangeStreamCaptureMode, CUstreamCaptureMode*>();
    current_ = this;
  }
  ~FailingCalls() { current_ = nullptr; }
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;
  driver::DriverRef ref() { return {&table_, next_.self}; }

  // The next `times` calls of it fail so.
  void Fail(driver::CallId call, Failing how, int times = 1) { plan_[call] = {how, times}; }
  int calls(driver::CallId call) { return calls_[call]; }
  bool failed() const { return failed_; }       // any
  std::function<void(driver::CallId)> on_call;  // first of all, for each of the calls below
  bool repeating = false;                       // what was done is done once more, as soon as somebody else has what was released
  CUresult code = CUDA_ERROR_INVALID_CONTEXT;
  std::size_t taken_bytes = 0;                     // who asks for so much as soon as a cuMemFree was done though it failed
  std::vector<CUdeviceptr> taken;                  // and what it got
  std::vector<std::function<CUresult()>> refused;  // does what was refused

 private:
  struct Plan {
    Failing how = Failing::Refused;
    int times = 0;
  };
  template <driver::CallId id, typename... P>
  void Put() {
    next_entry_[id] = table_.entry[driver::Index(id)];
    table_.entry[driver::Index(id)] = reinterpret_cast<driver::Entry>(&Call<id, P...>);
  }
  template <driver::CallId id, typename... P>
  static CUresult Call(void* self, P... arguments) noexcept {
    FailingCalls* const me = current_;
    ++me->calls_[id];
    if (me->on_call) me->on_call(id);
    using Function = CUresult (*)(void*, P...);
    const auto next = reinterpret_cast<Function>(me->next_entry_[id]);
    Plan& plan = me->plan_[id];
    if (plan.times == 0) return next(self, arguments...);
    --plan.times;
    me->failed_ = true;
    if (plan.how == Failing::Refused) {
      me->refused.push_back([next, self, arguments...] { return next(self, arguments...); });
      return me->code;
    }
    const CUresult result = next(self, arguments...);
    CUdeviceptr address = 0;
    if (id == driver::CallId::MemFree_v2 && me->taken_bytes != 0 && me->next_.MemAlloc(&address, me->taken_bytes) == CUDA_SUCCESS)
      me->taken.push_back(address);
    if (me->repeating) (void)next(self, arguments...);
    return result != CUDA_SUCCESS ? result : me->code;
  }

  inline static FailingCalls* current_ = nullptr;
  driver::DriverTable table_;
  driver::DriverRef next_;
  std::map<driver::CallId, driver::Entry> next_entry_;
  std::map<driver::CallId, Plan> plan_;
  std::map<driver::CallId, int> calls_;
  bool failed_ = false;
};

}  // namespace cuaudit::alloc
