// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

#include "faults/driver/result.h"

namespace cuaudit::contract {

void Asker::Append(const std::string& word) {
  if (!answer_.empty()) answer_ += ' ';
  answer_ += word;
}

CUresult Asker::operator()(CUresult result) {
  const std::string_view name = driver::ShortResultName(result);
  Append(name.empty() ? "code:" + std::to_string(static_cast<int>(result)) : std::string(name));
  return result;
}

void Asker::Value(long long value) { Append(std::to_string(value)); }
void Asker::Text(const char* text) { Append(text == nullptr ? "null" : text); }

bool Asker::Prepare(CUresult result) {
  if (result == CUDA_SUCCESS) return true;
  Append("prepare:" + std::string(driver::ShortResultName(result)));
  return false;
}

Ready::Ready(Asker& asker) : asker_(asker) {
  asker_.Prepare(asker_.d.Init(0));
  asker_.Prepare(asker_.d.DevicePrimaryCtxRetain(&context, 0));
  asker_.Prepare(asker_.d.CtxPushCurrent(context));
}

Ready::~Ready() {
  CUcontext popped = nullptr;
  (void)asker_.d.CtxPopCurrent(&popped);
  (void)asker_.d.DevicePrimaryCtxRelease(0);
}

std::vector<Question> AllQuestions() {
  std::vector<Question> all;
  for (const auto& part : {
#define CUAUDIT_SUBJECT(name) name##Questions(),
#include "suites/contract/subjects.def"
#undef CUAUDIT_SUBJECT
       }) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace cuaudit::contract
