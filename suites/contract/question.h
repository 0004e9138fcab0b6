// SPDX-License-Identifier: MIT
// question.h: one question to a CUDA driver: a short run of calls whose codes and small values are the answer.
//
//   ask.Plain("stream.flags", "SUCCESS 1", [](Ready& a) {
//     const CUstream s = a.StreamCreate();     a preparation: in the answer only if it fails, as "prepare:CODE"
//     unsigned flags = 9;
//     a(a.d.StreamGetFlags(s, &flags), flags);  the call that is asked about: its code and then the value are in the answer
//   });
//
// The expected answers are those of an H200; where no H200 was asked, those of an H100 (measurements/*/contract.tsv); otherwise those of
// the CUDA Driver API reference 13.0.
#pragma once

#include <cuda.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "faults/driver/driver_ref.h"

namespace cuaudit::contract {

using Driver = driver::DriverRef;

inline constexpr const char* kPtx =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .global .align 4 .b8 table[64];\n"
    ".visible .entry fill(.param .u64 target, .param .u32 count)\n{\n ret;\n}\n"
    ".visible .entry plain()\n{\n ret;\n}\n";

// The allocation granularity of virtual memory.
inline constexpr std::size_t kGranule = std::size_t{2} << 20;

// A value that the enumeration does not have.
template <typename E>
E Beyond(unsigned value) {
  return std::bit_cast<E>(value);
}

// Where a call writes what nobody reads.
struct Ignored {
  template <typename T>
  operator T*() const {
    static T value;
    value = T{};
    return &value;
  }
};
inline constexpr Ignored kIgnored;

// Host functions.
inline void Nothing(void*) {}
inline void Bump(void* count) { ++*static_cast<int*>(count); }

// Properties of pinned memory of device 0.
CUmemPoolProps PoolOfDevice(CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_NONE);
CUmemAllocationProp MemoryOfDevice(CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_NONE);
inline constexpr CUmemAllocationHandleType kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
inline constexpr CUmemAccessDesc kReadWrite = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

enum class Manner : std::uint8_t {
  Plain,  // any process with an initialised driver will do
  Fresh,  // needs a process of its own: it asks about cuInit or about the primary context's count
  Risky,  // uses stale or invented handles, on which a genuine driver may crash, so it needs a process of its own, too
  Exits,  // is about the end of a process: only a library can be asked, in a process of its own
};

// Asks the driver and writes the answer. A copy goes on with the same answer.
class Asker {
 public:
  Asker(Driver driver, Manner manner) : d(driver), releases_(manner == Manner::Plain) {}
  Driver d;
  // Appends the name of the code, and the values that the call has written, to the answer.
  template <typename... T>
  CUresult operator()(CUresult result, T&... written) {
    Code(result);
    (Append(written), ...);
    return result;
  }
  // Appends the values, or the code if the call failed.
  template <typename... T>
  void Either(CUresult result, T&... written) {
    if (result != CUDA_SUCCESS) return Code(result);
    (Append(written), ...);
  }
  // Appends the values, and the code only if the call failed.
  template <typename... T>
  void Values(CUresult result, T&... written) {
    Prepare(result);
    (Append(written), ...);
  }
  void Value(long long value);
  void Text(const char* text);
  // Appends the first byte of device memory.
  void ByteAt(CUdeviceptr p);
  // Adds nothing to the answer when `result` is success.
  bool Prepare(CUresult result);
  const std::string& answer() const { return *answer_; }

  // Prepared calls that return what they make. Objects that a plain question makes so are released after it, last made first; any other
  // question has a process of its own, which ends with it.
  CUstream StreamCreate(unsigned flags = CU_STREAM_NON_BLOCKING);
  CUevent EventCreate(unsigned flags = 0);
  CUcontext CtxCreate();
  CUcontext CtxPopCurrent();
  CUcontext DevicePrimaryCtxRetain();  // never released
  CUdeviceptr MemAlloc(std::size_t bytes);
  CUdeviceptr MemAllocManaged(std::size_t bytes);
  CUdeviceptr MemAllocAsync(std::size_t bytes, CUstream stream);
  void* MemAllocHost(std::size_t bytes);
  CUmemoryPool MemPoolCreate(const CUmemPoolProps& properties = PoolOfDevice());
  CUdeviceptr MemAddressReserve(std::size_t bytes);
  CUmemGenericAllocationHandle MemCreate(std::size_t bytes, const CUmemAllocationProp& properties = MemoryOfDevice());
  CUarray ArrayCreate(const CUDA_ARRAY_DESCRIPTOR& shape);
  CUmodule ModuleLoadData(const char* image = kPtx);
  CUfunction ModuleGetFunction(CUmodule module, const char* name);
  CUfunction ModuleGetFunction(const char* name) { return ModuleGetFunction(ModuleLoadData(), name); }
  CUlibrary LibraryLoadData(const char* image = kPtx);
  CUgraph GraphCreate();
  CUgraphNode GraphAddEmptyNode(CUgraph graph, CUgraphNode after = nullptr);
  CUgraphExec GraphInstantiate(CUgraph graph);
  // Releases what a plain question made.
  void Release();

