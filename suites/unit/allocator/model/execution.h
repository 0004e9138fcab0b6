// SPDX-License-Identifier: MIT
// execution.h: runs one program on a simulated device and compares it with a reference of what the allocator must have done.
//
// Owns the world, the allocator, streams, events, graphs and worker threads; all are gone when Execute returns. Steps run one at a time,
// each on the thread that it names, in the order of the program. A vector clock per stream says which work the program's own waits have
// ordered. Before a block is used, the execution makes the waits that the users of the block owe each other. Before a block is freed, it
// tells the allocator of each use that the block's own stream is not ordered after. So every misuse that the world proves is the
// allocator's, or the program's with `Conditions::forgetful`. Executed::failure is empty when all was right. Sizes are in bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "allocator/allocator.h"
#include "faults/sim/world.h"
#include "suites/unit/allocator/model/faulty_driver.h"
#include "suites/unit/allocator/model/program.h"

namespace cuaudit::alloc {

struct Conditions {
  sim::Schedule schedule = sim::Schedule::Lazy;
  std::uint64_t seed = 1;  // of the schedule
  bool forgetful = false;  // uses are not told of
  bool deceived = false;   // the allocator's waits do nothing and its queries are always told "over": an allocator that reuses too early
  std::vector<ChosenFault> faults = {};  // of the allocator's calls
  bool failing = false;                  // one release at Close fails, refused or done all the same; Close is called again
  bool repeating = false;                // and somebody releases it once more at once, as an allocator must not
};

struct Executed {
  std::string failure;
  bool is_misuse = false;            // memory given out too early: proved by the world, or seen by the program's own events
  std::string listing;               // what was called, as C++
  std::vector<std::uint64_t> trace;  // addresses from the world's first on, and sizes
  Statistics statistics;             // before the end
  std::size_t steps = 0;             // that were done
  std::uint64_t captures = 0, launches = 0, moved = 0, paid = 0, restores = 0, retired = 0, borrowed_threads = 0, checked_pending = 0;
  std::size_t fired = 0;   // of the faults
  bool is_certain = true;  // to the end; the driver was not said to be shut down
  std::uint64_t far_uses = 0, kept_alive = 0, failed_releases = 0;
};

Executed Execute(const Program& program, const Conditions& conditions);

class Execution {
 public:
  Execution(const Program& program, const Conditions& conditions);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  Executed Run();

 private:
  static constexpr int kMostStreams = 16;
  using Clock = std::vector<std::uint32_t>;  // by stream number
  using Ticks = std::map<int, std::uint32_t>;

  struct Stream {
    int number = 0;
    int device = 0;
    CUstream handle = nullptr;
    std::uint64_t id = 0;
    StreamRef outside;       // once it was asked for
    CUevent tail = nullptr;  // of a stream that is gone: the end of its work
    Clock clock;
    bool capturing = false;
    int capture = -1;  // graph slot
    Clock before_capture;
  };
  struct Told {
    int stream;
    CUevent event;  // the program's own, recorded where the use was told of
  };
  struct Block {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    std::size_t size = 0;
    int owner = 0;
    int device = 0;
    int capture = -1;           // graph slot of the capture under way that it belongs to
    bool was_captured = false;  // given out in a capture: to what the stream was in it
    Ticks writes, reads;
    std::set<int> untold;    // other streams that have used it and were not told of
    std::set<int> promised;  // RecordStream's
    std::vector<Told> told;
    int slot = -1;
    unsigned kept = 0;  // a use in these captures under way could not be told of, a bit each
  };
  struct Pending {
    CUdeviceptr address;
    std::size_t size;
    std::vector<Told> told;
  };
  struct UserPool {
    PoolId id;
    bool exists = false;
    bool routed = false;
    bool no_split = false;
    bool has_checkpoint = false;
    Checkpoint checkpoint;
  };
  struct Graph {
    PoolId pool;
    CUgraphExec exec = nullptr;
    bool capturing = false;
    int origin = -1;  // stream
    int device = 0;
    std::vector<std::pair<CUdeviceptr, std::size_t>> ranges;
  };

