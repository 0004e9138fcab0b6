// SPDX-License-Identifier: MIT
// sarif_writer.h: writes an audit as SARIF 2.1.0, the form that code scanning services and editors read.
//
// One run of the tool, one result for each defect. The full form also has notes, what is suppressed and what the base has and this audit
// no longer shows. GitHub closes an alert that is missing from an upload, so the form for uploads has what counts today and nothing else,
// and gives each result a file, because GitHub refuses one without.
//
// Sources: OASIS SARIF 2.1.0; GitHub, "SARIF support for code scanning".
#pragma once

#include <cstdint>
#include <ostream>

#include "reports/audit.h"
#include "reports/source_root.h"

namespace cuaudit::report {

enum class SarifProfile : std::uint8_t { Full, Github };

// Returns false when the stream failed. Bytes that are not UTF-8 become U+FFFD; in names of files they are percent-encoded.
bool WriteSarif(const Audit& audit, const SourceRoot& root, SarifProfile profile, std::ostream& out);

}  // namespace cuaudit::report
