// SPDX-License-Identifier: MIT
// releases.h: an allocator on a simulated driver whose calls can be made to fail one by one, and two streams.
//
// Owns a reference to the primary context, and the allocator, whose calls fail as `failing` says. A preparation that fails fails the
// test.
#pragma once

#include <memory>

#include "suites/unit/allocator/allocating.h"
#include "suites/unit/allocator/model/failing_calls.h"

namespace cuaudit::alloc {

class Releases : public testing::Test {
 protected:
  explicit Releases(const Setting& setting = {}) : a({}, setting) {
    EXPECT_OK(a.d.DevicePrimaryCtxRetain(&context, 0));
    s = a.Stream();
    t = a.Stream();
  }
  ~Releases() override { EXPECT_OK(a.d.DevicePrimaryCtxRelease(0)); }
  void Make(const Options& options) {
    const DeviceConfig config;
    ASSERT_OK(Allocator::Create(failing.ref(), &config, 1, options, &allocator));
  }
  CUdeviceptr Get(std::size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    EXPECT_OK(allocator->Allocate(0, bytes, stream, &address)) << allocator->LastErrorText();
    return address;
  }
  Statistics Stats() {
    Statistics statistics;
    allocator->GetStatistics(0, &statistics);
    return statistics;
  }

  Allocating a;
  CUcontext context = nullptr;
  FailingCalls failing{a.d};
  CUstream s = nullptr;
  CUstream t = nullptr;
  std::unique_ptr<Allocator> allocator;
};

}  // namespace cuaudit::alloc
