// SPDX-License-Identifier: MIT
#include "suites/unit/allocator/model/execution.h"

#include <cstdarg>
#include <cstdio>

#include "faults/driver/result.h"
#include "include/cuaudit/kernel.h"

namespace cuaudit::alloc {
namespace {

constexpr const char* kImage =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry reader(.param .u64 data, .param .u64 n)\n{\n ret;\n}\n"
    ".visible .entry writer(.param .u64 data, .param .u64 n)\n{\n ret;\n}\n";

// What they touch is told by their parameters; the bytes themselves do not matter.
void Reader(Launch, Device<const char, 1>, std::uint64_t) {}
void Writer(Launch, Device<char, 1>, std::uint64_t) {}

template <typename... Arguments>
CUresult SayDone(void*, Arguments...) noexcept {
  return CUDA_SUCCESS;
}

std::string Format(const char* format, va_list arguments) {
  char text[512];
  (void)std::vsnprintf(text, sizeof(text), format, arguments);
  return text;
}

}  // namespace

Execution::Execution(const Program& program, const Conditions& conditions)
    : program_(program), conditions_(conditions), host_(kMostStreams, 0) {
  static const HostKernel<Reader> reader("reader");
  static const HostKernel<Writer> writer("writer");
  sim::WorldOptions options;
  options.device_bytes = program.device_bytes * static_cast<std::size_t>(program.devices);
  options.device_count = program.devices;
  options.schedule = conditions.schedule;
  options.seed = conditions.seed;
  options.on_misuse = OnMisuse;
  options.observer = this;
  world_ = sim::CreateWorld(options);
  d_ = sim::Driver(world_);
  bool ok = Ok(d_.Init(0), "Init");
  for (int i = program.devices - 1; i >= 0 && ok; --i) {
    ok = Ok(d_.DevicePrimaryCtxRetain(&context_[i], i), "DevicePrimaryCtxRetain") && Ok(d_.CtxSetCurrent(context_[i]), "CtxSetCurrent") &&
         Ok(d_.ModuleLoadData(&module_[i], kImage), "ModuleLoadData") &&
         Ok(d_.ModuleGetFunction(&reader_[i], module_[i], "reader"), "ModuleGetFunction") &&
         Ok(d_.ModuleGetFunction(&writer_[i], module_[i], "writer"), "ModuleGetFunction");
  }
  for (int i = 0; i < program.devices && program.devices > 1; ++i)
    On(i, [&] { (void)Ok(d_.CtxEnablePeerAccess(context_[1 - i], 0), "CtxEnablePeerAccess"); });
  ok = ok && Ok(d_.MemAlloc(&first_address_, std::size_t{2} << 20), "MemAlloc");
  if (!sim::RegisterKernel(world_, &reader.kernel) || !sim::RegisterKernel(world_, &writer.kernel)) Fail("no host kernels");
  std::size_t total = 0;
  for (int i = 0; i < program.devices; ++i) On(i, [&] { (void)Ok(d_.MemGetInfo(&free_at_start_[i], &total), "MemGetInfo"); });
  for (int place = 0; place < kPlaces && ok; ++place) MakeStream(place);
  theirs_ = d_;
  if (conditions.failing) {
    failing_ = std::make_unique<FailingCalls>(d_);
    failing_->repeating = conditions.repeating;
    theirs_ = failing_->ref();
  }
  if (conditions.deceived) {
    deceiving_ = *d_.table;
    deceiving_.entry[Index(driver::CallId::StreamWaitEvent)] = reinterpret_cast<driver::Entry>(SayDone<CUstream, CUevent, unsigned int>);
    deceiving_.entry[Index(driver::CallId::EventQuery)] = reinterpret_cast<driver::Entry>(SayDone<CUevent>);
    theirs_.table = &deceiving_;
  }
  if (!conditions.faults.empty()) {
    faulty_ = std::make_unique<FaultyDriver>(theirs_, conditions.faults);
    theirs_ = faulty_->ref();
  }
  if (ok) Open();
  workers_ = std::make_unique<Workers>(d_, context_[0]);
}

Execution::~Execution() {
  workers_.reset();
  allocator_.reset();
  sim::DestroyWorld(world_);
}

void Execution::Fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (outcome_.failure.empty()) {
    outcome_.failure = Format(format, arguments);
    outcome_.listing += "  // <-- " + outcome_.failure + "\n";
  }
  va_end(arguments);
}

