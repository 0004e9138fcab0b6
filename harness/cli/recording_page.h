// SPDX-License-Identifier: MIT
// recording_page.h: what text says of a recording before its report: what it has and lacks, how its processes ended, what died with them.
#pragma once

#include <string>

#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/site_text.h"

namespace cuaudit::harness {

std::string RecordingPage(const Observation& seen, SiteTexts* sites);

// The object files whose functions could not be named here; empty when there are none.
std::string NotFoundPage(const SiteTexts& sites);

}  // namespace cuaudit::harness
