// SPDX-License-Identifier: MIT
// vmaf_contexts.cc: contexts and entries of the context stack that a way back forgets.
#include <memory>
#include <stdexcept>
#include <vector>

#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

// A state that is initialised in the device's primary context.
//
// Story   A4: init retains the primary context, then makes it current, asks for the range of stream priorities, makes a stream and pops.
//         Each of these may fail, and the reference stays. State and table of functions, which stay too, are host memory:
//         preallocation.c.
// Source  https://github.com/Netflix/vmaf/issues/1300 and https://github.com/lusoris/vmaf, docs/adr/0157; written anew from the facts.
namespace cuaudit::reducers::vmaf_a4_primary_context {
namespace {

template <bool repaired>
struct State {
  CUcontext context = nullptr;
  CUstream stream = nullptr;

  CUresult Init(DriverRef driver) {
    CUresult code = driver.DevicePrimaryCtxRetain(&context, 0);
    if (code != CUDA_SUCCESS) {
      context = nullptr;
      return code;
    }
    code = MakeStream(driver);
    if (code == CUDA_SUCCESS || !repaired) return code;
    if (stream != nullptr) (void)Inside(driver, [&] { return Destroy(driver, &stream); });
    (void)driver.DevicePrimaryCtxRelease(0);
    return code;
  }
  CUresult MakeStream(DriverRef driver) {
    CUresult code = driver.CtxPushCurrent(context);
    if (code != CUDA_SUCCESS) return code;
    int least = 0;
    int greatest = 0;
    code = driver.CtxGetStreamPriorityRange(&least, &greatest);
    if (code == CUDA_SUCCESS) code = driver.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest);
    if (code != CUDA_SUCCESS) {
      stream = nullptr;
      LeaveForSure(driver);
      return code;
    }
    code = Leave(driver);
    if (code == CUDA_SUCCESS) return code;
    (void)driver.StreamDestroy(std::exchange(stream, nullptr));
    (void)Leave(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    if (stream != nullptr) {
      const CUresult code = Inside(driver, [&] { return Destroy(driver, &stream); });
      if (stream != nullptr) return code;
      if (code != CUDA_SUCCESS) return First(code, Release(driver));
    }
    return Release(driver);
  }
  CUresult Release(DriverRef driver) {
    return std::exchange(context, nullptr) == nullptr ? CUDA_SUCCESS : driver.DevicePrimaryCtxRelease(0);
  }
};

TEST(VmafA4, AFailingInitKeepsThePrimaryContext) {
  ExpectVectors(Lifecycle::Of<State<false>>("vmaf_a4").Prepare(MakeTheContext),
                {{"cuCtxPushCurrent#1=INVALID_CONTEXT,refuse", "primary_context 1"},
                 {"cuCtxGetStreamPriorityRange#1=INVALID_VALUE,refuse", "primary_context 1"},
                 {"cuStreamCreateWithPriority#1=OUT_OF_MEMORY,refuse", "primary_context 1"},
                 {"cuCtxPopCurrent#1=UNKNOWN,refuse", "primary_context 1"}});
}

TEST(VmafA4, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<State<true>>("vmaf_a4_repaired").Prepare(MakeTheContext)); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_a4_primary_context

// A context of a framework that borrows a state of the caller's, and the free function that the repair of A1 added.
//
// Story   A5: the caller frees the state and closes the context afterwards. Close still has the state's stream: it waits on it and
//         destroys the picture's event there, after the stream is gone. Right is to close first.
// Source  https://github.com/Netflix/vmaf/issues/1300 and https://github.com/lusoris/vmaf, docs/adr/0157; written anew from the facts.
//         The state's own memory is host memory and outlives the mistake here, so that it is seen by what the driver is handed.
namespace cuaudit::reducers::vmaf_a5_wrong_order {
namespace {

struct State {
  CUstream stream = nullptr;
};

// Fetches into a buffer of its own on the state's stream.
struct Framework {
  State* state = nullptr;
  CUdeviceptr picture = 0;

  CUresult Open(DriverRef driver, State* imported) {
    state = imported;
    CUresult code = driver.MemAlloc(&picture, 4096);
    if (code != CUDA_SUCCESS) {
      picture = 0;
      return code;
    }
    code = driver.MemsetD8Async(picture, 0, 4096, state->stream);
    if (code != CUDA_SUCCESS) (void)driver.MemFree(std::exchange(picture, 0));
    return code;
  }
  CUresult Close(DriverRef driver, CUstream borrowed) {
    const CUresult code = driver.StreamSynchronize(borrowed);
    return picture == 0 ? code : First(code, driver.MemFree(std::exchange(picture, 0)));
  }
};

enum class Order { CloseThenFree, FreeThenClose };

template <Order order>
struct Session {
  State state;
  Framework framework;

