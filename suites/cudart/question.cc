// SPDX-License-Identifier: MIT
#include "suites/cudart/question.h"

#include <sys/mman.h>

#include <string_view>

namespace cuaudit::cudart {
namespace {

std::string NameOf(cudaError_t result) {
  const std::string_view name = cudaGetErrorName(result);
  for (const std::string_view prefix : {"cudaError", "cuda"}) {
    if (name.starts_with(prefix)) return std::string(name.substr(prefix.size()));
  }
  return "code:" + std::to_string(static_cast<int>(result));
}

}  // namespace

cudaError_t Asker::operator()(cudaError_t result) {
  words_.push_back({"", true, result});
  return result;
}

void Asker::Value(long long value) { words_.push_back({std::to_string(value), false, cudaSuccess}); }
void Asker::Text(const char* text) { words_.push_back({text == nullptr ? "null" : text, false, cudaSuccess}); }

bool Asker::Prepare(cudaError_t result) {
  if (result == cudaSuccess) return true;
  words_.push_back({"prepare:", true, result});
  return false;
}

std::string Asker::Answer() const {
  std::string answer;
  for (const Word& word : words_) {
    if (!answer.empty()) answer += ' ';
    answer += word.text;
    if (word.code) answer += NameOf(word.result);
  }
  return answer;
}

void* Invented() {
  static void* const page = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return static_cast<char*>(page) + 4096;
}

std::vector<Question> AllQuestions() {
  std::vector<Question> all;
  for (const auto& part : {ErrorQuestions(), DeviceQuestions(), PropertyQuestions(), ResetQuestions(), StreamQuestions(), MemoryQuestions(),
                           CopyQuestions(), ShapedCopyQuestions(), ArrayQuestions(), PoolQuestions(), GraphQuestions(), NodeQuestions(),
                           CaptureQuestions(), KernelQuestions(), RegisteredQuestions(), SharingQuestions()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace cuaudit::cudart
