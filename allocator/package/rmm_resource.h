// SPDX-License-Identifier: MIT
// rmm_resource.h: the allocator as a memory resource of RMM. Installed as <cuaudit/rmm_resource.h>.
#pragma once

#include "allocator/plugin/rmm_resource.h"
