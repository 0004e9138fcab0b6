// SPDX-License-Identifier: MIT
#include "allocator/backends/driver_backend.h"

#include <algorithm>
#include <new>
#include <utility>

#include "allocator/driver_scope.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 60;

thread_local const char* last_error_text = "";

void Keep(CUresult* first, CUresult next) noexcept {
  if (*first == CUDA_SUCCESS) *first = next;
}

}  // namespace

CUresult DriverBackend::Fail(CUresult result, const char* text) const noexcept {
  if (result != CUDA_SUCCESS) last_error_text = text;
  return result;
}

const char* DriverBackend::LastErrorText() const noexcept { return last_error_text; }

CUresult DriverBackend::CreateStreamOrdered(driver::DriverRef driver, const DeviceConfig* devices, int count, const Warning& warning,
                                            std::unique_ptr<Backend>* out) noexcept {
  return Create(driver, devices, count, warning, true, out);
}

CUresult DriverBackend::CreateUncached(driver::DriverRef driver, const DeviceConfig* devices, int count, const Warning& warning,
                                       std::unique_ptr<Backend>* out) noexcept {
  return Create(driver, devices, count, warning, false, out);
}

CUresult DriverBackend::Create(driver::DriverRef driver, const DeviceConfig* devices, int count, const Warning& warning,
                               bool is_stream_ordered, std::unique_ptr<Backend>* out) noexcept {
  out->reset();
  if (devices == nullptr || count < 1) return CUDA_ERROR_INVALID_VALUE;
  try {
    std::unique_ptr<DriverBackend> backend(new DriverBackend(driver, warning, is_stream_ordered));
    backend->devices_.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      Device& device = backend->devices_[static_cast<std::size_t>(i)];
      device.config = devices[i];
      if (const CUresult result = backend->Open(&device); result != CUDA_SUCCESS) return result;
    }
    *out = std::move(backend);
    return CUDA_SUCCESS;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

CUresult DriverBackend::Open(Device* device) noexcept {
  if (device->config.context == nullptr) {
    if (const CUresult result = driver_.DevicePrimaryCtxRetain(&device->config.context, device->config.device); result != CUDA_SUCCESS) {
      device->config.context = nullptr;
      return Fail(result, "cuDevicePrimaryCtxRetain");
    }
    device->is_retained = true;
  }
  if (!is_stream_ordered_) return CUDA_SUCCESS;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device->config.device;
  CUmemoryPool pool = nullptr;
  if (const CUresult result = driver_.MemPoolCreate(&pool, &properties); result != CUDA_SUCCESS) return Fail(result, "cuMemPoolCreate");
  device->pool = pool;
  cuuint64_t threshold = UINT64_MAX;  // or the pool gives everything back at each synchronisation
  return Fail(driver_.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), "cuMemPoolSetAttribute");
}

DriverBackend::~DriverBackend() {
  for (auto& [address, block] : blocks_) {
    if (!block.is_captured || !is_stream_ordered_) (void)Release(address, block);  // a graph's own nodes go with the graph
  }
  for (Device& device : devices_) {
    if (device.free_stream != nullptr) (void)driver_.StreamDestroy(device.free_stream);
    if (device.pool != nullptr) (void)driver_.MemPoolDestroy(device.pool);
    if (device.is_retained) (void)driver_.DevicePrimaryCtxRelease(device.config.device);
  }
}