  CUresult Init(DriverRef driver) {
    CUresult code = driver.StreamCreate(&state.stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    code = framework.Open(driver, &state);
    if (code != CUDA_SUCCESS) (void)driver.StreamDestroy(state.stream);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUstream borrowed = framework.state->stream;
    if (order == Order::FreeThenClose) {
      (void)driver.StreamDestroy(state.stream);
      (void)framework.Close(driver, borrowed);  // whatever a driver answers to that
      return CUDA_SUCCESS;
    }
    const CUresult code = framework.Close(driver, borrowed);
    return First(code, Destroy(driver, &state.stream));
  }
};

TEST(VmafA5, CloseUsesTheFreedState) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("a genuine driver dies when it is handed a stream that is gone");
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Session<Order::FreeThenClose>>("vmaf_a5").WithCurrentContext(), kFourCycles)),
            "use_after_release stream");
}

TEST(VmafA5, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Session<Order::CloseThenFree>>("vmaf_a5_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_a5_wrong_order

// Releasing a state that owns a reference of the primary context, a stream, and the table by which it calls.
//
// Story   B3: the pop or the release of the context fails, and release returns: the table is never freed. The first repair freed it before
//         returning, and so made stream and context unreachable for anybody. The later policy keeps the handles, returns the error and lets
//         the caller try again.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982 and 1336; written anew from the facts. The table is host memory,
//         which the C program early_returns.c shows; here it is what makes the handles reachable.
namespace cuaudit::reducers::vmaf_b3_state_release {
namespace {

enum class Policy { FreesTheTable, KeepsForRetry };

template <Policy policy>
struct State {
  bool table = false;  // without it nothing can be called any more
  bool held = false;
  CUstream stream = nullptr;

  CUresult Init(DriverRef driver) {
    CUcontext context = nullptr;
    CUresult code = driver.DevicePrimaryCtxRetain(&context, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.CtxPushCurrent(context);
    if (code == CUDA_SUCCESS) {
      code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
      if (code != CUDA_SUCCESS) {
        stream = nullptr;
        LeaveForSure(driver);
      } else if (code = Leave(driver); code != CUDA_SUCCESS) {
        (void)driver.StreamDestroy(std::exchange(stream, nullptr));
        (void)Leave(driver);
      }
    }
    table = held = code == CUDA_SUCCESS;
    if (code != CUDA_SUCCESS) (void)driver.DevicePrimaryCtxRelease(0);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    if (!table) return CUDA_SUCCESS;
    const CUresult code = Steps(driver);
    if (code == CUDA_SUCCESS || policy == Policy::FreesTheTable) table = false;
    return code;
  }
  CUresult Steps(DriverRef driver) {
    if (stream != nullptr) {
      const CUresult entered = Enter(driver);
      if (entered != CUDA_SUCCESS) return entered;
      const CUresult destroyed = Destroy(driver, &stream);
      const CUresult left = Leave(driver);
      if (left != CUDA_SUCCESS) {
        (void)Leave(driver);
        return left;
      }
      if (destroyed != CUDA_SUCCESS) return destroyed;
    }
    return std::exchange(held, false) ? driver.DevicePrimaryCtxRelease(0) : CUDA_SUCCESS;
  }
};

TEST(VmafB3, FreeingTheTableMakesTheRestUnreachable) {
  ExpectVectors(Lifecycle::Of<State<Policy::FreesTheTable>>("vmaf_b3").Prepare(MakeTheContext),
                {{"cuCtxPushCurrent#2=INVALID_CONTEXT,refuse", "primary_context 1, stream 1"},
                 {"cuStreamDestroy#1=INVALID_CONTEXT,refuse", "primary_context 1"},
                 {"cuCtxPopCurrent#2=UNKNOWN,refuse", "primary_context 1"}});
}

TEST(VmafB3, KeptForAnotherTryIsSilent) {
  ExpectSilent(Lifecycle::Of<State<Policy::KeepsForRetry>>("vmaf_b3_repaired").Prepare(MakeTheContext));
}

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b3_state_release

// A registry of graphs, each entry with a queue of its own.
//
// Story   B5: the entry is pushed into the registry before its queue is made. When that fails nothing is lost, but the entry stays
//         without a queue, and the next use of the registry goes through null.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982 (SYCL); written anew from the facts, on the driver API.
namespace cuaudit::reducers::vmaf_b5_published_entry {
namespace {

struct Queue {
  CUstream stream = nullptr;
};
struct Entry {
  std::unique_ptr<Queue> queue;
};

template <bool repaired>
struct Registry {
  std::vector<Entry> entries;

  CUresult Init(DriverRef driver) {
    if (!repaired) entries.emplace_back();
    auto queue = std::make_unique<Queue>();
    const CUresult code = driver.StreamCreate(&queue->stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    if (repaired) entries.emplace_back();
    entries.back().queue = std::move(queue);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (const Entry& entry : entries) code = First(code, Destroy(driver, &entry.queue.get()->stream));
    entries.clear();
    return code;
  }
};

template <bool repaired>
Lifecycle OneEntry(const char* name) {
  return Lifecycle::Of<Registry<repaired>>(name).WithCurrentContext().TeardownAfterFailedInit();
}

TEST(VmafB5, TheNextUseGoesThroughNull) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kCannotBeForked);
  const Audit audit = Replay(OneEntry<false>("vmaf_b5"), {"cuStreamCreate#1=OUT_OF_MEMORY,refuse"}, {.isolate = true});
  EXPECT_EQ(Lost(audit), CUAUDIT_DEATH_THROUGH_NULL);
}

TEST(VmafB5, RepairedIsSilent) { ExpectSilent(OneEntry<true>("vmaf_b5_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b5_published_entry

// An image that is filled through a host buffer which is mapped meanwhile.
//
// Story   B6: submit and wait throw. The exception leaves the function in which the buffer is mapped and the image allocated, and nobody
//         gives them back. Repaired: the two are given back on every way out.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982 (SYCL and VA); written anew from the facts, on the driver API.
namespace cuaudit::reducers::vmaf_b6_exception {
namespace {

constexpr std::size_t kBytes = 4096;

void Check(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS) throw std::runtime_error(what);
}

// Mapped and allocated; given back by Release, or on the way out where somebody asked for it.
class Surface {
 public:
  Surface(DriverRef driver, bool on_the_way_out) : driver_(driver), on_the_way_out_(on_the_way_out) {}
  Surface(const Surface&) = delete;
  Surface& operator=(const Surface&) = delete;
  ~Surface() {
    if (on_the_way_out_) (void)Release();
  }
  void Import() {
    Check(driver_.MemHostAlloc(&mapped_, kBytes, CU_MEMHOSTALLOC_DEVICEMAP), "map");
    const CUresult code = driver_.MemAlloc(&image_, kBytes);
    if (code == CUDA_SUCCESS) return;
    image_ = 0;
    (void)driver_.MemFreeHost(std::exchange(mapped_, nullptr));
    Check(code, "image");
  }
  void Submit(CUstream stream) const { Check(driver_.MemcpyHtoDAsync(image_, mapped_, kBytes, stream), "submit"); }
  void Wait(CUstream stream) const { Check(driver_.StreamSynchronize(stream), "wait"); }
  CUresult Release() {
    CUresult code = image_ == 0 ? CUDA_SUCCESS : driver_.MemFree(std::exchange(image_, 0));
    if (mapped_ != nullptr) code = First(code, driver_.MemFreeHost(std::exchange(mapped_, nullptr)));
    return code;
  }

 private:
  DriverRef driver_;
  bool on_the_way_out_;
  void* mapped_ = nullptr;
  CUdeviceptr image_ = 0;
};

template <bool repaired>
struct Import {
  CUstream stream = nullptr;

  CUresult Init(DriverRef driver) { return driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING); }
  CUresult Work(DriverRef driver) {
    Surface surface(driver, repaired);
    surface.Import();
    surface.Submit(stream);
    surface.Wait(stream);
    return surface.Release();
  }
  CUresult Teardown(DriverRef driver) { return Destroy(driver, &stream); }
};

TEST(VmafB6, TheExceptionLeavesBufferAndImage) {
  ExpectVectors(Lifecycle::Of<Import<false>>("vmaf_b6").WithCurrentContext(),
                {{"cuMemcpyHtoDAsync#1=INVALID_CONTEXT,refuse", "device_memory 1, pinned_memory 1"},
                 {"cuStreamSynchronize#1=INVALID_CONTEXT,refuse", "device_memory 1, pinned_memory 1"}});
}

TEST(VmafB6, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Import<true>>("vmaf_b6_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b6_exception
