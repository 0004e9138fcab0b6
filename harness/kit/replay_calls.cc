// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "harness/kit/replay_calls.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "faults/driver/call_shape.h"
#include "faults/driver/shape.h"
#include "faults/shim/thread_identity.h"
#include "harness/kit/parameters.h"

namespace cuaudit::harness {
namespace {

using driver::CallId;

template <typename P>
P As(std::uint64_t word) noexcept {
  if constexpr (std::is_pointer_v<P>) {
    return reinterpret_cast<P>(word);
  } else if constexpr (std::is_integral_v<P> || std::is_enum_v<P>) {
    return static_cast<P>(word);
  } else if constexpr (std::is_same_v<P, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(word));
  } else {
    return word == 0 ? P{} : *reinterpret_cast<const P*>(word);
  }
}

template <CallId id, typename Function>
struct Made;

template <CallId id, typename... P>
struct Made<id, CUresult(P...)> {
  template <std::size_t... i>
  static CUresult With(driver::DriverRef driver, const std::uint64_t* words, std::index_sequence<i...>) noexcept {
    using Entry = CUresult (*)(void*, P...);
    return reinterpret_cast<Entry>(driver.table->entry[driver::Index(id)])(driver.self, As<P>(words[i])...);
  }
  static CUresult Call(driver::DriverRef driver, const std::uint64_t* words) noexcept {
    return With(driver, words, std::index_sequence_for<P...>());
  }
};

using Caller = CUresult (*)(driver::DriverRef, const std::uint64_t*) noexcept;
constexpr Caller kCallers[] = {
#define CUAUDIT_CALL(id, base, version, per_thread) &Made<CallId::id, driver::CallType<CallId::id>::Function>::Call,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
};

}  // namespace

CUresult MakeCall(driver::DriverRef driver, driver::CallId call, const std::uint64_t* words) noexcept {
  return kCallers[driver::Index(call)](driver, words);
}

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kScratch = std::size_t{1} << 16U;  // for what calls read or write and nobody looks at
constexpr char kName[] = "kernel";
constexpr char kVariableName[] = "variable";

std::size_t WholePages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Calls come from as many instructions, below as many call stacks, as in the program, up to this number of each.
constexpr std::size_t kPlaces = 48;

using Instruction = CUresult (*)(driver::DriverRef, driver::CallId, const std::uint64_t*);

// The stack begins at the instruction that calls this function. Otherwise the innermost frames would be the gate's and those of MakeCall,
// the same for all calls of an entry point, and for rules that compare callers all of them would come from one instruction.
[[gnu::noinline]] CUresult CallOutside(driver::DriverRef driver, driver::CallId call, const std::uint64_t* words) {
  const faults::OwnFrames own(__builtin_frame_address(0));
  return MakeCall(driver, call, words);
}

// The empty instruction keeps the call from being the last thing of the function, which would take the function off the stack.
template <std::size_t number>
[[gnu::noinline]] CUresult CallFrom(driver::DriverRef driver, driver::CallId call, const std::uint64_t* words) {
  const CUresult result = CallOutside(driver, call, words);
  asm volatile("" ::"i"(number) : "memory");
  return result;
}

template <std::size_t number>
[[gnu::noinline]] CUresult CallBelow(Instruction instruction, driver::DriverRef driver, driver::CallId call, const std::uint64_t* words) {
  const CUresult result = instruction(driver, call, words);
  asm volatile("" ::"i"(number) : "memory");
  return result;
}

// To rules that ask which function has returned, what goes on after that comes from a function of its own.
template <bool goes_on, std::size_t... number>
[[gnu::noinline]] CUresult MakeCallAt(const Step& step, driver::DriverRef driver, const std::uint64_t* words,
                                      std::index_sequence<number...>) {
  static constexpr Instruction kInstructions[] = {&CallFrom<number>...};
  using Stack = CUresult (*)(Instruction, driver::DriverRef, driver::CallId, const std::uint64_t*);
  static constexpr Stack kStacks[] = {&CallBelow<number>...};
  const CUresult result = kStacks[step.stack % kPlaces](kInstructions[step.caller % kPlaces], driver, step.call, words);
  asm volatile("" ::"i"(goes_on) : "memory");
  return result;
}

// Where the calls have got to. In CallReplay::Run one instruction makes all of them, which holds as long as the compiler cannot follow the
// path: otherwise it writes the loop out for what it knows of the next turn, and equal calls come from several places. So what knows the
// path is not inlined.
class CallPath {
 public:
  explicit CallPath(const CallList& list) : list_(list) {}

  // The call to make now; nullptr: the path ends here.
  [[gnu::noinline]] const Step* Next() const noexcept {
    if (stage_ == list_.stages.size()) return nullptr;
    const Stage& here = list_.stages[stage_];
    if (MayFail()) return &here.failing->step;
    const std::vector<Step>& steps = in_rest_ ? here.rest : here.steps;
    return next_ == steps.size() ? nullptr : &steps[next_];
  }
  [[gnu::noinline]] void Took(CUresult result) noexcept {
    const bool may_fail = MayFail();
    ++next_;
    if (!may_fail) return;
    next_ = 0;
    in_rest_ = result == CUDA_SUCCESS;
    if (in_rest_) return;
    failed_ = result;
    ++stage_;
  }
  [[gnu::noinline]] bool in_rest() const noexcept { return in_rest_; }
  CUresult failed() const noexcept { return failed_; }

