// SPDX-License-Identifier: MIT
// memory_resource.h: the allocator as a memory resource of CCCL. Installed as <cuaudit/memory_resource.h>.
#pragma once

#include "allocator/plugin/memory_resource.h"