CUresult DriverBackend::Acquire(Device* device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept {
  if (is_stream_ordered_) return driver_.MemAllocFromPoolAsync(out, bytes, device->pool, stream);
  RelaxedCapture relaxed(driver_);
  if (relaxed.result() != CUDA_SUCCESS) return relaxed.result();
  return driver_.MemAlloc(out, bytes);
}

CUresult DriverBackend::Allocate(int device_index, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept {
  *out = 0;
  if (device_index < 0 || static_cast<std::size_t>(device_index) >= devices_.size()) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "Allocate: device is none of the allocator's");
  }
  if (bytes == 0) return CUDA_SUCCESS;
  if (bytes > kLargest) return Fail(CUDA_ERROR_INVALID_VALUE, "Allocate: size is more than 1 EiB");
  Device& device = devices_[static_cast<std::size_t>(device_index)];
  Blocks kept;
  try {
    kept.try_emplace(0);  // the node, while failing is still cheap
  } catch (const std::bad_alloc&) {
    return Fail(CUDA_ERROR_OUT_OF_MEMORY, "Allocate: host memory");
  }
  CurrentContext current(driver_, device.config.context);
  if (current.result() != CUDA_SUCCESS) return Fail(current.result(), "Allocate: the device's context");
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (const CUresult result = driver_.StreamIsCapturing(stream, &capture); result != CUDA_SUCCESS) return Fail(result, "Allocate: stream");
  CUdeviceptr address = 0;
  const CUresult result = Acquire(&device, bytes, stream, &address);
  if (result != CUDA_SUCCESS) {
    const std::lock_guard lock(mutex_);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) ++device.statistics.num_ooms;
    return Fail(result, is_stream_ordered_ ? "cuMemAllocFromPoolAsync" : "cuMemAlloc");
  }
  auto node = kept.extract(kept.begin());
  node.key() = address;
  Block& block = node.mapped();
  block.size = (bytes + kMinBlock - 1) / kMinBlock * kMinBlock;
  block.requested = bytes;
  block.device = device_index;
  block.stream = stream;
  block.is_captured = capture != CU_STREAM_CAPTURE_STATUS_NONE;
  const std::lock_guard lock(mutex_);
  CountAllocation(&device, block);
  blocks_.insert(std::move(node));
  *out = address;
  return CUDA_SUCCESS;
}

CUresult DriverBackend::FreeStream(Device* device, CUstream* out) noexcept {
  {
    const std::lock_guard lock(mutex_);
    *out = device->free_stream;
  }
  if (*out != nullptr) return CUDA_SUCCESS;
  CurrentContext current(driver_, device->config.context);
  if (current.result() != CUDA_SUCCESS) return current.result();
  CUstream stream = nullptr;
  if (const CUresult result = driver_.StreamCreate(&stream, CU_STREAM_NON_BLOCKING); result != CUDA_SUCCESS) return result;
  CUstream surplus = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (device->free_stream == nullptr) {
      device->free_stream = stream;
    } else {
      surplus = stream;
    }
    *out = device->free_stream;
  }
  return surplus == nullptr ? CUDA_SUCCESS : driver_.StreamDestroy(surplus);
}

// `follower` goes on when all that `leader` was given so far is done.
CUresult DriverBackend::Follow(CUstream follower, CUstream leader) noexcept {
  CUcontext context = nullptr;
  if (const CUresult result = ContextOf(driver_, leader, &context); result != CUDA_SUCCESS) return result;
  CurrentContext current(driver_, context);
  if (current.result() != CUDA_SUCCESS) return current.result();
  CUevent event = nullptr;
  CUresult result = driver_.EventCreate(&event, CU_EVENT_DISABLE_TIMING);
  if (result != CUDA_SUCCESS) return result;
  result = driver_.EventRecord(event, leader);
  if (result == CUDA_SUCCESS) result = driver_.StreamWaitEvent(follower, event, CU_EVENT_WAIT_DEFAULT);
  (void)driver_.EventDestroy(event);  // what waits for it goes on waiting; refused, it may be gone all the same
  return result;
}