 private:
  bool MayFail() const noexcept {
    const Stage& here = list_.stages[stage_];
    return !in_rest_ && next_ == here.steps.size() && here.failing.has_value();
  }

  const CallList& list_;
  std::size_t stage_ = 0;
  std::size_t next_ = 0;  // of the steps, or of the rest
  bool in_rest_ = false;
  CUresult failed_ = CUDA_SUCCESS;
};

}  // namespace

CallReplay::CallReplay(const CallList& list, bool one_place)
    : list_(list), one_place_(one_place), values_(list.variables.size()), homes_(list.variables.size()) {
  room_bytes_ = kScratch;
  for (const CallVariable& variable : list.variables) room_bytes_ += WholePages(variable.host_bytes);
  // Pages that nobody touches take no memory.
  void* const room = mmap(nullptr, room_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return;
  room_ = static_cast<char*>(room);
  std::size_t at = kScratch;
  for (std::size_t i = 0; i < list.variables.size(); ++i) {
    if (list.variables[i].host_bytes == 0) continue;
    homes_[i] = reinterpret_cast<std::uintptr_t>(room_ + at);
    at += WholePages(list.variables[i].host_bytes);
  }
}

CallReplay::~CallReplay() {
  if (room_ != nullptr) munmap(room_, room_bytes_);
}

CUresult CallReplay::Run(driver::DriverRef driver) {
  if (room_ == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  values_ = homes_;
  CallPath path(list_);
  while (const Step* const step = path.Next()) {
    path.Took(path.in_rest() && !one_place_ ? MakeElsewhere(driver, *step) : Make(driver, *step));
  }
  return path.failed();
}

// The empty instruction keeps the function on the stack.
[[gnu::noinline]] CUresult CallReplay::MakeElsewhere(driver::DriverRef driver, const Step& step) {
  const CUresult result = Make(driver, step);
  asm volatile("" ::: "memory");
  return result;
}

void CallReplay::FillWords(const Step& step, std::uint64_t* words) {
  // One structure for each parameter.
  static thread_local std::array<std::array<char, kMostStructure>, driver::kMaxParameters> structures;
  const std::span<const ParameterText> parameters = ParametersOf(step.call);
  const auto room = reinterpret_cast<std::uintptr_t>(room_);
  for (std::size_t i = 0; i < std::min(step.values.size(), parameters.size()); ++i) {
    const CallValue& value = step.values[i];
    const auto variable = static_cast<std::size_t>(value.variable);
    switch (value.is) {
      case CallValue::Is::Number:
        words[i] = value.number;
        break;
      case CallValue::Is::Variable:
        words[i] = values_[variable] + value.number;
        break;
      case CallValue::Is::Output:
        words[i] = reinterpret_cast<std::uintptr_t>(&values_[variable]);
        break;
      case CallValue::Is::Exchange:
        values_[variable] = value.number;
        words[i] = reinterpret_cast<std::uintptr_t>(&values_[variable]);
        break;
      case CallValue::Is::Pointee:
        structures[i].fill(0);
        if (value.variable == kNoVariable) FillPointee(step.call, step.values[1].number, value.number, room_, structures[i].data());
        else std::memcpy(structures[i].data(), &values_[variable], sizeof(values_[variable]));
        words[i] = reinterpret_cast<std::uintptr_t>(structures[i].data());
        break;
      case CallValue::Is::Structure: {
        std::array<char, kMostStructure>& structure = structures[i];
        structure.fill(0);
        const std::uint64_t object = value.variable == kNoVariable ? 0 : values_[variable];
        FillStructure(parameters[i].pointer() ? parameters[i].pointee() : parameters[i].type, value.kind, object, room_, structure.data());
        words[i] = reinterpret_cast<std::uintptr_t>(structure.data());
        break;
      }
      case CallValue::Is::Text:
        words[i] = reinterpret_cast<std::uintptr_t>(NamesAVariable(step.call) ? kVariableName : kName);
        break;
      case CallValue::Is::Image:
        words[i] = reinterpret_cast<std::uintptr_t>(kModuleText);
        break;
      case CallValue::Is::Function:
        words[i] = reinterpret_cast<std::uintptr_t>(NothingFunction(parameters[i].type));
        break;
      case CallValue::Is::Room:
        words[i] = room;
        break;
      case CallValue::Is::Nothing:
        break;
    }
  }
}

CUresult CallReplay::Make(driver::DriverRef driver, const Step& step) {
  std::uint64_t words[driver::kMaxParameters] = {};
  FillWords(step, words);
  constexpr auto kNumbers = std::make_index_sequence<kPlaces>();
  const CUresult result = step.goes_on ? MakeCallAt<true>(step, driver, words, kNumbers) : MakeCallAt<false>(step, driver, words, kNumbers);
  if (result != CUDA_SUCCESS && step.succeeded && std::find(unlike_.begin(), unlike_.end(), &step) == unlike_.end())
    unlike_.push_back(&step);
  return result;
}

}  // namespace cuaudit::harness