void Execution::Say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  outcome_.listing += "  " + Format(format, arguments) + "\n";
  va_end(arguments);
}

bool Execution::Ok(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) Fail("%s: %s", what, std::string(driver::ResultName(result)).c_str());
  return result == CUDA_SUCCESS;
}

bool Execution::Took(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) {
    CheckSaid(what);
  } else if (!Excused(result, what)) {
    Fail("%s: %s: %s", what, std::string(driver::ResultName(result)).c_str(), allocator_ == nullptr ? "" : allocator_->LastErrorText());
  }
  // A pop that was refused leaves the allocator's context current.
  if (faulty_ != nullptr) (void)d_.CtxSetCurrent(context_[0]);
  return result == CUDA_SUCCESS;
}

void Execution::MakeStream(int place) {
  auto stream = std::make_unique<Stream>();
  stream->number = static_cast<int>(streams_.size());
  stream->clock.assign(kMostStreams, 0);
  stream->device = program_.devices > 1 && place == kFarPlace ? 1 : 0;
  unsigned long long id = 0;
  On(stream->device, [&] {
    (void)(Ok(d_.StreamCreate(&stream->handle, CU_STREAM_NON_BLOCKING), "StreamCreate") &&
           Ok(d_.StreamGetId(stream->handle, &id), "StreamGetId"));
  });
  stream->id = id;
  at_place_[place] = stream->number;
  streams_.push_back(std::move(stream));
}

// What the stream is outside captures; of one in a capture only if that was asked for before.
StreamRef Execution::OutsideOf(Stream* stream) {
  if (stream->outside || stream->capturing) return stream->outside;
  Say("r%d = Identify(s%d);", stream->number, stream->number);
  if (!Took(allocator_->Identify(stream->device, stream->handle, &stream->outside), "Identify")) stream->outside = StreamRef();
  return stream->outside;
}

void Execution::DoAllocate(const Step& step) {
  Stream* const stream = At(step.b);
  if (In(step.a) != nullptr) return;
  CUdeviceptr address = 0;
  Statistics before;
  if (limit_[stream->device] != ~std::size_t{0}) allocator_->GetStatistics(stream->device, &before);
  accounts_.clear();
  const StreamRef outside = step.by_ref ? OutsideOf(stream) : StreamRef();
  Say("x%d = Allocate(%zu, %c%d);", step.a, step.bytes, outside ? 'r' : 's', stream->number);
  const CUresult result = outside ? allocator_->Allocate(step.bytes, outside, &address)
                                  : allocator_->Allocate(stream->device, step.bytes, stream->handle, &address);
  outcome_.moved += outside && stream->capturing;
  outcome_.trace.push_back(static_cast<std::uint64_t>(result));
  if (result != CUDA_SUCCESS && address != 0) return Fail("an address beside an error");
  CheckGrowth(stream->device, before.reserved_bytes[0].current);
  CheckAccount(step, stream->device, result, WasInjected(CUDA_ERROR_OUT_OF_MEMORY));
  if (failed()) return;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && !WasInjected(result)) {
    (void)EndCall();
    return CheckRefused(stream->device, step.bytes);
  }
  if (!Took(result, "Allocate")) return;
  outcome_.trace.push_back(address - first_address_);
  auto block = std::make_unique<Block>();
  block->address = address;
  block->bytes = step.bytes;
  block->owner = stream->number;
  block->device = stream->device;
  block->capture = stream->capture;
  block->was_captured = stream->capturing;
  block->slot = step.a;
  CUdeviceptr base = 0;
  if (!allocator_->FindBlock(address, &base, &block->size) || base != address) return Fail("FindBlock does not know it");
  bool whole_blocks = false;
  for (const UserPool& pool : pools_) whole_blocks = whole_blocks || (pool.exists && pool.no_split);
  CheckGiven(*block, step.bytes, whole_blocks);
  CheckPending(*block);
  Block* const known = block.get();
  blocks_[address] = std::move(block);
  slots_[step.a] = known;
  if (!failed()) Use(known, stream, true);
}

