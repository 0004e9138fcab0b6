// SPDX-License-Identifier: MIT
// text_defects.h: writes the defects of a report as text.
#pragma once

#include "reports/run.h"
#include "reports/text_page.h"

namespace cuaudit::report {

void AppendDefects(const Run& run, Page* page);

}  // namespace cuaudit::report
