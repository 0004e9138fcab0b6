// SPDX-License-Identifier: MIT
// traces.h: traces of programs that the planted and the positive suite share: each side has them with another ending.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "harness/cycle/snapshot.h"
#include "harness/defect/defects.h"
#include "harness/sweep/findings/benign.h"
#include "suites/support/cases/case.h"
#include "suites/support/cases/deficits.h"
#include "suites/support/journal_image.h"
#include "suites/support/trace.h"

namespace cuaudit::testing {

// Traces of programs whose objects stand on others: textures on arrays, graph nodes on modules, levels on mipmapped arrays.

inline constexpr std::uint64_t kArray = 0xa0;
inline constexpr std::uint64_t kTexture = 0x7e000000;
inline constexpr std::uint64_t kModule = 0x30;
inline constexpr std::uint64_t kLibrary = 0x31;
inline constexpr std::uint64_t kFunction = 0xf0;
inline constexpr std::uint64_t kGraph = 0x1;
inline constexpr std::uint64_t kNode = 0x2;
inline constexpr std::uint64_t kExecutable = 0x3;

// What a texture or surface object can be made of, and how that is made and destroyed.
struct TextureGround {
  driver::Kind kind;
  driver::CallId make;
  driver::CallId destroy;
};
inline constexpr TextureGround kTextureGrounds[] = {
    {driver::Kind::Array, driver::CallId::ArrayCreate_v2, driver::CallId::ArrayDestroy},
    {driver::Kind::MipmappedArray, driver::CallId::MipmappedArrayCreate, driver::CallId::MipmappedArrayDestroy},
    {driver::Kind::DeviceMemory, driver::CallId::MemAlloc_v2, driver::CallId::MemFree_v2},
};

inline void View(Trace& t, driver::CallId call, std::uint64_t object, driver::Kind kind, std::uint64_t under) {
  const Step step = t.Call(call).Out(0, object);
  t.NodeContent(step, faults::kStandsOn, static_cast<std::uint64_t>(kind), under);
}

// A launch with its kernel arguments recorded, as the gate does while a texture lives whose memory is gone.
inline Step LaunchWith(Trace& t, std::initializer_list<std::uint64_t> words) {
  const Step step = t.Call(driver::CallId::LaunchKernel).In(0, kFunction);
  Step told = t.NodeContent(step, faults::kLaunchWords, 0);
  int i = 0;
  for (const std::uint64_t word : words) told.In(i++, word);
  return step;
}

// A graph of one kernel node that launches `code`, instantiated.
inline void GraphOf(Trace& t, std::uint64_t code) {
  t.Call(driver::CallId::GraphCreate).Out(0, kGraph);
  const Step step = t.Call(driver::CallId::GraphAddKernelNode_v2).Out(0, kNode).In(1, kGraph);
  t.NodeContent(step, faults::kStandsOn, static_cast<std::uint64_t>(driver::Kind::Module), code);
  t.Call(driver::CallId::GraphInstantiateWithFlags).Out(0, kExecutable).In(1, kGraph);
}

inline void EndGraph(Trace& t) {
  t.Call(driver::CallId::GraphExecDestroy).In(0, kExecutable);
  t.Call(driver::CallId::GraphDestroy).In(0, kGraph);
}

inline void LoadFunction(Trace& t) {
  t.Call(driver::CallId::ModuleLoadData).Out(0, kModule);
  t.Call(driver::CallId::ModuleGetFunction).Out(0, kFunction).In(1, kModule);
}

inline void Unload(Trace& t) { t.Call(driver::CallId::ModuleUnload).In(0, kModule); }

inline constexpr std::uint64_t kMipmapped = 0xb0;
inline constexpr std::uint64_t kLevel = 0xb1;

// Traces of programs that export and import memory by file descriptors. Names are those of the journal: number + 1.

inline constexpr driver::CallId kMakeDescriptors[] = {driver::CallId::MemExportToShareableHandle,
                                                      driver::CallId::MemPoolExportToShareableHandle,
                                                      driver::CallId::MemGetHandleForAddressRange};

inline constexpr std::uint64_t kImported = 0x1e;

// A program that the host probes watch.
inline Trace Watched() {
  Trace t;
  t.Host(faults::HostCall::Looking, 0);
  return t;
}

// The driver makes a descriptor for the program.
inline Step Make(Trace& t, driver::CallId call, std::uint64_t descriptor) {
  Step step = t.Call(call).In(1, 0x5);
  t.NodeContent(step, faults::kDescriptor, descriptor, 0);
  return step;
}

// The driver takes the descriptor over with the import.
inline Step Import(Trace& t, driver::CallId call, std::uint64_t descriptor) {
  Step step = t.Call(call).Out(0, kImported);
  t.NodeContent(step, faults::kDescriptor, 0, descriptor);
  return step;
}

// Trials of programs whose clean-up is away from the acquisition: in an exit handler, or when a pool's threads are joined.

// Two streams that live as long as the process and are destroyed by an exit handler. Work in between may fail.
inline harness::Judgement CleansUpAtExit(bool right) {
  const auto program = [](bool faulted, bool whole) {
    Trace t;
    t.Retain().Stack(1);
    t.CreateStream(0x10).Stack(2);
    t.CreateStream(0x11).Stack(3);
    t.Host(faults::HostCall::Allocate, 0x5000, 64).Stack(4);
    Step work = t.Call(driver::CallId::StreamSynchronize).In(0, 0x10).Stack(5);
    if (faulted) work.Refused(CUDA_ERROR_LAUNCH_TIMEOUT);
    t.Host(faults::HostCall::Deallocate, 0x5000).Stack(6);  // main unwinds what is its own
    t.Event(faults::ProcessEvent::Exit);
    t.DestroyStream(0x10).Stack(7);
    if (whole) t.DestroyStream(0x11).Stack(8);
    if (whole) t.ReleasePrimary().Stack(9);
    return t;
  };
  return Judge(program(false, true), program(true, right));
}

// Two pool threads that are joined at the end, a thread that detaches itself, and a thread that is kept for the process.
inline harness::Judgement UsesAThreadPool(bool right) {
  const auto program = [](bool faulted, bool whole) {
    Trace t;
    t.Host(faults::HostCall::ThreadCreate, 0x7000).Stack(1);  // kept
    t.Host(faults::HostCall::ThreadCreate, 0x7001).Stack(2);
    t.Host(faults::HostCall::ThreadDetachSelf, 0x7001).Stack(3);
    for (const std::uint64_t thread : {0x7002U, 0x7003U}) t.Host(faults::HostCall::ThreadCreate, thread).Stack(4);
    Step alloc = t.Alloc(0x1000).Stack(5);
    if (faulted) alloc.Refused();
    if (!faulted) t.Free(0x1000).Stack(6);
    t.Host(faults::HostCall::ThreadJoin, 0x7002).Stack(7);
    if (whole) t.Host(faults::HostCall::ThreadJoin, 0x7003).Stack(7);
    t.Event(faults::ProcessEvent::Exit);
    return t;
  };
  return Judge(program(false, true), program(true, right));
}

// Trials of programs with an optional feature whose failure is declared benign (harness/sweep/findings/benign.h).

inline std::vector<harness::Benign> Declarations(const std::vector<std::string>& texts) {
  std::vector<harness::Benign> declared;
  for (const std::string& text : texts) {
    const harness::Result<harness::Benign> one = harness::ParseBenign(text);
    EXPECT_TRUE(one.ok()) << text;
    if (one.ok()) declared.push_back(*one);
  }
  return declared;
}

// A trial in which cuMemPoolCreate, called by make_pool, was refused. The program ended with `said` and lost nothing.
inline harness::TrialResult Declared(const std::string& declaration, harness::Said said) {
  harness::TrialResult trial;
  trial.fired = true;
  trial.said = said;
  trial.faults = {"cuMemPoolCreate#1=OUT_OF_MEMORY,refuse"};
  trial.verdict = said == harness::Said::Success ? harness::Verdict::Absorbed : harness::Verdict::Pass;
  report::Frame frame = {.function = "make_pool"};
  trial.fault_site = {"cuMemPoolCreate", {frame}};
  harness::ApplyBenign(Declarations({declaration}), &trial);
  for (const harness::TrialFindingText& finding : trial.findings) Saw(Name(finding.rule), driver::Name(finding.kind));
  SawDefects(trial.findings.size());
  return trial;
}

// The declarations whose calls no trial made fail. There is one trial for each of `hit`; `fired` says whether its fault fired.
inline std::vector<harness::TrialFindingText> NeverHit(const std::vector<std::string>& declared, const std::vector<std::string>& hit,
                                                       bool fired = true) {
  std::map<std::size_t, harness::TrialResult> results;
  for (const std::string& text : hit) {
    harness::TrialResult trial = {.fired = fired};
    const auto at = std::find(declared.begin(), declared.end(), text);
    if (at != declared.end()) trial.benign = {static_cast<std::size_t>(at - declared.begin())};
    results[results.size()] = trial;
  }
  std::vector<harness::TrialFindingText> never = harness::NeverFired(Declarations(declared), results);
  for (const harness::TrialFindingText& finding : never) Saw(Name(finding.rule), "none");
  SawDefects(never.size());
  return never;
}

// Runs of a program as traces, one of few cycles and one of many, and the growth that the harness finds between them
// (harness/cycle). While something grows, there are runs of twice as many cycles, as in `cuaudit cycles`.

// Returns the result and notes its findings and notes (trace.h). `program` writes the trace of a run with that number of cycles.
inline report::Run Grown(const std::function<void(Trace& t, std::uint64_t cycles)>& program, std::uint64_t few = 1, std::uint64_t many = 10,
                         std::uint64_t most = 80) {
  harness::SiteTexts sites;
  std::vector<harness::Snapshot> snapshots;
  for (std::uint64_t cycles = few; cycles != 0; cycles = cycles == few ? many : harness::NextCount(snapshots, most)) {
    Trace t;
    program(t, cycles);
    const JournalImage image(t);
    harness::Observation run;
    run.journal = image.view();
    run.ledger = image.ledger();
    snapshots.push_back(harness::TakeSnapshot(run, cycles, harness::kAtExit, &sites));
  }
  report::Run run;
  harness::CompareSnapshots(snapshots, "", &run);
  for (const report::Finding& finding : run.findings) Saw(Name(finding.rule), finding.kind);
  for (const report::Finding& note : run.notes) Saw(Name(note.rule), note.kind);
  harness::FindDefects(&run);
  SawDefects(run.defects.size());
  return run;
}

// The same for a program that leaves `alive` streams after each number of cycles.
inline report::Run GrownTo(const std::function<std::uint64_t(std::uint64_t cycles)>& alive, std::uint64_t most = 80) {
  return Grown(
      [&](Trace& t, std::uint64_t cycles) {
        for (std::uint64_t i = 1; i <= alive(cycles); ++i) t.CreateStream(i);
      },
      1, 10, most);
}

// A primary context that a helper releases once too often while its caller still works there.

// The caller goes on with its stream or memory, in a context that was released once too often. The caller's calls are not told beside the
// cause.
enum class Goes { OnAndReleases, StraightToItsReleases, AstrayOnAnotherDevice };
template <Goes goes>
Trace GoesOnInAContextThatEnded(Run run) {
  Trace t;
  t.Retain().Stack(101);
  t.CreateStream(0x10).Stack(110);
  t.Alloc(0x2000).Stack(111);
  t.Retain().Stack(102);
  Step event = t.Call(driver::CallId::EventCreate).Out(0, 0x30).Stack(104);
  if (run != Run::FaultFree) event.Refused();
  if (run == Run::FaultFree) t.Call(driver::CallId::EventDestroy_v2).In(0, 0x30).Stack(105);
  if (run != Run::FaultFree) t.ReleasePrimary().Stack(106);
  if (run != Run::Right) t.ReleasePrimary().Stack(103);
  const auto late = [&](Step step, CUresult answer) {
    if (run == Run::Wrong) step.Fails(answer);
  };
  if (goes != Goes::StraightToItsReleases)
    late(t.Call(driver::CallId::StreamSynchronize).In(0, 0x10).Stack(112), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  late(t.Free(0x2000).Stack(113), CUDA_ERROR_INVALID_CONTEXT);
  late(t.DestroyStream(0x10).Stack(114), CUDA_ERROR_INVALID_CONTEXT);
  late(t.ReleasePrimary().Stack(109), CUDA_ERROR_INVALID_CONTEXT);
  if (goes == Goes::AstrayOnAnotherDevice) {
    t.Retain(0xc1, 1).Stack(120);
    t.CreateStream(0x11).Context(0xc1).Stack(121);
    if (run != Run::Wrong) t.DestroyStream(0x11).Context(0xc1).Stack(122);
    t.ReleasePrimary(1).Stack(123);
    if (run == Run::Wrong) late(t.DestroyStream(0x11).Context(0xc1).Stack(122), CUDA_ERROR_INVALID_CONTEXT);
  }
  return t;
}

// A fallback works in a context of its own reference, and sets memory after it has given that back. Before that the failing path has
// released the primary context once too often: when nobody held it any more, or while its caller still worked in it.
enum class Before { NothingWasLeft, TheCallerWasInIt };
template <Before before>
Trace AFallbackUsesWhatItReleased(Run run) {
  Trace t;
  const bool called = before == Before::TheCallerWasInIt;
  if (called) t.Retain().Stack(101);
  if (called) t.Alloc(0x2000).Stack(111);
  t.Retain().Stack(102);
  Step event = t.Call(driver::CallId::EventCreate).Out(0, 0x30).Stack(104);
  if (run != Run::FaultFree) event.Refused();
  if (run == Run::FaultFree) t.Call(driver::CallId::EventDestroy_v2).In(0, 0x30).Stack(105);
  t.ReleasePrimary().Stack(103);
  if (run != Run::FaultFree) {
    Step too_many = t.ReleasePrimary().Stack(106);
    if (!called) too_many.Fails(CUDA_ERROR_INVALID_CONTEXT);
  }
  if (called) {
    Step late = t.Free(0x2000).Stack(113);
    if (run != Run::FaultFree) late.Fails(CUDA_ERROR_INVALID_CONTEXT);
  }
  if (run != Run::FaultFree) {
    t.Retain().Stack(115);
    t.Alloc(0x5000).Stack(116);
    t.ReleasePrimary().Stack(118);
    t.Call(driver::CallId::MemsetD8_v2).In(0, 0x5000).Stack(119).Fails(CUDA_ERROR_INVALID_VALUE);
  }
  if (called) {
    Step last = t.ReleasePrimary().Stack(109);
    if (run != Run::FaultFree) last.Fails(CUDA_ERROR_INVALID_CONTEXT);
  }
  return t;
}

// Ranges and host memory under what is mapped or registered there.

enum class Ground { Range, Heap, Pages };
inline constexpr Ground kGrounds[] = {Ground::Range, Ground::Heap, Ground::Pages};

inline void TakeGround(Trace& t, Ground ground, std::uint64_t at) {
  if (ground == Ground::Range) {
    t.Call(driver::CallId::MemAddressReserve).Out(0, at).In(1, 0x4000).Stack(1);
  } else {
    t.Host(ground == Ground::Heap ? faults::HostCall::Allocate : faults::HostCall::Map, at, 0x4000).Stack(1);
  }
}

inline void GiveGround(Trace& t, Ground ground, std::uint64_t at) {
  if (ground == Ground::Range) {
    t.Call(driver::CallId::MemAddressFree).In(0, at).In(1, 0x4000).Stack(4);
  } else {
    t.Host(ground == Ground::Heap ? faults::HostCall::Deallocate : faults::HostCall::Unmap, at, ground == Ground::Heap ? 0 : 0x4000)
        .Stack(4);
  }
}

inline void Cover(Trace& t, Ground ground, std::uint64_t at) {
  const auto call = ground == Ground::Range ? driver::CallId::MemMap : driver::CallId::MemHostRegister_v2;
  t.Call(call).In(0, at).In(1, 0x1000).Stack(2);
}

inline Step Uncover(Trace& t, Ground ground, std::uint64_t at) {
  const auto call = ground == Ground::Range ? driver::CallId::MemUnmap : driver::CallId::MemHostUnregister;
  Step step = t.Call(call).In(0, at).Stack(3);
  if (ground == Ground::Range) step.In(1, 0x1000);
  return step;
}

// What the fault-free run does: two pages are covered, and all is given back.
inline Trace CoversTwoPages(Ground ground) {
  Trace t;
  TakeGround(t, ground, 0x10000);
  for (const std::uint64_t at : {0x10000U, 0x12000U}) Cover(t, ground, at);
  for (const std::uint64_t at : {0x10000U, 0x12000U}) Uncover(t, ground, at);
  GiveGround(t, ground, 0x10000);
  return t;
}

}  // namespace cuaudit::testing
