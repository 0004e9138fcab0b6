// SPDX-License-Identifier: MIT
// Programs whose allocator hears of failures: which answers are right then, and what is asked that must be refused.
#include <algorithm>

#include "faults/driver/result.h"
#include "suites/unit/allocator/model/execution.h"

namespace cuaudit::alloc {
namespace {

constexpr int kMostTries = 8;  // more than there are faults, each of them twice

}  // namespace

void Execution::Open() {
  const DeviceConfig configs[kDevices] = {{0, nullptr}, {1, nullptr}};
  fired_before_ = 0;
  for (const auto& stream : streams_) stream->outside = StreamRef();
  for (int again = 0; again < kMostTries && allocator_ == nullptr && !failed() && !NothingIsCertain(); ++again) {
    if (again == kMostTries / 2) faulty_->Mend();
    if (Took(Allocator::Create(theirs_, configs, program_.devices, program_.options, &allocator_), "Create") || failed()) return;
    if (allocator_ != nullptr) Fail("Create: an allocator beside an error");
    if (Left(driver::Kind::PrimaryContext) != static_cast<std::uint64_t>(program_.devices) && !NothingIsCertain())
      Fail("Create failed and keeps a context, or took somebody else's");
  }
  if (allocator_ == nullptr && !failed() && !NothingIsCertain()) Fail("Create fails, though no call does");
}

// A driver call of the step under way failed, or one that goes on failing did.
bool Execution::Excused(CUresult result, const char* what) {
  if (faulty_ == nullptr || (faulty_->fired() == fired_before_ && !faulty_->lasting())) return false;
  Say("// %s: %s under %s", what, std::string(driver::ResultName(result)).c_str(), faulty_->text().c_str());
  return true;
}

// A context is lost, or a range mapped without saying so: from here on only that it answers and comes to an end.
bool Execution::NothingIsCertain() const { return faulty_ != nullptr && (faulty_->lost() || faulty_->unsure()); }

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
    if (result != expected && !Excused(result, what))
      Fail("%s: %s, expected %s", what, std::string(driver::ResultName(result)).c_str(), std::string(driver::ResultName(expected)).c_str());
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
    if (NothingIsCertain() || Took(result, "Close") || failed()) break;
    if (again == kMostTries / 2) faulty_->Mend();
  }
  if (failed() || NothingIsCertain()) return;
  if (left != blocks_.size()) return Fail("Close counted %zu live blocks of %zu", left, blocks_.size());
  allocator_.reset();
  if (Left(driver::Kind::PrimaryContext) != static_cast<std::uint64_t>(program_.devices))
    return Fail("a primary context was not let go, or somebody else's was");
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
  if (NothingIsCertain()) return CheckDamaged();
  faulty_->Mend();
  if (left != blocks_.size()) return Fail("Close counted %zu live blocks of %zu", left, blocks_.size());
  (void)Ok(allocator_->Close(nullptr), "Close again");
  (void)d_.CtxSetCurrent(context_[0]);
}

// No lock is held, and it comes to an end; what it holds nobody can say.
void Execution::CheckDamaged() {
  if (allocator_ == nullptr) return;
  Say("// under %s", faulty_->text().c_str());
  CUdeviceptr address = 0;
  if (At(0)->handle != nullptr && !At(0)->capturing && allocator_->Allocate(0, 4096, At(0)->handle, &address) == CUDA_SUCCESS)
    (void)allocator_->Free(address);
  Snapshot snapshot;
  (void)Took(allocator_->TakeSnapshot(&snapshot), "TakeSnapshot");
  (void)allocator_->EmptyCache();
  faulty_->Mend();
  (void)allocator_->Close(nullptr);
  (void)allocator_->Close(nullptr);
}

// What the world has of a kind, without what was acquired while the allocator heard of a failure, and what the driver refused to take.
std::uint64_t Execution::Left(driver::Kind kind) const {
  const std::uint64_t live = sim::LiveCount(world_, kind);
  if (faulty_ == nullptr) return live;
  const std::uint64_t needed = kind == driver::Kind::PrimaryContext ? static_cast<std::uint64_t>(program_.devices) : 0;
  return live <= needed ? live : std::max(needed, live - std::min(live, faulty_->unclaimed(kind) + faulty_->refused(kind)));
}

}  // namespace cuaudit::alloc
