// SPDX-License-Identifier: MIT
#include "allocator/core.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "allocator/driver_scope.h"
#include "allocator/errors.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kPageBytes = 4096;
std::atomic<std::uint64_t> next_serial{1};

}  // namespace

Core::Core(driver::DriverRef the_driver, const Options& the_options) noexcept : driver(the_driver), options(the_options) {}

Core::~Core() {
  ReleaseCaches();
  for (Arena* arena = arenas.load(); arena != nullptr;) {
    Arena* const next = arena->next_all;
    for (Segment* segment = arena->segments; segment != nullptr;) {
      Segment* const following = segment->next;
      for (Block* block = segment->first; block != nullptr; block = block->next) DropCaptured(block);
      std::free(segment->handles);
      std::free(segment->pages);
      delete segment;
      segment = following;
    }
    delete arena;
    arena = next;
  }
  for (StreamRecord* stream = streams.load(); stream != nullptr;) {
    StreamRecord* const next = stream->next_all;
    delete stream;
    stream = next;
  }
  for (EventPool* pool = event_pools.load(); pool != nullptr;) {
    EventPool* const next = pool->next;
    delete pool;
    pool = next;
  }
  for (Pool* pool = pools.load(); pool != nullptr;) {
    Pool* const next = pool->next;
    pool->ForgetCaptures();
    delete pool;
    pool = next;
  }
  for (const std::unique_ptr<Device>& device : devices) {
    for (Keeper* keeper = device->keepers.load(); keeper != nullptr;) delete std::exchange(keeper, keeper->next);
  }
  while (known_options != nullptr) delete std::exchange(known_options, known_options->next);
  while (word_pages_ != nullptr) {
    WordPage* const page = word_pages_;
    word_pages_ = page->next;
    delete page;
  }
  if (serial_at != nullptr) (void)munmap(const_cast<std::uint64_t*>(serial_at), kPageBytes);
}

bool Core::Forked() const noexcept { return wipes_ ? *serial_at != serial : getpid() != process_; }

CUresult Core::WhyNot(const char* call) noexcept {
  if (Forked())
    return Refuse(CUDA_ERROR_NOT_INITIALIZED, "%s: in a forked child: memory of the parent's allocator is not the child's", call);
  if (closed.load(std::memory_order_relaxed)) return Refuse(CUDA_ERROR_ILLEGAL_STATE, "%s: the allocator is closed", call);
  if (exiting.load(std::memory_order_relaxed))
    return Refuse(CUDA_ERROR_DEINITIALIZED, "%s: the driver is shut down: its objects are left alone", call);
  return CUDA_SUCCESS;
}

CUresult Core::Note(CUresult result) noexcept {
  if (result == CUDA_ERROR_DEINITIALIZED) exiting.store(true, std::memory_order_relaxed);
  return result;
}

CUresult Core::OpenDevice(const DeviceConfig& config, Device* device) noexcept {
  device->ordinal = config.device;
  CUresult result = CUDA_SUCCESS;
  if (config.context != nullptr) {
    device->context = config.context;
  } else {
    result = driver.DevicePrimaryCtxRetain(&device->context, config.device);
    if (result != CUDA_SUCCESS) return result;
    device->retained = true;
  }
  int supported = 0;
  if (options.expandable_segments) {
    result = driver.DeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, config.device);
    if (result != CUDA_SUCCESS) return result;
    if (supported != 0) {
      CUmemAllocationProp properties{};
      properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      properties.location.id = config.device;
      result = driver.MemGetAllocationGranularity(&device->granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
      if (result != CUDA_SUCCESS) return result;
    }
    // Pages are of 2 MiB and of large_segment_size: a coarser granularity does not divide them.
    if (device->granularity == 0 || kSmallSegment % device->granularity != 0) {
      device->granularity = 0;
      device->fallbacks.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (options.completion == Completion::StreamWrites) {
    result = driver.DeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, config.device);
    if (result != CUDA_SUCCESS) return result;
    device->stream_writes = supported != 0;
  }
  result = driver.DeviceTotalMem(&device->total, config.device);
  device->limit.store(options.memory_fraction >= 1.0
                          ? ~std::size_t{0}
                          : static_cast<std::size_t>(options.memory_fraction * static_cast<double>(device->total)));
  return result;
}

CUresult Core::Open(const DeviceConfig* configs, int count) noexcept {
  void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "Create: no host memory");
  wipes_ = madvise(page, kPageBytes, MADV_WIPEONFORK) == 0;
  serial = next_serial.fetch_add(1, std::memory_order_relaxed);
  serial_at = new (page) std::uint64_t(serial);
  process_ = getpid();
  if (!wipes_)
    detours.store(1, std::memory_order_relaxed);  // a forked child is told by its number alone, which only the other path asks for
  check_interval = options.capture_check_interval;
  cache_bytes =
      options.thread_cache ? (options.thread_cache_bytes < std::size_t{1} << 40 ? options.thread_cache_bytes : std::size_t{1} << 40) : 0;
  serves_directly =
      options.cross_stream == CrossStream::Never && options.garbage_collection_threshold <= 0.0 && options.max_split_size == 0;
  for (const std::uint32_t divisions : options.roundup_power2_divisions) {
    if (divisions > 1) detours.fetch_add(1, std::memory_order_relaxed);
  }
  if (!map.Init()) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "Create: no host memory");
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    try {
      devices.push_back(std::make_unique<Device>());
    } catch (...) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
      break;
    }
    devices.back()->index = i;
    result = OpenDevice(configs[i], devices.back().get());
    for (int other = 0; other < i && result == CUDA_SUCCESS; ++other) {
      if (devices[static_cast<std::size_t>(other)]->context == devices.back()->context) result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (result == CUDA_SUCCESS) return CUDA_SUCCESS;
  (void)Refuse(result, "Create: device %d of the list does not open, or stands there twice", static_cast<int>(devices.size()) - 1);
  for (const std::unique_ptr<Device>& device : devices) {
    (void)ReleaseContext(device.get());
  }
  closed.store(true, std::memory_order_relaxed);
  return result;
}

