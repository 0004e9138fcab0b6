// SPDX-License-Identifier: MIT
// word_pages.h: mapped host memory that streams write their sequence numbers to, with Completion::StreamWrites.
//
//   Owns      its pages, until Free gave them back.
//   Threads   Make: any thread. Free: when nobody else is in a call, and no stream writes any more.
//   Errors    CUresult as the driver gave it; OUT_OF_MEMORY when host memory ran out.
//   Faults    Make: MemHostAlloc, MemHostGetDevicePointer. Free: PointerGetAttribute, MemFreeHost.
#pragma once

#include "allocator/fate.h"
#include "allocator/tables/environment.h"

namespace cuaudit::alloc {

class WordPages {
 public:
  explicit WordPages(Environment& environment) noexcept : env_(environment) {}
  ~WordPages();
  CUresult Make(StreamRecord* stream) noexcept;  // a cache line that the stream writes to and the host reads
  CUresult Free() noexcept;                      // the first error; what it could not give back is for another try
  bool empty() const noexcept { return pages_ == nullptr; }

 private:
  struct Page {
    Page* next = nullptr;
    void* host = nullptr;
    CUdeviceptr device = 0;
    std::size_t used = 0;
    Tenure tenure;
  };
  Environment& env_;
  Lock lock_;
  Page* pages_ = nullptr;  // under lock_
};

}  // namespace cuaudit::alloc
