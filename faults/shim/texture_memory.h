// SPDX-License-Identifier: MIT
// texture_memory.h: which array or memory each texture and surface object reads, and whether the program has destroyed it.
//
//   Owns      a small table. An object that finds no place in it is not followed.
//   Threads   safe; objects are added and removed by calls of any thread.
//   Faults    makes no driver calls.
//
// While an object lives whose memory is gone, the arguments of kernel launches are recorded (kLaunchWords), because a driver does not say
// which of them are textures. Recording them always would make every launch slower.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "texture_memory.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/shim/passage.h"

namespace cuaudit::faults {

class TextureMemory {
 public:
  static constexpr std::size_t kMost = 128;

  // True while a texture or surface object lives whose memory is gone.
  bool any_gone() const noexcept { return gone_.load(std::memory_order_relaxed) != 0; }
  // Notes a call that the driver carried out.
  void After(const Passage& passage) noexcept;

 private:
  struct Place {
    std::atomic<std::uint64_t> object{0};  // 0: free
    std::atomic<std::uint64_t> memory{0};
    std::atomic<bool> gone{false};
  };

  void Add(std::uint64_t object, std::uint64_t memory) noexcept;
  void Remove(std::uint64_t object) noexcept;
  void End(std::uint64_t memory) noexcept;

  Place place_[kMost];
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> gone_{0};
};

}  // namespace cuaudit::faults
