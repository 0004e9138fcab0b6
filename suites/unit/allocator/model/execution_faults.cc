// SPDX-License-Identifier: MIT
// Programs whose allocator hears of failures: which answers are right then, and what is asked that must be refused.
#include <algorithm>
#include <string_view>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "suites/unit/allocator/model/execution.h"

namespace cuaudit::alloc {
namespace {

constexpr int kMostTries = 8;  // more than there are faults, each of them twice

}  // namespace

void Execution::Open() {
  const DeviceConfig configs[kDevices] = {{0, nullptr}, {1, nullptr}};
  for (const auto& stream : streams_) stream->outside = StreamRef();
  was_told_of_exit_ = false;
  for (int again = 0; again < kMostTries && allocator_ == nullptr && !failed(); ++again) {
    if (again == kMostTries / 2) faulty_->Mend();
    if (Took(Allocator::Create(theirs_, configs, program_.devices, program_.options, &allocator_), "Create") || failed()) break;
    was_told_of_exit_ = false;
    if (allocator_ != nullptr) Fail("Create: an allocator beside an error");
    if (Left(driver::Kind::PrimaryContext) != 0) Fail("Create failed and keeps a context, or took somebody else's");
  }
  if (allocator_ != nullptr && !failed()) Observe();
  if (allocator_ == nullptr && !failed()) Fail("Create fails, though no call does");
}

// What the allocator was told in its call under way; not in those that a callback made meanwhile, which are judged by themselves.
const std::vector<const faults::Record*>& Execution::Heard() {
  heard_calls_.clear();
  if (faulty_ == nullptr) return heard_calls_;
  const auto calls = faulty_->Calls();
  auto within = within_.begin();
  for (std::size_t i = heard_; i < calls.size(); ++i) {
    while (within != within_.end() && i >= within->second) ++within;
    if (within == within_.end() || i < within->first) heard_calls_.push_back(&calls[i]);
  }
  return heard_calls_;
}

bool Execution::WasInjected(CUresult code) {
  const auto& heard = Heard();
  return std::any_of(heard.begin(), heard.end(),
                     [code](const faults::Record* call) { return IsInjected(*call) && static_cast<CUresult>(call->result) == code; });
}

// As Heard; it counts for no other call.
const std::vector<const faults::Record*>& Execution::EndCall() {
  was_told_of_exit_ = WasInjected(CUDA_ERROR_DEINITIALIZED) || was_told_of_exit_;  // and so fills heard_calls_
  heard_ = faulty_ == nullptr ? 0 : faulty_->Calls().size();
  within_.clear();
  return heard_calls_;
}

// A driver call of this very call was made to fail, and the code is one that the driver gave in it. Or the driver was said to be shut down:
// then it is not called any more.
bool Execution::Excused(CUresult result, const char* what) {
  const auto& heard = EndCall();
  if (exiting_ && result == CUDA_ERROR_DEINITIALIZED) return true;                               // as a call within it has answered
  if (heard.empty() && was_told_of_exit_) return exiting_ = result == CUDA_ERROR_DEINITIALIZED;  // it was told behind another error
  const bool any_injected = std::any_of(heard.begin(), heard.end(), [](const faults::Record* call) { return IsInjected(*call); });
  const bool is_told = std::any_of(heard.begin(), heard.end(),
                                   [result](const faults::Record* call) { return static_cast<CUresult>(call->result) == result; });
  if (!any_injected || !is_told) return false;
  exiting_ = exiting_ || (result == CUDA_ERROR_DEINITIALIZED && allocator_ != nullptr);
  Say("// %s: %s under %s", what, std::string(driver::ResultName(result)).c_str(), faulty_->text().c_str());
  return true;
}

// Of a handle of physical memory whose release failed before: that it is unknown by now means that it was done.
bool Execution::IsSecondRelease(const faults::Record& call) {
  const auto calls = faulty_->Calls();
  return BaseOf(call) == driver::BaseId::MemRelease && std::any_of(calls.begin(), calls.end(), [&call](const faults::Record& other) {
           return other.begin < call.begin && BaseOf(other) == BaseOf(call) && other.argument[0] == call.argument[0] && IsInjected(other);
         });
}

// A call that answered SUCCESS: nothing failed in it that its caller must hear of.
void Execution::CheckSaid(const char* what) {
  using driver::BaseId;
  const auto& heard = EndCall();
  const std::string_view name(what);
  const bool gives_back = name.starts_with("EmptyCache") || name == "Trim" || name == "Close";
  const faults::Record* unsaid = nullptr;
  bool is_last_recording = true;
  for (auto at = heard.rbegin(); at != heard.rend(); ++at) {
    const faults::Record& call = **at;
    const BaseId base = BaseOf(call);
    const auto code = static_cast<CUresult>(call.result);
    const bool records = base == BaseId::EventRecord || base == BaseId::StreamWriteValue64 || base == BaseId::StreamWaitEvent;
    // One that was answered INVALID_CONTEXT is made again, with a context.
    if (records && IsInjected(call) && (code != CUDA_ERROR_INVALID_CONTEXT || is_last_recording)) unsaid = &call;
    is_last_recording = is_last_recording && !records;
    if (!gives_back || !IsInjected(call)) continue;
    const driver::EffectRow& row = driver::EffectOf(base);
    const bool is_release = driver::IsRelease(row.effect) && row.kind != driver::Kind::ContextStackEntry;
    if (is_release && !(code == CUDA_ERROR_INVALID_VALUE && IsSecondRelease(call))) unsaid = &call;
    if (base == BaseId::EventSynchronize || base == BaseId::CtxSynchronize) unsaid = &call;
  }
  if (unsaid == nullptr) return;
  Fail("%s: SUCCESS, and %s answered %s", what, std::string(driver::Name(BaseOf(*unsaid))).c_str(),
       std::string(driver::ResultName(static_cast<CUresult>(unsaid->result))).c_str());
}

// A use that was told of with SUCCESS stands in the driver.
void Execution::CheckRecorded(const Block& block, const Stream& user, std::size_t heard_before) {
  if (faulty_ == nullptr || failed() || user.capturing || block.was_captured || user.number == block.owner) return;
  const auto heard = faulty_->Calls().subspan(heard_before);
  const bool is_recorded = std::any_of(heard.begin(), heard.end(), [](const faults::Record& call) {
    const driver::BaseId base = BaseOf(call);
    return call.result == CUDA_SUCCESS && (base == driver::BaseId::EventRecord || base == driver::BaseId::StreamWriteValue64);
  });
  if (!is_recorded) Fail("RecordUse: SUCCESS, and nothing was recorded");
}

// Of the stream's work until now, or of the event, instead of telling the allocator.
void Execution::WaitInstead(CUstream stream, CUevent event) {
  if (failed()) return;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  (void)Ok(d_.ThreadExchangeStreamCaptureMode(&mode), "ThreadExchangeStreamCaptureMode");
  (void)(event != nullptr ? Ok(d_.EventSynchronize(event), "EventSynchronize") : Ok(d_.StreamSynchronize(stream), "StreamSynchronize"));
  (void)Ok(d_.ThreadExchangeStreamCaptureMode(&mode), "ThreadExchangeStreamCaptureMode");
}

void Execution::DoWrong(const Step& step) {
  const auto refuses = [&](CUresult result, CUresult expected, const char* what) {
    Say("%s;", what);
    if (result != expected) {
      if (!Excused(result, what))
        Fail("%s: %s, expected %s", what, std::string(driver::ResultName(result)).c_str(),
             std::string(driver::ResultName(expected)).c_str());
    } else if (result == CUDA_SUCCESS) {
      CheckSaid(what);
    } else {
      (void)EndCall();
    }
  };
  const auto wrong_free = [&](CUdeviceptr address, const char* what) {
    ++wrong_asked_;
    ++wrong_frees_;
    refuses(allocator_->Free(address), CUDA_ERROR_INVALID_VALUE, what);
  };
  CUdeviceptr address = ~CUdeviceptr{0};
  CUdeviceptr base = 0;
  std::size_t size = 0;
  Stream* const stream = At(step.b);
  const bool is_free = last_freed_ != 0 && blocks_.count(last_freed_) == 0;
  switch (step.a % 14) {
    case 0:
      if (is_free) wrong_free(last_freed_, "Free(what was freed)");
      return;
    case 1:
      if (!blocks_.empty()) wrong_free(blocks_.begin()->first + 1, "Free(inside a block)");
      return;
    case 2:
      return wrong_free(first_address_, "Free(somebody else's)");
    case 3:
      return refuses(allocator_->Free(0), CUDA_SUCCESS, "Free(0)");
    case 4:
      if (!is_free) return;
      ++wrong_asked_;
      return refuses(allocator_->RecordUse(last_freed_, stream->handle), CUDA_ERROR_INVALID_VALUE, "RecordUse(what was freed)");
    case 5:
      ++wrong_asked_;
      return refuses(allocator_->RecordStream(first_address_, stream->handle), CUDA_ERROR_INVALID_VALUE, "RecordStream(somebody else's)");
    case 6:
      if (is_free && allocator_->FindBlock(last_freed_, &base, &size) && blocks_.count(base) == 0) Fail("FindBlock finds what is free");
      return;
    case 7:
      return refuses(allocator_->Allocate(3, 512, stream->handle, &address), CUDA_ERROR_INVALID_VALUE, "Allocate(device 3)");
    case 8:
      return refuses(allocator_->Allocate(0, std::size_t{1} << 61, stream->handle, &address), CUDA_ERROR_INVALID_VALUE, "Allocate(2 EiB)");
    case 9:
      refuses(allocator_->Allocate(0, 0, stream->handle, &address), CUDA_SUCCESS, "Allocate(0)");
      if (address != 0 && !failed()) Fail("Allocate(0): an address");
      return;
    case 10:
      return refuses(allocator_->ReleasePool(PoolId{99, 99}), CUDA_ERROR_INVALID_VALUE, "ReleasePool(unknown)");
    case 11:
      return refuses(allocator_->EndAllocateToPool(0, PoolId{99, 99}), CUDA_ERROR_ILLEGAL_STATE, "EndAllocateToPool(unknown)");
    case 12:
      return refuses(allocator_->SetMemoryFraction(0, 1.5), CUDA_ERROR_INVALID_VALUE, "SetMemoryFraction(1.5)");
    default:
      return refuses(allocator_->Trim(-1, 0), CUDA_ERROR_INVALID_VALUE, "Trim(device -1)");
  }
}

// The end of the allocator in the middle of the program; what is live goes with it.
void Execution::DoReopen() {
  if (AnyCapture() || std::any_of(std::begin(graph_there_), std::end(graph_there_), [](bool there) { return there; })) return;
  SynchronizeAll();
  if (failed()) return;
  std::size_t left = 0;
  Say("Close();");
  for (int again = 0; again < kMostTries; ++again) {
    std::size_t live = 0;
    const CUresult result = allocator_->Close(&live);
    if (again == 0) left = live;
    if (Took(result, "Close") || failed() || exiting_) break;
    if (again == kMostTries / 2) faulty_->Mend();
  }
  if (failed()) return;
  if (left != blocks_.size()) return Fail("Close counted %zu live blocks of %zu", left, blocks_.size());
  if (exiting_) return CheckExiting(true);
  allocator_.reset();
  if (Left(driver::Kind::PrimaryContext) != 0) return Fail("a primary context was not let go, or somebody else's was");
  std::vector<Told> all;
  for (const Pending& pending : pending_) all.insert(all.end(), pending.told.begin(), pending.told.end());
  for (const auto& [address, block] : blocks_) all.insert(all.end(), block->told.begin(), block->told.end());
  for (const Told& told : all) {
    if (told.event != nullptr) (void)Ok(d_.EventDestroy(told.event), "EventDestroy");
  }
  pending_.clear();
  blocks_.clear();
  std::fill(std::begin(slots_), std::end(slots_), nullptr);
  for (UserPool& pool : pools_) pool = {};
  wrong_asked_ = wrong_frees_ = 0;
  last_freed_ = 0;
  Say("Create();");
  Open();
}

// Under faults, then without any: what was refused is released now, or is the driver's for good.
void Execution::CheckFaultyClose() {
  std::size_t left = 0;
  Say("Close();");
  (void)Took(allocator_->Close(&left), "Close");
  if (failed()) return;
  if (left != blocks_.size()) return Fail("Close counted %zu live blocks of %zu", left, blocks_.size());
  if (exiting_) return CheckExiting(true);
  faulty_->Mend();
  (void)Took(allocator_->Close(nullptr), "Close again");
  (void)d_.CtxSetCurrent(context_[0]);
  if (!failed()) exiting_ ? CheckExiting(true) : CheckTriedAgain();
}

// Nothing fails any more: what is proved to be ours is gone.
void Execution::CheckTriedAgain() {
  if (faulty_->lost()) return;  // what was refused for that counts as gone
  if (faulty_->Kept(driver::Kind::Mapping) != 0) return Fail("a mapping whose end was refused was not tried again");
  if (faulty_->said_gone()) return;
  if (faulty_->Refused(driver::Kind::DeviceMemory) != 0 || faulty_->Refused(driver::Kind::PinnedMemory) != 0)
    Fail("memory whose release was refused was not tried again");
}

// The allocator has said that the driver is shut down: it leaves the driver alone and says so, and its books stay right.
void Execution::CheckExiting(bool is_closed) {
  Say("// DEINITIALIZED under %s", faulty_->text().c_str());
  if (!is_closed) CheckBooks();
  if (!is_closed && !failed()) CheckSnapshot();
  const std::size_t before = faulty_->Calls().size();
  const auto says_so = [&](CUresult result, const char* what) {
    if (result != CUDA_ERROR_DEINITIALIZED)
      Fail("%s: %s, where the driver is shut down", what, std::string(driver::ResultName(result)).c_str());
  };
  const CUstream stream = At(0)->handle;
  StreamRef ref;
  CUdeviceptr address = 0;
  PoolId pool;
  if (!is_closed) {
    says_so(allocator_->Identify(0, stream, &ref), "Identify");
    says_so(allocator_->Allocate(0, 4096, stream, &address), "Allocate");
    says_so(allocator_->EmptyCache(), "EmptyCache");
    says_so(allocator_->Trim(0, 0), "Trim");
    says_so(allocator_->RetireStream(0, stream), "RetireStream");
    says_so(allocator_->CreatePool({}, &pool), "CreatePool");
    says_so(allocator_->SetMemoryFraction(0, 0.5), "SetMemoryFraction");
    while (!blocks_.empty() && !failed()) {
      const CUdeviceptr live = blocks_.begin()->first;
      CUdeviceptr base = 0;
      std::size_t size = 0;
      says_so(allocator_->RecordStream(live, stream), "RecordStream");
      says_so(allocator_->KeepAliveUntil(live, nullptr), "KeepAliveUntil");
      const CUresult result = allocator_->Free(live);
      if (result != CUDA_SUCCESS) says_so(result, "Free");
      if (allocator_->FindBlock(live, &base, &size)) Fail("Free: the block is live still");
      blocks_.erase(live);
    }
    if (!failed()) CheckBooks();
  }
  std::size_t left = 0;
  says_so(allocator_->Close(&left), "Close");
  if (is_closed ? left > blocks_.size() : left != blocks_.size()) Fail("Close counted %zu live blocks of %zu", left, blocks_.size());
  allocator_.reset();
  if (faulty_->Calls().size() != before) Fail("the driver was called after it was said to be shut down");
}

// What the world has of a kind, beyond what it is to have, what was acquired while the allocator heard of a failure, and what the driver
// refused to take and was not given again.
std::int64_t Execution::Left(driver::Kind kind) {
  const std::uint64_t needed = kind == driver::Kind::PrimaryContext ? static_cast<std::uint64_t>(program_.devices) : 0;
  const std::uint64_t kept = faulty_ == nullptr ? 0 : faulty_->Kept(kind);
  return static_cast<std::int64_t>(sim::LiveCount(world_, kind)) - static_cast<std::int64_t>(needed + kept);
}

}  // namespace cuaudit::alloc
