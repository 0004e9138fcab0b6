// SPDX-License-Identifier: MIT
// question.h: one question to a CUDA driver, whoever answers it: a short run of calls whose codes and small values are the answer.
//
//   Owns      an Asker its answer; a question cleans up what it made.
//   Threads   one question at a time.
//   Errors    a failing preparation shows in the answer as "prepare:CODE".
//   Faults    makes the driver calls of its questions.
//   Source    the expected answers are the CUDA Driver API 13.0 reference's, and what an H200 was seen to answer (recorded/).
#pragma once

#include <cuda.h>

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "faults/driver/driver_ref.h"

namespace cuaudit::contract {

class Asker {
 public:
  explicit Asker(driver::DriverRef driver) : d(driver) {}
  driver::DriverRef d;
  // Appends the code's name.
  CUresult operator()(CUresult result);
  void Value(long long value);
  void Text(const char* text);
  // Silent when it succeeds.
  bool Prepare(CUresult result);
  const std::string& answer() const { return answer_; }

 private:
  void Append(const std::string& word);
  std::string answer_;
};

// The primary context of device 0 is retained and current while it lives.
class Ready {
 public:
  explicit Ready(Asker& asker);
  ~Ready();
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;
  CUcontext context = nullptr;

 private:
  Asker& asker_;
};

enum class Manner : std::uint8_t {
  Plain,  // any process with an initialised driver will do
  Fresh,  // needs a process of its own: it asks about cuInit or about the primary context's count
  Risky,  // stale or invented handles: a genuine driver may crash, so a process of its own too
  Exits,  // about a process that ends: only a library can be asked, in a process of its own
};

struct Question {
  const char* name;
  const char* expected;  // the genuine driver's answer; where the simulated one differs on purpose: differences.def
  Manner manner;
  void (*ask)(Asker&);
};

#define CUAUDIT_SUBJECT(name) std::span<const Question> name##Questions();
#include "suites/contract/subjects.def"
#undef CUAUDIT_SUBJECT
std::vector<Question> AllQuestions();

// A value that the enumeration does not have.
template <typename E>
E Beyond(unsigned value) {
  return std::bit_cast<E>(value);
}

inline constexpr const char* kPtx =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .global .align 4 .b8 table[64];\n"
    ".visible .entry fill(.param .u64 target, .param .u32 count)\n{\n ret;\n}\n"
    ".visible .entry plain()\n{\n ret;\n}\n";

}  // namespace cuaudit::contract