// Never twice: references have no names, so a second release of one that was done takes somebody else's.
CUresult Core::ReleaseContext(Device* device) noexcept {
  if (!device->retained) return CUDA_SUCCESS;
  device->retained = false;
  const CUresult result = driver.DevicePrimaryCtxRelease(device->ordinal);
  if (result != CUDA_SUCCESS) device->refused.fetch_add(1, std::memory_order_relaxed);
  return result;
}

// Everything, in live blocks too. What is left is for another try.
CUresult Core::CloseSegments(Arena* arena) noexcept {
  CUresult first = CUDA_SUCCESS;
  for (Segment* segment = arena->segments; segment != nullptr;) {
    Segment* const next = segment->next;
    const CUresult result = segment->expandable ? DropRange(segment) : ReleaseSegment(segment);
    if (result != CUDA_SUCCESS && first == CUDA_SUCCESS) first = result;
    segment = next;
  }
  return first;
}

CUresult Core::Close(std::size_t* live_blocks) noexcept {
  if (live_blocks != nullptr) *live_blocks = 0;
  if (Forked()) return Refuse(CUDA_ERROR_NOT_INITIALIZED, "Close: in a forked child: the driver is not called");
  if (!closed.exchange(true)) detours.fetch_add(1, std::memory_order_relaxed);
  std::size_t live = 0;
  CUresult first = exiting.load(std::memory_order_relaxed) ? CUDA_ERROR_DEINITIALIZED : CUDA_SUCCESS;
  const auto keep = [&](CUresult result) {
    (void)Note(result);  // also behind another error
    if (first == CUDA_SUCCESS) first = result;
  };
  bool synced = true;
  for (Arena* arena = arenas.load(std::memory_order_acquire); arena != nullptr; arena = arena->next_all) {
    EmptyMagazines(arena);
    if (!exiting.load(std::memory_order_relaxed)) {
      const CUresult result = SyncArena(arena);
      synced = synced && (result == CUDA_SUCCESS || driver::IsSticky(result));
      keep(result);
    }
    const Held held(arena->lock);
    arena->Collect();
    for (const Segment* segment = arena->segments; segment != nullptr; segment = segment->next) {
      for (const Block* block = segment->first; block != nullptr; block = block->next)
        live += (block->state.load(std::memory_order_relaxed) & kStatusMask) == kLive;
    }
  }
  if (live_blocks != nullptr) *live_blocks = live;
  if (exiting.load(std::memory_order_relaxed))
    return Refuse(CUDA_ERROR_DEINITIALIZED, "Close: the driver is shut down: its objects are left alone");
  if (!synced) return first;  // the uses are not over, as far as is known; their events are still needed
  bool all_gone = true;
  for (Arena* arena = arenas.load(std::memory_order_acquire); arena != nullptr; arena = arena->next_all) {
    keep(CloseSegments(arena));
    all_gone = all_gone && arena->segments == nullptr;
  }
  // The words are written to until the streams are through, also when no block waits for that.
  bool written = true;
  for (StreamRecord* stream = streams.load(std::memory_order_acquire); stream != nullptr; stream = stream->next_all) {
    const CUresult result = stream->SynchronizeWord(driver);
    keep(result);
    if (result != CUDA_SUCCESS && !driver::IsSticky(result)) {
      written = false;
      continue;
    }
    stream->ReleaseEvents();
  }
  std::uint64_t refused = 0;
  for (EventPool* pool = event_pools.load(std::memory_order_acquire); pool != nullptr; pool = pool->next)
    keep(pool->DestroyAll(driver, &refused));
  for (const std::unique_ptr<Device>& device : devices) {
    for (Keeper* next = device->keepers.exchange(nullptr); next != nullptr;) {  // as with events: never twice
      const std::unique_ptr<Keeper> keeper(std::exchange(next, next->next));
      const CUresult result = driver.StreamDestroy(keeper->stream);
      refused += result != CUDA_SUCCESS && !driver::IsSticky(result);
      keep(result);
    }
  }
  devices.front()->refused.fetch_add(refused, std::memory_order_relaxed);
  if (written) keep(FreeWords());
  // It dies with the context: that is kept until there is nothing to try again.
  if (!all_gone || word_pages_ != nullptr) return first;
  for (const std::unique_ptr<Device>& device : devices) keep(ReleaseContext(device.get()));
  return first;
}

}  // namespace cuaudit::alloc
