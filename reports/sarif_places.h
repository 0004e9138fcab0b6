// SPDX-License-Identifier: MIT
// sarif_places.h: files, locations and stacks in the form of SARIF.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/json_text.h"
#include "reports/run.h"
#include "reports/source_root.h"

namespace cuaudit::report::sarif {

// One line of plain text that no viewer takes for a link or for a control sequence.
std::string Text(std::string_view text);
Json Message(std::string_view text);

// A name of a file as a relative reference, or as file: when it is absolute. Any bytes become a valid URI (RFC 3986).
std::string Uri(std::string_view path);

Json Physical(const SourcePlace& place);  // below the source root
Json Logical(const Frame& frame);         // "player!make_stream"

// The innermost frame below the root; without one, the innermost frame that is not of the runtime by its name. An empty stack is a location
// with no place.
Json Location(const SourceRoot& root, const std::vector<Frame>& stack, std::string_view says);

Json Stack(const SourceRoot& root, const std::vector<Frame>& stack, std::string_view says);

}  // namespace cuaudit::report::sarif