// Without the lock: the block is in no list, or aside for good.
CUresult DriverBackend::Release(CUdeviceptr address, const Block& block) noexcept {
  Device& device = devices_[static_cast<std::size_t>(block.device)];
  CurrentContext current(driver_, device.config.context);
  if (current.result() != CUDA_SUCCESS) return Fail(current.result(), "Free: the device's context");
  RelaxedCapture relaxed(driver_);
  if (relaxed.result() != CUDA_SUCCESS) return Fail(relaxed.result(), "Free: cuThreadExchangeStreamCaptureMode");
  const bool waits = !block.is_freed && (!block.users.empty() || block.uses_free_stream);
  if (block.is_freed) {  // second try: whatever uses it had, all of them are behind this
    if (const CUresult result = SynchronizeCurrent(driver_, device.config.context); result != CUDA_SUCCESS)
      return Fail(result, "Free: cuCtxSynchronize");
    return Fail(driver_.MemFree(address), "Free: cuMemFree");
  }
  CUstream stream = block.stream;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (is_stream_ordered_ && waits) {
    if (const CUresult result = driver_.StreamIsCapturing(block.stream, &capture); result != CUDA_SUCCESS)
      return Fail(result, "Free: stream");
  }
  // In a capture the block's own stream has to bring the branches together; outside, nobody's stream is to be held up.
  if (waits && capture == CU_STREAM_CAPTURE_STATUS_NONE) {
    if (const CUresult result = FreeStream(&device, &stream); result != CUDA_SUCCESS) return Fail(result, "Free: cuStreamCreate");
    if (const CUresult result = Follow(stream, block.stream); result != CUDA_SUCCESS) return Fail(result, "Free: the block's stream");
  }
  for (const CUstream user : block.users) {
    if (const CUresult result = Follow(stream, user); result != CUDA_SUCCESS) return Fail(result, "Free: a stream of RecordStream");
  }
  if (is_stream_ordered_) return Fail(driver_.MemFreeAsync(address, stream), "Free: cuMemFreeAsync");
  if (waits) {
    if (const CUresult result = driver_.StreamSynchronize(stream); result != CUDA_SUCCESS) return Fail(result, "Free: cuStreamSynchronize");
  }
  return Fail(driver_.MemFree(address), "Free: cuMemFree");
}

CUresult DriverBackend::Free(CUdeviceptr address) noexcept {
  if (address == 0) return CUDA_SUCCESS;
  Blocks::node_type node;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || found->second.is_freed) {
      Statistics& statistics = devices_.front().statistics;
      ++(found == blocks_.end() ? statistics.foreign_pointers : statistics.double_frees);
      return Fail(CUDA_ERROR_INVALID_VALUE, "Free: not the beginning of a live block");
    }
    Device& device = devices_[static_cast<std::size_t>(found->second.device)];
    CountFree(&device, found->second);
    // What a graph works on stays until EmptyCache: who replays it is not known here.
    if (found->second.is_captured && !is_stream_ordered_) {
      found->second.is_freed = true;
      return CUDA_SUCCESS;
    }
    node = blocks_.extract(found);
  }
  const CUresult result = Release(address, node.mapped());
  const std::lock_guard lock(mutex_);
  Device& device = devices_[static_cast<std::size_t>(node.mapped().device)];
  if (result == CUDA_SUCCESS) {
    ++device.statistics.num_device_free;
    return result;
  }
  ++device.statistics.releases_refused;
  node.mapped().is_freed = true;
  blocks_.insert(std::move(node));
  return result;
}

CUresult DriverBackend::RecordStream(CUdeviceptr address, CUstream stream) noexcept {
  if (address == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || found->second.is_freed)
    return Fail(CUDA_ERROR_INVALID_VALUE, "RecordStream: not the beginning of a live block");
  Block& block = found->second;
  Statistics& statistics = devices_[static_cast<std::size_t>(block.device)].statistics;
  if (stream == block.stream) {
    ++statistics.uses_own_stream;
    return CUDA_SUCCESS;
  }
  if (std::find(block.users.begin(), block.users.end(), stream) != block.users.end()) {
    ++statistics.uses_merged;
    return CUDA_SUCCESS;
  }
  try {
    block.users.push_back(stream);
  } catch (const std::bad_alloc&) {
    return Fail(CUDA_ERROR_OUT_OF_MEMORY, "RecordStream: host memory");
  }
  return CUDA_SUCCESS;
}

CUresult DriverBackend::RecordUse(CUdeviceptr address, CUstream stream) noexcept {
  if (const CUresult result = RecordStream(address, stream); result != CUDA_SUCCESS || address == 0) return result;
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || stream == found->second.stream) return CUDA_SUCCESS;
    ++devices_[static_cast<std::size_t>(found->second.device)].statistics.uses_degraded;
    is_first = !std::exchange(has_warned_, true);
  }
  if (is_first && warning_.warn != nullptr) {
    warning_.warn(warning_.self, is_stream_ordered_
                                     ? "backend cudaMallocAsync: RecordUse waits until Free for what the stream was given, as RecordStream"
                                     : "backend none: RecordUse waits until Free for what the stream was given, as RecordStream");
  }
  return CUDA_SUCCESS;
}

