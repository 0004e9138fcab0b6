// SPDX-License-Identifier: MIT
// map_cost.cc: what it costs to move physical pages between addresses, in batches of 2 to 64 MiB, on an idle device and beside running
// work; what the moves cost that work; and whether a destroyed stream's handle comes back while its work still runs. Prints a table.
// Usage: map_cost [rounds]. Exit 77: no device.
//
// Columns: measurement, bytes of the batch, whether work was running, median and 90th percentile in microseconds, and whether that work was
// still running afterwards (so the call did not wait for it). "N MiB pages": the batch is of handles of so much each. "apart": each handle
// lies between unmapped addresses, so one call cannot have them all. "work beside moves": microseconds of the same fills of 4 GiB, with
// another thread moving pages all the time, and without; the last column is how many moves there were meanwhile.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

void* library = nullptr;

#define CALL(name, symbol, ...) CUresult (*name)(__VA_ARGS__) = reinterpret_cast<CUresult (*)(__VA_ARGS__)>(dlsym(library, symbol))

struct Calls {
  CALL(init, "cuInit", unsigned);
  CALL(retain, "cuDevicePrimaryCtxRetain", CUcontext*, CUdevice);
  CALL(set_current, "cuCtxSetCurrent", CUcontext);
  CALL(reserve, "cuMemAddressReserve", CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long);
  CALL(create, "cuMemCreate", CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*, unsigned long long);
  CALL(release, "cuMemRelease", CUmemGenericAllocationHandle);
  CALL(map, "cuMemMap", CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long);
  CALL(unmap, "cuMemUnmap", CUdeviceptr, std::size_t);
  CALL(set_access, "cuMemSetAccess", CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t);
  CALL(alloc, "cuMemAlloc_v2", CUdeviceptr*, std::size_t);
  CALL(free, "cuMemFree_v2", CUdeviceptr);
  CALL(stream_create, "cuStreamCreate", CUstream*, unsigned);
  CALL(stream_destroy, "cuStreamDestroy_v2", CUstream);
  CALL(stream_synchronize, "cuStreamSynchronize", CUstream);
  CALL(event_create, "cuEventCreate", CUevent*, unsigned);
  CALL(event_record, "cuEventRecord", CUevent, CUstream);
  CALL(event_query, "cuEventQuery", CUevent);
  CALL(event_synchronize, "cuEventSynchronize", CUevent);
  CALL(memset_async, "cuMemsetD8Async", CUdeviceptr, unsigned char, std::size_t, CUstream);
};

#define MUST(call)                                                                                \
  do {                                                                                            \
    if (const CUresult result_ = (call); result_ != CUDA_SUCCESS) {                               \
      std::fprintf(stderr, "map_cost: line %d: error %d\n", __LINE__, static_cast<int>(result_)); \
      std::exit(1);                                                                               \
    }                                                                                             \
  } while (false)

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kPage = 2 * kMiB;
constexpr std::size_t kLargest = 64 * kMiB;
constexpr std::size_t kWork = std::size_t{4} << 30;  // bytes of one fill; some 1.5 ms on an H200