void Execution::DoFree(Block* block) {
  if (!block->kept) TellAll(block);
  if (failed() || block->kept) return;
  Pending pending{block->address, block->size, std::move(block->told)};
  for (const int promised : block->promised) {
    const Stream& user = *streams_[static_cast<std::size_t>(promised)];
    if (!user.capturing) pending.told.push_back({promised, Mark(user)});
  }
  Say("Free(x%d);", block->slot);
  const CUdeviceptr address = block->address;
  if (block->slot >= 0) slots_[block->slot] = nullptr;
  last_freed_ = address;
  (void)Took(allocator_->Free(address), "Free");
  if (failed()) return;
  // Whatever the driver said, the pointer is consumed; also when it said INVALID_VALUE, as Free does of a block that it does not know.
  CUdeviceptr base = 0;
  std::size_t size = 0;
  if (allocator_->FindBlock(address, &base, &size)) return Fail("Free: the block is live still");
  if (!pending.told.empty()) pending_.push_back(std::move(pending));
  blocks_.erase(address);
}

// A stream ends; work that it was given goes on.
void Execution::DoGoodbye(const Step& step) {
  Stream* const stream = At(step.a);
  if (streams_.size() == kMostStreams || stream->capturing || AnyCapture()) return;
  // With handles that are trusted the allocator must hear of the end, and with promises of RecordStream.
  const bool is_retired = step.act == Act::Retire || program_.options.trust_stream_handles;
  for (const auto& [address, block] : blocks_) {
    if (block->promised.count(stream->number) != 0 && !is_retired) return;
  }
  for (const auto& [address, block] : blocks_) {
    if (block->untold.count(stream->number) != 0 && block->promised.count(stream->number) == 0) Tell(block.get(), stream);
  }
  stream->tail = Mark(*stream);
  if (is_retired) {
    Say("RetireStream(s%d);", stream->number);
    ++outcome_.retired;
    // What it pays for ends here: a mark behind its own may be reached later.
    std::vector<std::pair<Block*, CUevent>> marks;
    for (const auto& [address, block] : blocks_) {
      if (block->promised.count(stream->number) != 0) marks.emplace_back(block.get(), Mark(*stream));
    }
    if (!Took(allocator_->RetireStream(stream->device, stream->handle), "RetireStream")) {
      for (const auto& [block, mark] : marks) (void)Ok(d_.EventDestroy(mark), "EventDestroy");
      (void)Ok(d_.EventDestroy(stream->tail), "EventDestroy");
      stream->tail = nullptr;
      return;
    }
    for (const auto& [block, mark] : marks) {
      block->promised.erase(stream->number);
      block->told.push_back({stream->number, mark});
      block->untold.erase(stream->number);
      ++outcome_.paid;
    }
  }
  Say("cuStreamDestroy(s%d);", stream->number);
  if (!Ok(d_.StreamDestroy(stream->handle), "StreamDestroy")) return;
  stream->handle = nullptr;
  MakeStream(step.a);
}

void Execution::DoRecordStream(Block* block, Stream* user, bool by_ref) {
  const StreamRef outside = by_ref ? OutsideOf(user) : StreamRef();
  Say("RecordStream(x%d, %c%d);", block->slot, outside ? 'r' : 's', user->number);
  const CUresult result =
      outside ? allocator_->RecordStream(block->address, outside) : allocator_->RecordStream(block->address, user->handle);
  // In a capture a stream has another identity: what it was given there is not its own outside.
  if (Took(result, "RecordStream") && (user->number != block->owner || block->was_captured)) block->promised.insert(user->number);
}