CUresult DriverBackend::KeepAliveUntil(CUdeviceptr address, CUevent event) noexcept {
  if (address == 0) return CUDA_SUCCESS;
  int device_index = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || found->second.is_freed)
      return Fail(CUDA_ERROR_INVALID_VALUE, "KeepAliveUntil: not the beginning of a live block");
    device_index = found->second.device;
  }
  CUstream stream = nullptr;
  if (const CUresult result = FreeStream(&devices_[static_cast<std::size_t>(device_index)], &stream); result != CUDA_SUCCESS) {
    return Fail(result, "KeepAliveUntil: cuStreamCreate");
  }
  if (const CUresult result = driver_.StreamWaitEvent(stream, event, CU_EVENT_WAIT_DEFAULT); result != CUDA_SUCCESS) {
    return Fail(result, "KeepAliveUntil: cuStreamWaitEvent");
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = blocks_.find(address); found != blocks_.end()) found->second.uses_free_stream = true;
  return CUDA_SUCCESS;
}

// What the driver refused before, and what graphs may have worked on.
CUresult DriverBackend::ReleaseAside() noexcept {
  CUresult first = CUDA_SUCCESS;
  Blocks refused;
  for (;;) {
    Blocks::node_type node;
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(blocks_.begin(), blocks_.end(), [](const auto& row) { return row.second.is_freed; });
      if (found == blocks_.end()) break;
      node = blocks_.extract(found);
    }
    const CUresult result = Release(node.key(), node.mapped());
    Keep(&first, result);
    const std::lock_guard lock(mutex_);
    Statistics& statistics = devices_[static_cast<std::size_t>(node.mapped().device)].statistics;
    ++(result == CUDA_SUCCESS ? statistics.num_device_free : statistics.num_alloc_retries);
    if (result != CUDA_SUCCESS) refused.insert(std::move(node));
  }
  const std::lock_guard lock(mutex_);
  blocks_.merge(refused);
  return first;
}

CUresult DriverBackend::EmptyCache() noexcept {
  CUresult first = ReleaseAside();
  for (std::size_t i = 0; i < devices_.size(); ++i) Keep(&first, Trim(static_cast<int>(i), 0));
  return first;
}

CUresult DriverBackend::Trim(int device_index, std::size_t reserved_bytes) noexcept {
  if (device_index < 0 || static_cast<std::size_t>(device_index) >= devices_.size()) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "Trim: device is none of the allocator's");
  }
  if (!is_stream_ordered_) return CUDA_SUCCESS;
  // A pool gives back only what the streams of the frees have passed; those streams may be gone, so the context is waited for.
  const Device& device = devices_[static_cast<std::size_t>(device_index)];
  CurrentContext current(driver_, device.config.context);
  CUresult first = Fail(current.result(), "Trim: the device's context");
  if (first == CUDA_SUCCESS) first = Fail(SynchronizeCurrent(driver_, device.config.context), "Trim: cuCtxSynchronize");
  Keep(&first, Fail(driver_.MemPoolTrimTo(device.pool, reserved_bytes), "cuMemPoolTrimTo"));
  return first;
}

CUresult MakeBackend(const Settings& settings, driver::DriverRef driver, const DeviceConfig* devices, int count, const Warning& warning,
                     std::unique_ptr<Backend>* out, Allocator** native) noexcept {
  if (native != nullptr) *native = nullptr;
  switch (settings.backend) {
    case BackendKind::StreamOrdered:
      return DriverBackend::CreateStreamOrdered(driver, devices, count, warning, out);
    case BackendKind::Uncached:
      return DriverBackend::CreateUncached(driver, devices, count, warning, out);
    case BackendKind::Native:
      break;
  }
  out->reset();
  std::unique_ptr<Allocator> allocator;
  const CUresult result = Allocator::Create(driver, devices, count, settings.options, &allocator);
  if (result != CUDA_SUCCESS) return result;
  allocator->SetWarning(warning);
  if (native != nullptr) *native = allocator.get();
  *out = std::move(allocator);
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::alloc
