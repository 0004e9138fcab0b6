// SPDX-License-Identifier: MIT
// workers.h: threads that carry out given work one at a time, so that a program runs on several threads in a fixed order.
//
// Threads are started when first needed and end with this object. Call Run from one thread. The context is current on each worker.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "faults/driver/driver_ref.h"
#include "suites/unit/allocator/model/program.h"

namespace cuaudit::alloc {

class Workers {
 public:
  Workers(driver::DriverRef driver, CUcontext context) : driver_(driver), context_(context) {}
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  void Run(int worker, const std::function<void()>& work);  // 0: here

 private:
  void Serve(int worker);
  driver::DriverRef driver_;
  CUcontext context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = 0;
  bool ending_ = false;
  const std::function<void()>* work_ = nullptr;
  std::thread threads_[kWorkers];
};

}  // namespace cuaudit::alloc
