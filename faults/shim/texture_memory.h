// SPDX-License-Identifier: MIT
// texture_memory.h: which array or memory each texture and surface object reads, and whether the program has destroyed it.
//
//   Owns      a small table. An object that finds no place in it is counted and not followed.
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

#include "faults/shim/call_record.h"

namespace cuaudit::faults {

class TextureMemory {
 public:
  static constexpr std::size_t kMost = 128;

  // True while a texture or surface object lives whose memory is gone.
  bool any_gone() const noexcept { return gone_.load(std::memory_order_relaxed) != 0; }
  // Notes a call that the driver carried out.
  void After(const Passage& passage) noexcept;
  // The program gave back its last reference of the device's primary context.
  void EndPrimary(int device) noexcept;
  // Number of objects that are not followed because the table is full.
  std::uint32_t beyond() const noexcept { return beyond_.load(std::memory_order_relaxed); }

 private:
  struct Place {
    std::atomic<std::uint64_t> object{0};  // 0: free
    std::atomic<std::uint64_t> memory{0};
    std::atomic<std::uint64_t> context{0};
    std::atomic<bool> gone{false};
  };

  static constexpr std::size_t kMaxDevices = 64;

  void Add(std::uint64_t object, std::uint64_t memory, std::uint64_t context) noexcept;
  void Remove(std::uint64_t object) noexcept;
  // Memory from this key on, `bytes` long; 1 for what has a handle.
  void End(std::uint64_t memory, std::uint64_t bytes = 1) noexcept;
  void EndContext(std::uint64_t context) noexcept;

  Place place_[kMost];
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> gone_{0};
  std::atomic<std::uint32_t> beyond_{0};
  std::atomic<std::uint64_t> primary_[kMaxDevices] = {};  // each device's primary context
};

}  // namespace cuaudit::faults
