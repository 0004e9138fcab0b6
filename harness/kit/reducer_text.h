// SPDX-License-Identifier: MIT
// reducer_text.h: a CallList as a C program over the driver API.
//
// The program runs two lifecycles, or as many as its argument says. A lifecycle that fails ends, the next one begins, and the exit status
// remembers: what a lifecycle forgets is then lost, and not left to the end of the process.
#pragma once

#include <string>
#include <vector>

#include "harness/kit/call_list.h"

namespace cuaudit::harness {

// `by_place`: calls that one instruction of the program makes stay one instruction, because the defect is about places that give back what
// others took.
// `heading` has the lines of the comment at the top, without comment signs.
std::string ReducerText(const CallList& list, const std::vector<std::string>& heading, bool by_place);

// Printable ASCII, safe inside a comment.
std::string CommentText(const std::string& text);

}  // namespace cuaudit::harness
