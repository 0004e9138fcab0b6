// SPDX-License-Identifier: MIT
// alloc.h: the caching allocator, its settings, and what it tells about itself. Installed as <cuaudit/alloc.h> with all that it includes
// written out.
//
//     cuaudit::driver::GenuineDriver opened;
//     if (const char* wrong = cuaudit::alloc::OpenProcessDriver(&opened)) ...
//     std::unique_ptr<cuaudit::alloc::Allocator> allocator;
//     const cuaudit::alloc::DeviceConfig device{0};
//     cuaudit::alloc::Allocator::Create(cuaudit::driver::Driver(&opened), &device, 1, {}, &allocator);
//
// Every function is noexcept and answers a CUresult, unless it says otherwise.
#pragma once

#include "allocator/backends/driver_backend.h"
#include "allocator/observe/account.h"
#include "allocator/observe/history.h"
#include "allocator/observe/snapshot_pickle.h"
#include "allocator/owned_block.h"
#include "allocator/plugin/process_driver.h"
