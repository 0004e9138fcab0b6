// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

#include <cctype>
#include <cstdio>
#include <functional>
#include <sstream>

#include "faults/driver/result.h"

namespace cuaudit::contract {

CUmemPoolProps PoolOfDevice(CUmemAllocationHandleType type) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = type;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

CUmemAllocationProp MemoryOfDevice(CUmemAllocationHandleType type) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = type;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

namespace {
std::FILE* listener = nullptr;
}

void SayWordsTo(std::FILE* file) { listener = file; }

void SayWord(const std::string& word) {
  if (listener == nullptr) return;
  std::fputs(word.c_str(), listener);
  std::fflush(listener);
}

void Asker::Text(const char* text) {
  const std::string word = (answer_->empty() ? "" : " ") + std::string(text == nullptr ? "null" : text);
  *answer_ += word;
  SayWord(word);
}

void Asker::Value(long long value) { Text(std::to_string(value).c_str()); }

void Asker::ByteAt(CUdeviceptr p) {
  unsigned char byte = 0;
  Values(d.MemcpyDtoH(&byte, p, 1), byte);
}

void Asker::Code(CUresult result) {
  const std::string_view name = driver::ShortResultName(result);
  Text(name.empty() ? ("code:" + std::to_string(static_cast<int>(result))).c_str() : std::string(name).c_str());
}

bool Asker::Prepare(CUresult result) {
  if (result != CUDA_SUCCESS) Text(("prepare:" + std::string(driver::ShortResultName(result))).c_str());
  return result == CUDA_SUCCESS;
}

void Asker::Release() {
  for (; !made_.empty(); made_.pop_back()) made_.back()();
}

// Makes an object by `make`, which writes it, and notes the call that is to release it.
template <typename T, typename Make, typename Free>
T Asker::Made(Make make, Free release) {
  T object{};
  if (Prepare(make(&object)) && releases_) made_.push_back([d = d, object, release] { (void)std::invoke(release, d, object); });
  return object;
}

CUstream Asker::StreamCreate(unsigned flags) {
  return Made<CUstream>([&](CUstream* s) { return d.StreamCreate(s, flags); }, &Driver::StreamDestroy);
}
CUevent Asker::EventCreate(unsigned flags) {
  return Made<CUevent>([&](CUevent* e) { return d.EventCreate(e, flags); }, &Driver::EventDestroy);
}
CUcontext Asker::CtxCreate() {
  return Made<CUcontext>([&](CUcontext* c) { return d.CtxCreate(c, nullptr, 0, 0); }, &Driver::CtxDestroy);
}
CUcontext Asker::CtxPopCurrent() {
  CUcontext popped = nullptr;
  Prepare(d.CtxPopCurrent(&popped));
  return popped;
}
CUcontext Asker::DevicePrimaryCtxRetain() {
  CUcontext context = nullptr;
  Prepare(d.DevicePrimaryCtxRetain(&context, 0));
  return context;
}

CUdeviceptr Asker::MemAlloc(std::size_t bytes) {
  return Made<CUdeviceptr>([&](CUdeviceptr* p) { return d.MemAlloc(p, bytes); }, &Driver::MemFree);
}
CUdeviceptr Asker::MemAllocManaged(std::size_t bytes) {
  return Made<CUdeviceptr>([&](CUdeviceptr* p) { return d.MemAllocManaged(p, bytes, CU_MEM_ATTACH_GLOBAL); }, &Driver::MemFree);
}
CUdeviceptr Asker::MemAllocAsync(std::size_t bytes, CUstream stream) {
  return Made<CUdeviceptr>([&](CUdeviceptr* p) { return d.MemAllocAsync(p, bytes, stream); },
                           [stream](Driver driver, CUdeviceptr p) { return driver.MemFreeAsync(p, stream); });
}
void* Asker::MemAllocHost(std::size_t bytes) {
  return Made<void*>([&](void** h) { return d.MemAllocHost(h, bytes); }, &Driver::MemFreeHost);
}
CUmemoryPool Asker::MemPoolCreate(const CUmemPoolProps& properties) {
  return Made<CUmemoryPool>([&](CUmemoryPool* pool) { return d.MemPoolCreate(pool, &properties); }, &Driver::MemPoolDestroy);
}
CUdeviceptr Asker::MemAddressReserve(std::size_t bytes) {
  return Made<CUdeviceptr>([&](CUdeviceptr* p) { return d.MemAddressReserve(p, bytes, 0, 0, 0); },
                           [bytes](Driver driver, CUdeviceptr p) { return driver.MemAddressFree(p, bytes); });
}
CUmemGenericAllocationHandle Asker::MemCreate(std::size_t bytes, const CUmemAllocationProp& properties) {
  using Handle = CUmemGenericAllocationHandle;
  return Made<Handle>([&](Handle* h) { return d.MemCreate(h, bytes, &properties, 0); }, &Driver::MemRelease);
}
CUarray Asker::ArrayCreate(const CUDA_ARRAY_DESCRIPTOR& shape) {
  return Made<CUarray>([&](CUarray* array) { return d.ArrayCreate(array, &shape); }, &Driver::ArrayDestroy);
}

CUmodule Asker::ModuleLoadData(const char* image) {
  return Made<CUmodule>([&](CUmodule* m) { return d.ModuleLoadData(m, image); }, &Driver::ModuleUnload);
}
CUfunction Asker::ModuleGetFunction(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  Prepare(d.ModuleGetFunction(&function, module, name));
  return function;
}
CUlibrary Asker::LibraryLoadData(const char* image) {
  return Made<CUlibrary>([&](CUlibrary* l) { return d.LibraryLoadData(l, image, nullptr, nullptr, 0, nullptr, nullptr, 0); },
                         &Driver::LibraryUnload);
}

CUgraph Asker::GraphCreate() {
  return Made<CUgraph>([&](CUgraph* g) { return d.GraphCreate(g, 0); }, &Driver::GraphDestroy);
}
CUgraphNode Asker::GraphAddEmptyNode(CUgraph graph, CUgraphNode after) {
  CUgraphNode node = nullptr;
  Prepare(d.GraphAddEmptyNode(&node, graph, after == nullptr ? nullptr : &after, after == nullptr ? 0 : 1));
  return node;
}
CUgraphExec Asker::GraphInstantiate(CUgraph graph) {
  return Made<CUgraphExec>([&](CUgraphExec* x) { return d.GraphInstantiateWithFlags(x, graph, 0); }, &Driver::GraphExecDestroy);
}

Ready::Ready(const Asker& asker) : Initialised(asker) {
  context = DevicePrimaryCtxRetain();
  Prepare(d.CtxPushCurrent(context));
}

Ready::~Ready() {
  Release();
  CUcontext popped = nullptr;
  (void)d.CtxPopCurrent(&popped);
  (void)d.DevicePrimaryCtxRelease(0);
}

std::string Answer(const Question& question, Driver driver) {
  Asker asker(driver, question.manner);
  question.ask(asker);
  return asker.answer();
}

std::string Repeated(std::string_view words) {
  std::istringstream stream{std::string(words)};
  std::string all, last;
  for (std::string word; stream >> word;) {
    const bool repeats = word.size() > 1 && word[0] == 'x' && std::isdigit(word[1]) != 0;
    for (int left = repeats ? std::stoi(word.substr(1)) - 1 : 1; left > 0; --left) {
      if (!all.empty()) all += ' ';
      all += repeats ? last : word;
    }
    if (!repeats) last = word;
  }
  return all;
}

std::vector<Question> ListQuestions(std::string_view only) {
  Questions ask(only);
#define CUAUDIT_SUBJECT(name) name##_questions::List(ask);
#include "suites/contract/subjects.def"
#undef CUAUDIT_SUBJECT
  return ask.Take();
}

}  // namespace cuaudit::contract
