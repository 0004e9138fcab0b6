// SPDX-License-Identifier: MIT
// use_set.h: which streams still use a block: at most one entry per stream, the newest.
//
//   Owns      its entries; some inline, more in host memory.
//   Threads   not thread-safe; guarded by what guards the block.
//   Units     a sequence counts the recordings of one stream; a use is over when all recordings up to it are.
//   Errors    Reserve, Add and Merge answer false when host memory ran out, and have changed nothing.
//   Faults    makes no driver calls.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>

namespace cuaudit::alloc {

struct StreamRecord;

struct Use {
  StreamRecord* stream;
  std::uint64_t sequence;
};

class UseSet {
 public:
  UseSet() = default;
  UseSet(const UseSet&) = delete;
  UseSet& operator=(const UseSet&) = delete;
  ~UseSet() { Clear(); }

  bool empty() const noexcept { return count_ == 0; }
  std::span<const Use> entries() const noexcept { return {data(), count_}; }

  std::uint32_t size() const noexcept { return count_; }
  // Afterwards Add succeeds until there are so many.
  bool Reserve(std::uint32_t wanted) noexcept {
    if (wanted <= capacity_) return true;
    const std::uint32_t capacity = wanted > 2 * capacity_ ? wanted : 2 * capacity_;
    Use* const uses = static_cast<Use*>(std::malloc(capacity * sizeof(Use)));
    if (uses == nullptr) return false;
    for (std::uint32_t i = 0; i < count_; ++i) uses[i] = data()[i];
    std::free(more_);
    more_ = uses;
    capacity_ = capacity;
    return true;
  }

  // `before`: what the stream's entry was; 0: it had none. A new entry comes with room for `beyond` more.
  bool Add(StreamRecord* stream, std::uint64_t sequence, std::uint32_t beyond, std::uint64_t* before) noexcept {
    Use* const uses = data();
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (uses[i].stream != stream) continue;
      *before = uses[i].sequence;
      if (uses[i].sequence < sequence) uses[i].sequence = sequence;
      return true;
    }
    *before = 0;
    if (!Reserve(count_ + 1 + beyond)) return false;
    data()[count_++] = Use{stream, sequence};
    return true;
  }
  bool Add(StreamRecord* stream, std::uint64_t sequence) noexcept {
    std::uint64_t before = 0;
    return Add(stream, sequence, 0, &before);
  }

  // Takes back an entry that Add made or raised; `before` as it answered then. False: not, since it was raised again. The number must not
  // be given to another use before.
  bool Withdraw(const StreamRecord* stream, std::uint64_t sequence, std::uint64_t before) noexcept {
    Use* const uses = data();
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (uses[i].stream != stream || uses[i].sequence != sequence) continue;
      uses[i].sequence = before;
      if (before == 0) uses[i] = uses[--count_];
      return true;
    }
    return false;
  }

  // What the stream's entry was, which is no more; 0: it had none.
  std::uint64_t Take(const StreamRecord* stream) noexcept {
    Use* const uses = data();
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (uses[i].stream != stream) continue;
      const std::uint64_t sequence = uses[i].sequence;
      uses[i] = uses[--count_];
      return sequence;
    }
    return 0;
  }

  // `from`, which has an entry, turned out to be `to`, and what it was waited for to be over with `sequence`.
  void Rename(const StreamRecord* from, StreamRecord* to, std::uint64_t sequence) noexcept {
    Use* const uses = data();
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (uses[i].stream != from) continue;
      uses[i] = uses[--count_];
      (void)Add(to, sequence);  // there is room
      return;
    }
  }

  // The maximum of both, stream by stream.
  bool Merge(const UseSet& other) noexcept {
    if (other.count_ == 0) return true;
    if (!Reserve(count_ + other.count_)) return false;
    for (const Use& use : other.entries()) (void)Add(use.stream, use.sequence);
    return true;
  }

  // Drops the entries for which `over` answers true.
  template <typename Over>
  void Prune(Over over) noexcept {
    Use* const uses = data();
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (!over(uses[i])) uses[kept++] = uses[i];
    }
    count_ = kept;
    if (kept == 0) Clear();
  }

  void Clear() noexcept {
    std::free(more_);
    more_ = nullptr;
    count_ = 0;
    capacity_ = kInline;
  }

 private:
  static constexpr std::uint32_t kInline = 6;  // what the slots hold, the block's own stream, and one more
  Use* data() noexcept { return more_ != nullptr ? more_ : inline_; }
  const Use* data() const noexcept { return more_ != nullptr ? more_ : inline_; }

  std::uint32_t count_ = 0;
  std::uint32_t capacity_ = kInline;
  Use inline_[kInline] = {};
  Use* more_ = nullptr;
};

}  // namespace cuaudit::alloc