double Now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Bench {
  explicit Bench(int rounds_wanted) : rounds(rounds_wanted) {
    MUST(d.retain(&context, 0));
    MUST(d.set_current(context));
    MUST(d.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(d.event_create(&end, CU_EVENT_DISABLE_TIMING));
    MUST(d.alloc(&work, kWork));
    MUST(d.reserve(&range, 3 * kLargest, kPage, 0, 0));
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = 0;
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }

  void Work(int fills) {
    for (int i = 0; i < fills; ++i) MUST(d.memset_async(work, static_cast<unsigned char>(i), kWork, stream));
    MUST(d.event_record(end, stream));
  }

  // `timed` once a round, between `before` and `after`.
  template <typename Before, typename Timed, typename After>
  void Measure(const char* name, std::size_t bytes, Before before, Timed timed, After after) {
    for (const bool busy : {false, true}) {
      std::vector<double> taken;
      int still_running = 0;
      for (int round = 0; round < rounds; ++round) {
        before();
        if (busy) Work(20);
        const double began = Now();
        timed();
        taken.push_back(Now() - began);
        still_running += busy && d.event_query(end) == CUDA_ERROR_NOT_READY ? 1 : 0;
        MUST(d.stream_synchronize(stream));
        after();
      }
      std::sort(taken.begin(), taken.end());
      std::printf("%s\t%zu\t%s\t%.2f\t%.2f\t%s\n", name, bytes, busy ? "yes" : "no", taken[taken.size() / 2], taken[taken.size() * 9 / 10],
                  !busy                        ? "-"
                  : still_running * 2 > rounds ? "yes"
                                               : "no");
    }
  }

  void Pages(std::size_t bytes, std::size_t page) {
    const std::size_t count = bytes / page;
    std::vector<CUmemGenericAllocationHandle> handles(count);
    for (CUmemGenericAllocationHandle& handle : handles) MUST(d.create(&handle, page, &properties, 0));
    const auto map = [&](CUdeviceptr at) {
      for (std::size_t i = 0; i < count; ++i) MUST(d.map(at + i * page, page, 0, handles[i], 0));
    };
    const auto grant = [&](CUdeviceptr at) { MUST(d.set_access(at, bytes, &access, 1)); };
    bool whole = true;
    const auto unmap = [&](CUdeviceptr at) {
      if (whole && d.unmap(at, bytes) == CUDA_SUCCESS) return;
      whole = false;
      for (std::size_t i = 0; i < count; ++i) MUST(d.unmap(at + i * page, page));
    };
    char kind[32];
    (void)std::snprintf(kind, sizeof(kind), page == bytes && bytes > kPage ? "one handle" : "%zu MiB pages", page / kMiB);
    char name[64];
    const auto nothing = [] {};
    std::snprintf(name, sizeof(name), "map, %s", kind);
    Measure(
        name, bytes, nothing, [&] { map(range); }, [&] { unmap(range); });
    std::snprintf(name, sizeof(name), "set access, %s", kind);
    Measure(
        name, bytes, [&] { map(range); }, [&] { grant(range); }, [&] { unmap(range); });
    std::snprintf(name, sizeof(name), "unmap, %s", kind);
    Measure(
        name, bytes, [&] { map(range), grant(range); }, [&] { unmap(range); }, nothing);
    std::snprintf(name, sizeof(name), "move, %s", kind);  // to other addresses
    Measure(
        name, bytes, [&] { map(range), grant(range); }, [&] { unmap(range), map(range + kLargest), grant(range + kLargest); },
        [&] { unmap(range + kLargest); });
    std::snprintf(name, sizeof(name), "move by both addresses, %s", kind);  // mapped anew before the old mapping goes, as PageMover does
    Measure(
        name, bytes, [&] { map(range), grant(range); }, [&] { map(range + kLargest), grant(range + kLargest), unmap(range); },
        [&] { unmap(range + kLargest); });
    if (count > 1) Apart(kind, page, handles);
    std::snprintf(name, sizeof(name), "unmap was one call, %s", kind);
    std::printf("%s\t%zu\t-\t%d\t-\t-\n", name, bytes, whole ? 1 : 0);
    for (const CUmemGenericAllocationHandle handle : handles) MUST(d.release(handle));
  }

  // From addresses that lie apart to addresses that lie together, and back.
  void Apart(const char* kind, std::size_t page, const std::vector<CUmemGenericAllocationHandle>& handles) {
    const std::size_t count = handles.size();
    const auto spread = [&](std::size_t i) { return range + kLargest + 2 * i * page; };
    const auto map = [&](bool apart) {
      for (std::size_t i = 0; i < count; ++i) MUST(d.map(apart ? spread(i) : range + i * page, page, 0, handles[i], 0));
    };
    const auto grant_apart = [&] {
      for (std::size_t i = 0; i < count; ++i) MUST(d.set_access(spread(i), page, &access, 1));
    };
    const auto unmap_apart = [&] {
      for (std::size_t i = 0; i < count; ++i) MUST(d.unmap(spread(i), page));
    };
    const auto grant = [&] { MUST(d.set_access(range, count * page, &access, 1)); };
    const auto unmap = [&] {
      for (std::size_t i = 0; i < count; ++i) MUST(d.unmap(range + i * page, page));
    };
    const auto nothing = [] {};
    char name[64];
    (void)std::snprintf(name, sizeof(name), "set access apart, %s", kind);
    Measure(
        name, count * page, [&] { map(true); }, grant_apart, unmap_apart);
    (void)std::snprintf(name, sizeof(name), "unmap apart, %s", kind);
    Measure(
        name, count * page, [&] { map(true), grant_apart(); }, unmap_apart, nothing);
    (void)std::snprintf(name, sizeof(name), "gather, %s", kind);  // pages that lay apart
    Measure(
        name, count * page, [&] { map(true), grant_apart(); }, [&] { unmap_apart(), map(false), grant(); }, unmap);
  }

  // The same work with nothing beside it, and while another thread moves one handle of `bytes` back and forth.
  void Beside(std::size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    MUST(d.create(&handle, bytes, &properties, 0));
    for (const bool moves : {false, true}) {
      std::vector<double> taken;
      std::atomic<long> moved{0};
      for (int round = 0; round < rounds; ++round) {
        std::atomic<bool> is_over{false};
        std::thread mover([&] {
          MUST(d.set_current(context));
          for (std::size_t turn = 0; moves && !is_over.load(); ++turn, ++moved) {
            const CUdeviceptr at = range + (turn % 2) * kLargest;
            MUST(d.map(at, bytes, 0, handle, 0));
            MUST(d.set_access(at, bytes, &access, 1));
            MUST(d.unmap(at, bytes));
          }
        });
        const double began = Now();
        Work(20);
        MUST(d.event_synchronize(end));
        taken.push_back(Now() - began);
        is_over.store(true);
        mover.join();
      }
      std::sort(taken.begin(), taken.end());
      std::printf("%s\t%zu\tyes\t%.2f\t%.2f\t%ld\n", moves ? "work beside moves" : "work alone", bytes, taken[taken.size() / 2],
                  taken[taken.size() * 9 / 10], moved.load());
    }
    MUST(d.release(handle));
  }

  void Create(std::size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    const auto nothing = [] {};
    Measure(
        "create, one handle", bytes, nothing, [&] { MUST(d.create(&handle, bytes, &properties, 0)); }, [&] { MUST(d.release(handle)); });
    Measure(
        "release, one handle", bytes, [&] { MUST(d.create(&handle, bytes, &properties, 0)); }, [&] { MUST(d.release(handle)); }, nothing);
    CUdeviceptr address = 0;
    Measure(
        "cuMemAlloc", bytes, nothing, [&] { MUST(d.alloc(&address, bytes)); }, [&] { MUST(d.free(address)); });
    Measure(
        "cuMemFree", bytes, [&] { MUST(d.alloc(&address, bytes)); }, [&] { MUST(d.free(address)); }, nothing);
  }

  // Streams that got a destroyed stream's handle while its work was running, and after it.
  void Handles() {
    int while_running = 0;
    int afterwards = 0;
    for (int round = 0; round < rounds; ++round) {
      CUstream doomed = nullptr;
      MUST(d.stream_create(&doomed, CU_STREAM_NON_BLOCKING));
      for (int i = 0; i < 40; ++i) MUST(d.memset_async(work, 1, kWork, doomed));
      MUST(d.event_record(end, doomed));
      MUST(d.stream_destroy(doomed));
      std::vector<CUstream> made;
      bool is_running = true;
      while (is_running && made.size() < 512) {
        CUstream next = nullptr;
        MUST(d.stream_create(&next, CU_STREAM_NON_BLOCKING));
        made.push_back(next);
        is_running = d.event_query(end) == CUDA_ERROR_NOT_READY;
        while_running += is_running && next == doomed ? 1 : 0;
      }
      MUST(d.event_synchronize(end));
      for (int i = 0; i < 64; ++i) {
        CUstream next = nullptr;
        MUST(d.stream_create(&next, CU_STREAM_NON_BLOCKING));
        made.push_back(next);
        afterwards += next == doomed ? 1 : 0;
      }
      for (const CUstream stream_made : made) MUST(d.stream_destroy(stream_made));
    }
    std::printf("handle of a destroyed stream again, its work running\t-\t-\t%d\t-\t-\n", while_running);
    std::printf("handle of a destroyed stream again, its work over\t-\t-\t%d\t-\t-\n", afterwards);
  }

  Calls d;
  int rounds;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent end = nullptr;
  CUdeviceptr work = 0;
  CUdeviceptr range = 0;
  CUmemAllocationProp properties{};
  CUmemAccessDesc access{};
};

}  // namespace

int main(int count, char** arguments) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr || Calls().init(0) != CUDA_SUCCESS) {
    std::fprintf(stderr, "map_cost: no device\n");
    return 77;
  }
  Bench bench(count > 1 ? std::atoi(arguments[1]) : 30);
  std::puts("measurement\tbytes\tbusy\tmedian_us\tp90_us\tstill_running");
  for (std::size_t bytes = kPage; bytes <= kLargest; bytes *= 2) {
    for (std::size_t page = kPage; page < bytes; page *= 2) bench.Pages(bytes, page);
    bench.Pages(bytes, bytes);
    bench.Create(bytes);
  }
  bench.Beside(kPage);
  bench.Beside(kLargest);
  bench.Handles();
  return 0;
}
