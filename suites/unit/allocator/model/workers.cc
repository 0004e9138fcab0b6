// SPDX-License-Identifier: MIT
#include "suites/unit/allocator/model/workers.h"

namespace cuaudit::alloc {

Workers::~Workers() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Workers::Serve(int worker) {
  (void)driver_.CtxSetCurrent(context_);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || turn_ == worker; });
    if (turn_ != worker) break;
    (*work_)();
    turn_ = 0;
    changed_.notify_all();
  }
  (void)driver_.CtxSetCurrent(nullptr);
}

void Workers::Run(int worker, const std::function<void()>& work) {
  if (worker == 0) return work();
  if (!threads_[worker].joinable()) threads_[worker] = std::thread([this, worker] { Serve(worker); });
  std::unique_lock<std::mutex> lock(mutex_);
  work_ = &work;
  turn_ = worker;
  changed_.notify_all();
  changed_.wait(lock, [&] { return turn_ == 0; });
}

}  // namespace cuaudit::alloc
