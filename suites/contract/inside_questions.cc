// SPDX-License-Identifier: MIT
// What a host function may call, one call each: some of them never come back from a genuine driver.
#include "suites/contract/stage.h"

namespace cuaudit::contract::inside_questions {
namespace {

void Nothing(void*) {}

struct Inside {
  driver::DriverRef d;
  CUstream stream;
  CUevent event;
  CUcontext context;
  CUresult (*call)(const Inside&);
  CUresult result;
};
void CallFromInside(void* argument) {
  Inside* const inside = static_cast<Inside*>(argument);
  inside->result = inside->call(*inside);
}
void CallFromCallback(CUstream, CUresult, void* argument) { CallFromInside(argument); }

void Ask(Asker& a, CUresult (*call)(const Inside&), bool callback = false) {
  Stage stage(a);
  static Inside inside;
  inside = {a.d, stage.t, stage.e, stage.ready.context, call, CUDA_SUCCESS};
  a.Prepare(callback ? a.d.StreamAddCallback(stage.s, CallFromCallback, &inside, 0) : a.d.LaunchHostFunc(stage.s, CallFromInside, &inside));
  a.Prepare(a.d.StreamSynchronize(stage.s));
  a(inside.result);
}

constexpr Question kQuestions[] = {
    {"inside.version", "SUCCESS", Manner::Fresh,
     [](Asker& a) {
       Ask(a, [](const Inside& in) {
         int version = 0;
         return in.d.DriverGetVersion(&version);
       });
     }},
    {"inside.init", "SUCCESS", Manner::Fresh, [](Asker& a) { Ask(a, [](const Inside& in) { return in.d.Init(0); }); }},
    {"inside.device_count", "NOT_PERMITTED", Manner::Fresh,
     [](Asker& a) {
       Ask(a, [](const Inside& in) {
         int count = 0;
         return in.d.DeviceGetCount(&count);
       });
     }},
    {"inside.get_current", "NOT_PERMITTED", Manner::Fresh,
     [](Asker& a) {
       Ask(a, [](const Inside& in) {
         CUcontext current = nullptr;
         return in.d.CtxGetCurrent(&current);
       });
     }},
    {"inside.set_current", "NOT_PERMITTED", Manner::Fresh,
     [](Asker& a) { Ask(a, [](const Inside& in) { return in.d.CtxSetCurrent(in.context); }); }},
    {"inside.launch_host_function", "SUCCESS", Manner::Fresh,
     [](Asker& a) { Ask(a, [](const Inside& in) { return in.d.LaunchHostFunc(in.stream, Nothing, nullptr); }); }},
    {"inside.stream_query", "SUCCESS", Manner::Fresh,
     [](Asker& a) { Ask(a, [](const Inside& in) { return in.d.StreamQuery(in.stream); }); }},
    {"inside.event_query", "SUCCESS", Manner::Fresh, [](Asker& a) { Ask(a, [](const Inside& in) { return in.d.EventQuery(in.event); }); }},
    {"inside.event_record", "SUCCESS", Manner::Fresh,
     [](Asker& a) { Ask(a, [](const Inside& in) { return in.d.EventRecord(in.event, in.stream); }); }},
    {"inside.callback_stream_query", "SUCCESS", Manner::Fresh,
     [](Asker& a) {
       Ask(
           a, [](const Inside& in) { return in.d.StreamQuery(in.stream); }, true);
     }},
    {"inside.callback_device_count", "NOT_PERMITTED", Manner::Fresh,
     [](Asker& a) {
       Ask(
           a,
           [](const Inside& in) {
             int count = 0;
             return in.d.DeviceGetCount(&count);
           },
           true);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::inside_questions

namespace cuaudit::contract {
std::span<const Question> InsideQuestions() { return inside_questions::kQuestions; }
}  // namespace cuaudit::contract
