// SPDX-License-Identifier: MIT
// kept_foundations.h: what a program rightly keeps because something on it could not be released.
//
//   Owns      nothing; it points into the ledger.
//   Source    README.md, section "What stands on what": a driver declines to free a range that is still mapped, and host memory that is
//             still registered must not go back to the allocator, because the driver reads the pages that were there.
#pragma once

#include <vector>

#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

class KeptFoundations {
 public:
  explicit KeptFoundations(const Ledger& ledger);
  // The failed release of what stands on the live object; null for none.
  [[nodiscard]] const Site* HeldBy(const Object& object) const;

 private:
  std::vector<const Object*> held_;  // mappings and registrations that the program was told are still there
};

}  // namespace cuaudit::harness
