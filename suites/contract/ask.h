// SPDX-License-Identifier: MIT
// ask.h: asks a question of the simulated driver, of the simulated driver behind the gate, or of the genuine driver.
//
// Each question has a world of its own; AskGated uses one journal for the whole process. When a question cannot be asked, the answer
// says why, in words that no driver answers.
#pragma once

#include <string>
#include <vector>

#include "faults/sim/world.h"
#include "suites/contract/question.h"

namespace cuaudit::contract {

std::string AskSimulated(const Question& question, sim::OnUndefined undefined = sim::OnUndefined::Error, int devices = 1);

// Asks behind the gate with a journal, scope=process. Answers "no record" when the gate wrote no record.
std::string AskGated(const Question& question, sim::OnUndefined undefined);

// In a process of its own, so that a crash or a hang is an answer too: the words before it, and then "crash" or "hang". `library`: of the
// drivers that are one.
std::string AskChild(const Question& question, const std::string& driver, const std::string& library, sim::OnUndefined undefined);

// Checks that questions exist, without a current context and with another one, for each entry point that is handed an object.

// One line for each entry point that no none.* or no elsewhere.* question calls and that unasked.def does not excuse, and for each row of
// unasked.def that excuses nothing. Asks those questions of the simulated driver.
std::vector<std::string> HandlesWithoutQuestion();

}  // namespace cuaudit::contract
