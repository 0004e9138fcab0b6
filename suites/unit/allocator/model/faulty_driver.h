// SPDX-License-Identifier: MIT
// faulty_driver.h: drivers whose calls fail: the one that is named, or as the bytes of a program say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/driver/driver_ref.h"
#include "faults/driver/kinds.h"
#include "faults/journal/record.h"
#include "faults/plan/fault.h"

namespace cuaudit::alloc {

// A driver in which chosen calls report an error, either refused or done nevertheless. It passes on every other call.
//
// Each error is `code`, for as many calls as `times` says.

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

// A driver in which chosen calls fail, addressed by the number of fallible calls before them. It keeps what its caller
// was told.
//
// Owns a gate in front of another driver, and the gate's journal. A failing call returns an error that it is documented to return, or
// LAUNCH_FAILED in a context that it loses. Other calls are passed on; with How::After the failing call is, too. One call at a time.

struct ChosenFault {
  std::uint32_t after_calls = 0;  // that can fail, since the fault before
  std::uint8_t code = 0;          // which of those that the call is documented to answer
  faults::How how = faults::How::Refuse;
};

class FaultyDriver {
 public:
  FaultyDriver(driver::DriverRef next, std::vector<ChosenFault> faults);
  ~FaultyDriver();
  FaultyDriver(const FaultyDriver&) = delete;
  FaultyDriver& operator=(const FaultyDriver&) = delete;

  driver::DriverRef ref();
  void Mend();  // nothing fails any more, except in a context that is lost

  // All calls so far, in order; what Books and Bytes say is folded from them.
  std::span<const faults::Record> Calls();
  // Number of objects of a kind that the driver has but the program cannot be expected to release: the latest release was refused, or
  // the call that made the object reported an error. An object that was released later does not count.
  std::uint64_t Kept(driver::Kind kind);
  std::uint64_t Refused(driver::Kind kind);        // of those, releases
  std::uint64_t KeptBytes();                       // of device memory, mapped or not; as much at most
  std::uint64_t GoneBytes();                       // that were released and said not to be
  bool said_gone() { return Fold(), said_gone_; }  // a question about an address was refused as if nothing were there

  std::size_t fired() const { return fired_; }
  bool lost() const { return lost_; }                // a context is
  const std::string& text() const { return text_; }  // of the faults so far

 private:
  using Object = std::pair<driver::Kind, std::uint64_t>;
  struct Parts;
  static void BeforeCall(void* self, driver::BaseId base) noexcept;
  void Fire(driver::BaseId base);
  void Fold();
  void Fold(const faults::Record& record);
  void Release(const Object& object, bool injected, bool is_done);

  std::unique_ptr<Parts> parts_;
  std::vector<ChosenFault> faults_;
  std::uint32_t calls_ = 0;  // that can fail, since the latest fault
  std::size_t fired_ = 0;
  bool lost_ = false, said_gone_ = false;
  std::size_t folded_ = 0;  // records
  std::map<Object, std::uint64_t> bytes_;
  std::map<Object, std::uint64_t> refused_, denied_;  // and how often
  std::uint64_t gone_bytes_ = 0;
  std::string text_;
};

// True when the gate made the result, not the driver.
inline bool IsInjected(const faults::Record& call) { return (call.flags & faults::kInjected) != 0; }
inline driver::BaseId BaseOf(const faults::Record& call) { return driver::BaseOf(static_cast<driver::CallId>(call.call)); }

}  // namespace cuaudit::alloc
