// SPDX-License-Identifier: MIT
// green.h: green contexts of device 0. Nothing here is released.
#pragma once

#include "suites/contract/question.h"

namespace cuaudit::contract {

// A descriptor of one group of at least `count` multiprocessors of device 0.
inline CUdevResourceDesc Group(Asker& a, unsigned count, CUdevResource* group = nullptr) {
  CUdevResource all = {}, part = {}, rest = {};
  unsigned groups = 1;
  CUdevResourceDesc desc = nullptr;
  a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  a.Prepare(a.d.DevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, count));
  a.Prepare(a.d.DevResourceGenerateDesc(&desc, &part, 1));
  if (group != nullptr) *group = part;
  return desc;
}

inline CUgreenCtx Green(Asker& a, unsigned count = 16) {
  CUgreenCtx green = nullptr;
  a.Prepare(a.d.GreenCtxCreate(&green, Group(a, count), 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

inline CUstream StreamOf(Asker& a, CUgreenCtx green) {
  CUstream s = nullptr;
  a.Prepare(a.d.GreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
  return s;
}

}  // namespace cuaudit::contract
