/* SPDX-License-Identifier: MIT
 * eglext.h: see egl.h. */
#include "egl.h"
