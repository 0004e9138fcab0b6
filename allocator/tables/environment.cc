// SPDX-License-Identifier: MIT
#include "allocator/tables/environment.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>

#include "allocator/errors.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kPageBytes = 4096;
std::atomic<std::uint64_t> next_serial{1};

}  // namespace

Environment::~Environment() {
  if (own_ != nullptr) (void)munmap(own_, kPageBytes);
}

bool Environment::Open() noexcept {
  void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  wipes_ = madvise(page, kPageBytes, MADV_WIPEONFORK) == 0;
  serial = next_serial.fetch_add(1, std::memory_order_relaxed);
  own_ = new (page) OfThisProcess{serial, serial};
  process_ = getpid();
  has_barrier_ = MayRunBarrier();
  if (!wipes_) AddDetour();  // a forked child is told by its number alone, which only the other path asks for
  if (options.thread_cache) cache_bytes = std::min(options.thread_cache_bytes, std::size_t{1} << 40);
  serves_directly =
      options.cross_stream == CrossStream::Never && options.garbage_collection_threshold <= 0.0 && options.max_split_size == 0;
  for (const std::uint32_t divisions : options.roundup_power2_divisions) {
    if (divisions > 1) AddDetour();
  }
  return map.Init();
}

void Environment::AddDetour() noexcept {
  const Held held(detour_lock_);
  ++detours_;
  own_->fast_serial.store(0, std::memory_order_release);
}

void Environment::RemoveDetour() noexcept {
  const Held held(detour_lock_);
  if (--detours_ == 0 && !Forked()) own_->fast_serial.store(serial, std::memory_order_release);
}

bool Environment::Forked() const noexcept { return wipes_ ? own_->serial != serial : getpid() != process_; }

CUresult Environment::WhyNot(const char* call) noexcept {
  if (Forked())
    return Refuse(CUDA_ERROR_NOT_INITIALIZED, "%s: in a forked child: memory of the parent's allocator is not the child's", call);
  if (closed.load(std::memory_order_relaxed)) return Refuse(CUDA_ERROR_ILLEGAL_STATE, "%s: the allocator is closed", call);
  if (exiting.load(std::memory_order_relaxed))
    return Refuse(CUDA_ERROR_DEINITIALIZED, "%s: the driver is shut down: its objects are left alone", call);
  return CUDA_SUCCESS;
}

CUresult Environment::Note(CUresult result) noexcept {
  if (result == CUDA_ERROR_DEINITIALIZED && !exiting.exchange(true, std::memory_order_relaxed)) AddDetour();
  return result;
}

std::size_t Environment::Round(std::size_t bytes) const noexcept {
  const std::size_t simple = (bytes + kMinBlock - 1) / kMinBlock * kMinBlock;
  // Intervals double from 1 MiB on; the first entry is for all below, the last for all above.
  const int power = static_cast<int>(std::bit_width(bytes)) - 1;
  const std::size_t divisions = options.roundup_power2_divisions[static_cast<std::size_t>(std::clamp(power - 20, 0, 15))];
  if (divisions <= 1 || bytes <= kMinBlock * divisions) return simple;
  const std::size_t floor = std::bit_floor(bytes);
  if (floor == bytes) return bytes;
  const std::size_t step = floor / divisions;
  return (bytes - floor + step - 1) / step * step + floor;
}

}  // namespace cuaudit::alloc