  // execution.cc
  void Do(const Step& step);
  void DoAllocate(const Step& step);
  void DoFree(Block* block);
  void DoGoodbye(const Step& step);
  void DoRecordStream(Block* block, Stream* user, bool by_ref);
  void MakeStream(int place);
  StreamRef OutsideOf(Stream* stream);
  // execution_limits.cc
  void DoPool(const Step& step);
  void DoRestore(UserPool* pool);
  // execution_order.cc
  bool CanOrder(const Stream& user, const Block& block, bool writes) const;
  void Use(Block* block, Stream* user, bool writes);
  void Launch(Stream* stream, CUdeviceptr address, std::size_t bytes, bool writes);
  void Order(Stream* before, Stream* after);
  void OrderAll(Stream* hub, bool into);
  void Tell(Block* block, Stream* user, bool by_ref = false);
  void TellAll(Block* block);
  void KeepAlive(Block* block, Stream* user);
  void SynchronizeAll();
  CUevent Mark(const Stream& stream);
  void BeginCapture(int slot, Stream* stream);
  void EndCapture(int slot);
  void LaunchGraph(Graph* graph, Stream* stream);
  void DropGraph(int slot);
  static bool Applies(void* self, StreamRef stream) noexcept;
  // execution_limits.cc
  void DoSetFraction(const Step& step);
  void Observe();
  static void OnOom(void* self, const OutOfMemory& account) noexcept;
  static bool OnFull(void* self, int device, std::size_t bytes) noexcept;
  void CheckGrowth(int device, std::int64_t before);
  void CheckAccount(const Step& step, int device, CUresult result, bool was_injected);
  // execution_checks.cc
  std::size_t Rounded(std::size_t bytes) const;
  void CheckGiven(const Block& block, std::size_t bytes, bool whole_blocks);
  bool LiesInPlain(const Block& block);
  void CheckPending(const Block& block);
  void CheckRefused(int device, std::size_t bytes);
  void CheckBooks();
  void CheckBooks(int device);
  void CheckSnapshot();
  void CheckEnd();
  void CheckClose();
  static void OnMisuse(void* self, const driver::Misuse& misuse);
  // execution_faults.cc
  void Open();
  const std::vector<const faults::Record*>& Heard();
  const std::vector<const faults::Record*>& EndCall();
  bool WasInjected(CUresult code);
  bool Excused(CUresult result, const char* what);
  bool IsSecondRelease(const faults::Record& call);
  void CheckSaid(const char* what);
  void CheckRecorded(const Block& block, const Stream& user, std::size_t heard_before);
  void WaitInstead(CUstream stream, CUevent event);
  void DoWrong(const Step& step);
  void DoReopen();
  void CheckFaultyClose();
  void CheckExiting(bool is_closed);
  void CheckTriedAgain();
  std::int64_t Left(driver::Kind kind);

  void Fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void Say(const char* format, ...) __attribute__((format(printf, 2, 3)));
  template <typename Call>
  void On(int device, const Call& call);         // with its context current
  bool Ok(CUresult result, const char* what);    // a driver call of the program
  bool Took(CUresult result, const char* what);  // a call of the allocator that must not fail
  bool failed() const { return !outcome_.failure.empty(); }
  Stream* At(int place) { return streams_[static_cast<std::size_t>(at_place_[place])].get(); }
  Block* In(int slot) { return slots_[slot]; }
  bool AnyCapture() const { return graphs_[0].capturing || graphs_[1].capturing; }

  const Program& program_;
  const Conditions conditions_;
  Executed outcome_;
  sim::World* world_ = nullptr;
  driver::DriverRef d_;
  driver::DriverTable deceiving_;
  std::unique_ptr<FailingCalls> failing_;
  CUcontext context_[kDevices] = {};
  CUmodule module_[kDevices] = {};
  CUfunction reader_[kDevices] = {}, writer_[kDevices] = {};
  CUdeviceptr first_address_ = 0;
  std::size_t free_at_start_[kDevices] = {};
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<Workers> workers_;
  std::vector<std::unique_ptr<Stream>> streams_;  // by number
  int at_place_[kPlaces] = {};
  Clock host_;
  std::map<CUdeviceptr, std::unique_ptr<Block>> blocks_;  // live
  Block* slots_[kSlots] = {};
  std::vector<Pending> pending_;
  UserPool pools_[kPoolSlots];
  Graph graphs_[kGraphSlots];
  bool graph_there_[kGraphSlots] = {};
  struct Applying {
    Execution* self;
    int slot;
  } applying_[kGraphSlots] = {{this, 0}, {this, 1}};
  std::size_t limit_[kDevices] = {};
  std::vector<OutOfMemory> accounts_;  // of the allocation under way
  int full_ = 0;                       // how often the allocator asked for memory to be freed
  int oracle_rule_ = -1;
  std::unique_ptr<FaultyDriver> faulty_;
  std::size_t heard_ = 0;                                    // of its calls, those before the allocator's call under way
  std::vector<std::pair<std::size_t, std::size_t>> within_;  // and from where to where calls were that it led to
  std::vector<const faults::Record*> heard_calls_;
  bool was_told_of_exit_ = false;  // the allocator, of DEINITIALIZED
  bool exiting_ = false;           // and has answered so
  driver::DriverRef theirs_;       // the allocator's driver
  std::uint64_t wrong_asked_ = 0, wrong_frees_ = 0;
  CUdeviceptr last_freed_ = 0;
};

template <typename Call>
void Execution::On(int device, const Call& call) {
  CUcontext popped = nullptr;
  if (device != 0) (void)Ok(d_.CtxPushCurrent(context_[device]), "CtxPushCurrent");
  call();
  if (device != 0) (void)Ok(d_.CtxPopCurrent(&popped), "CtxPopCurrent");
}

}  // namespace cuaudit::alloc
