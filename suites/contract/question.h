// SPDX-License-Identifier: MIT
// question.h: one question to a CUDA driver: a short run of calls whose codes and small values are the answer.
//
// The expected answers are those of the CUDA Driver API reference 13.0 and of an H200 (measurements/h200_580.159.04/contract.tsv). A
// question cleans up what it makes. A preparation that fails shows in the answer as "prepare:CODE".
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
  // Appends the name of the code to the answer.
  CUresult operator()(CUresult result);
  void Value(long long value);
  void Text(const char* text);
  // Adds nothing to the answer when `result` is success.
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
  Risky,  // uses stale or invented handles, on which a genuine driver may crash, so it needs a process of its own, too
  Exits,  // is about the end of a process: only a library can be asked, in a process of its own
};

struct Question {
  const char* name;
  const char* expected;  // answer of the genuine driver; differences.def has the intended differences of the simulated one
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
