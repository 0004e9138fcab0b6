// SPDX-License-Identifier: MIT
// course_words.h: words for how counts of live objects went on over the cycles.
#pragma once

#include <string>
#include <string_view>

#include "reports/run.h"

namespace cuaudit::report {

std::string_view Name(Trend trend);  // "bounded"

// "0.98 to 1 more a cycle, up to 80 cycles", "8 after 10 cycles, no more after 20"; empty for what did not grow.
std::string Describe(const Course& course);

// "2 places grew, and these cycles do not tell a leak from a cache that fills: 160 cycles would".
std::string Describe(const Undecided& undecided);

}  // namespace cuaudit::report
