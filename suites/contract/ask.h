// SPDX-License-Identifier: MIT
// ask.h: puts a question to the simulated driver, to the same behind the gate, or to the genuine one.
//
//   Owns      a world per question; AskGated one journal for the whole process, gone with it.
//   Threads   one at a time.
//   Errors    what keeps a question from being asked is the answer, in words that no driver answers.
//   Faults    makes the driver calls of the question.
//   Source    ours.
#pragma once

#include <string>

#include "suites/contract/question.h"

namespace cuaudit::contract {

std::string AskSimulated(const Question& question, int devices = 1);

// The same behind the gate with a journal, scope=process. "no record" when the gate wrote none.
std::string AskGated(const Question& question);

std::string AskGenuine(const Question& question, driver::DriverRef driver);

// The library, `driver` says which, in a process of its own, so that a crash or a hang is an answer too: "crash", "hang".
std::string AskChild(const Question& question, const std::string& driver, const std::string& library);

}  // namespace cuaudit::contract