void Execution::Do(const Step& step) {
  Stream* const a = At(step.a % kPlaces);
  Stream* const b = At(step.b);
  Block* const block = step.a < kSlots ? In(step.a) : nullptr;
  switch (step.act) {
    case Act::Allocate:
      return DoAllocate(step);
    case Act::Free:
      if (block != nullptr) DoFree(block);
      return;
    case Act::Write:
    case Act::Read:
      if (block != nullptr && CanOrder(*b, *block, step.act == Act::Write)) Use(block, b, step.act == Act::Write);
      return;
    case Act::RecordUse:
      if (block != nullptr && (!b->capturing || block->capture == b->capture)) Tell(block, b, step.by_ref);
      return;
    case Act::RecordStream:
      if (block != nullptr && b->capture == block->capture) DoRecordStream(block, b, step.by_ref);
      return;
    case Act::KeepAlive:
      if (block != nullptr && !b->capturing && block->capture < 0) KeepAlive(block, b);
      return;
    case Act::Wait:
      if (a != b && (b->capture == a->capture || (!b->capturing && b->device == graphs_[a->capture].device))) Order(a, b);
      return;
    case Act::Synchronize:
      if (AnyCapture()) return;
      Say("cuStreamSynchronize(s%d);", a->number);
      if (!Ok(d_.StreamSynchronize(a->handle), "StreamSynchronize")) return;
      for (int i = 0; i < kMostStreams; ++i)
        host_[static_cast<std::size_t>(i)] = std::max(host_[static_cast<std::size_t>(i)], a->clock[static_cast<std::size_t>(i)]);
      return;
    case Act::Query:
      if (AnyCapture()) return;
      Say("cuStreamQuery(s%d);", a->number);
      (void)d_.StreamQuery(a->handle);
      return;
    case Act::EmptyCache:
      Say("EmptyCache();");
      (void)Took(allocator_->EmptyCache(), "EmptyCache");
      return;
    case Act::Trim:
      Say("Trim(%d, %zu);", b->device, step.bytes);
      (void)Took(allocator_->Trim(b->device, step.bytes), "Trim");
      return;
    case Act::Retire:
    case Act::Destroy:
      return DoGoodbye(step);
    case Act::BeginCapture:
      if (graph_there_[step.a] || b->capturing || (!program_.captures_anywhere && (AnyCapture() || b->device != 0))) return;
      return BeginCapture(step.a, b);
    case Act::EndCapture:
      if (AnyCapture()) EndCapture(graphs_[step.a].capturing ? step.a : 1 - step.a);
      return;
    case Act::Launch:
      if (!AnyCapture() && graph_there_[step.a] && b->device == graphs_[step.a].device) LaunchGraph(&graphs_[step.a], b);
      return;
    case Act::DropGraph:
      if (!AnyCapture() && graph_there_[step.a]) DropGraph(step.a);
      return;
    case Act::CreatePool:
    case Act::BeginPool:
    case Act::EndPool:
    case Act::ReleasePool:
    case Act::EmptyPool:
    case Act::TakeCheckpoint:
    case Act::Restore:
      return DoPool(step);
    case Act::Wrong:
      return DoWrong(step);
    case Act::Reopen:
      return DoReopen();
    case Act::SetFraction:
      return DoSetFraction(step);
  }
}

Executed Execution::Run() {
  for (std::size_t i = 0; i < program_.steps.size() && !failed() && !exiting_; ++i) {
    const Step& step = program_.steps[i];
    // A capture ends on the thread that began it.
    const bool here = step.act >= Act::BeginCapture && step.act <= Act::DropGraph;
    const int worker = here ? 0 : step.thread;
    const std::size_t said = outcome_.listing.size();
    workers_->Run(worker, [&] {
      Do(step);
      if (faulty_ != nullptr) (void)d_.CtxSetCurrent(context_[0]);  // DoWrong looks at codes alone
    });
    if (worker != 0 && outcome_.listing.size() != said) {
      outcome_.listing.insert(outcome_.listing.size() - 1, "  // thread " + std::to_string(worker));
      ++outcome_.borrowed_threads;
    }
    if (allocator_ == nullptr) break;
    if (!failed()) CheckBooks();
    if (!failed() && (i % 8 == 7 || i + 1 == program_.steps.size())) CheckSnapshot();
  }
  if (!failed() && allocator_ != nullptr) exiting_ ? CheckExiting(false) : CheckEnd();
  workers_.reset();
  outcome_.fired = faulty_ == nullptr ? 0 : faulty_->fired();
  outcome_.is_certain = !exiting_;
  return outcome_;
}

Executed Execute(const Program& program, const Conditions& conditions) {
  Execution execution(program, conditions);
  return execution.Run();
}

}  // namespace cuaudit::alloc