 private:
  void Code(CUresult result);
  template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void Append(T value) { Value(static_cast<long long>(value)); }
  void Append(const char* text) { Text(text); }
  template <typename T, typename Make, typename Free>
  T Made(Make make, Free release);
  std::shared_ptr<std::string> answer_ = std::make_shared<std::string>();
  std::vector<std::function<void()>> made_;
  bool releases_;
};

// The driver is initialised.
struct Initialised : Asker {
  explicit Initialised(const Asker& asker) : Asker(asker) { Prepare(d.Init(0)); }
};

// The primary context of device 0 is retained and current while it lives.
struct Ready : Initialised {
  explicit Ready(const Asker& asker);
  ~Ready();
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;
  CUcontext context = nullptr;
};

struct Question {
  std::string name;
  std::string expected;  // answer of the genuine driver; differences.def has the intended differences of the simulated one
  Manner manner;
  std::function<void(Asker&)> ask;
};

std::string Answer(const Question& question, Driver driver);

// From now on each word of an answer is also written to `file`, at once: those before a crash arrive.
void SayWordsTo(std::FILE* file);
void SayWord(const std::string& word);

// The words, each as often as an "xN" behind it says.
std::string Repeated(std::string_view words);

// The questions of a subject. The parameters of `ask` say what must be there before the first call: an Asker (or what derives from it,
// such as Ready), and then objects that it makes, each constructed with the asker, in this order. "SUCCESS x3" is expected thrice.
class Questions {
 public:
  // Of all that are listed it takes only that name; empty: all.
  explicit Questions(std::string_view only = {}) : only_(only) {}
  template <typename Ask>
  void Plain(std::string_view name, std::string_view expected, Ask ask) {
    Add(name, expected, Manner::Plain, ask);
  }
  template <typename Ask>
  void Fresh(std::string_view name, std::string_view expected, Ask ask) {
    Add(name, expected, Manner::Fresh, ask);
  }
  template <typename Ask>
  void Risky(std::string_view name, std::string_view expected, Ask ask) {
    Add(name, expected, Manner::Risky, ask);
  }
  template <typename Ask>
  void Exits(std::string_view name, std::string_view expected, Ask ask) {
    Add(name, expected, Manner::Exits, ask);
  }
  std::vector<Question> Take() { return std::move(all_); }

 private:
  // By a pointer where a pointer will do: one instance for each list of parameters and not for each question.
  template <typename Ask>
  void Add(std::string_view name, std::string_view expected, Manner manner, Ask ask) {
    if (!only_.empty() && name != only_) return;
    if constexpr (std::is_empty_v<Ask>) {
      Put(name, expected, manner, +ask);
    } else {
      Put(name, expected, manner, std::function(ask));
    }
  }
  template <typename... Parameters>
  void Put(std::string_view name, std::string_view expected, Manner manner, void (*ask)(Parameters&...)) {
    all_.push_back({std::string(name), Repeated(expected), manner, [ask](Asker& asker) { Set<Parameters...>(ask, asker); }});
  }
  template <typename... Parameters>
  void Put(std::string_view name, std::string_view expected, Manner manner, const std::function<void(Parameters&...)>& ask) {
    all_.push_back({std::string(name), Repeated(expected), manner, [ask](Asker& asker) { Set<Parameters...>(ask, asker); }});
  }
  template <typename Place, typename... Things, typename Ask>
  static void Set(const Ask& ask, Asker& asker) {
    Place place(asker);
    Make<Things...>(ask, place);
    place.Release();
  }
  // Makes the things in this order and asks.
  template <typename... Things, typename Ask, typename Place, typename... Made>
  static void Make(const Ask& ask, Place& place, Made&... made) {
    if constexpr (sizeof...(Things) == 0) {
      ask(place, made...);
    } else {
      MakeNext<Things...>(ask, place, made...);
    }
  }
  template <typename Next, typename... Rest, typename Ask, typename Place, typename... Made>
  static void MakeNext(const Ask& ask, Place& place, Made&... made) {
    Next next(place);
    Make<Rest...>(ask, place, made..., next);
  }
  std::string_view only_;
  std::vector<Question> all_;
};

#define CUAUDIT_SUBJECT(name)  \
  namespace name##_questions { \
    void List(Questions& ask); \
  }
#include "suites/contract/subjects.def"
#undef CUAUDIT_SUBJECT
// All, or the one of that name.
std::vector<Question> ListQuestions(std::string_view only = {});

}  // namespace cuaudit::contract
