// SPDX-License-Identifier: MIT
// inputs.h: files that a case reads by itself, named by the key `inputs`. cuaudit does not see what a program opens, so that it has to be
// told.
//
//   Units     bytes of files; one larger than kWholeBytes (subject_content.h) also counts by its modification time.
//   Errors    CheckInputs names the first that is neither a file nor a folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/process/status.h"

namespace cuaudit::harness {

Status CheckInputs(const std::vector<std::string>& inputs);

// One number for the content of all of them. Of a folder every regular file below it counts, with its name.
std::uint64_t InputsContent(const std::vector<std::string>& inputs);

}  // namespace cuaudit::harness
