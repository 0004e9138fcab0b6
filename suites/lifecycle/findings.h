// SPDX-License-Identifier: MIT
// findings.h: what the tests of lifecycles share: the findings of an audit as short texts ("leak stream 1 after
// cuEventCreate#1=OUT_OF_MEMORY,refuse"), and lifecycles that several of them audit.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cuaudit/lifecycle.h"

namespace cuaudit::testing {

inline std::string Text(const Finding& finding) {
  std::string text = finding.rule;
  if (!finding.kind.empty()) text.append(" ").append(finding.kind).append(" ").append(std::to_string(finding.count));
  for (std::size_t i = 0; i < finding.faults.size(); ++i) text.append(i == 0 ? " after " : " ").append(finding.faults[i]);
  return text;
}

inline std::vector<std::string> Texts(const Audit& audit) {
  std::vector<std::string> texts;
  for (const Finding& finding : audit.findings) texts.push_back(Text(finding));
  if (audit.outcome != AuditOutcome::Findings && audit.outcome != AuditOutcome::Clean) texts.push_back(audit.message);
  return texts;
}

using Do = std::function<void()>;
inline const Do kNothing = [] {};

// A lifecycle that creates and destroys an event. `always` runs in every cycle, `on_failure` when cuEventCreate fails.
inline Lifecycle WithAnEvent(const std::string& name, Do on_failure, Do always = kNothing) {
  return Lifecycle(name).WithCurrentContext().Init([on_failure = std::move(on_failure), always = std::move(always)](DriverRef driver) {
    always();
    CUevent event = nullptr;
    const CUresult code = driver.EventCreate(&event, 0);
    if (code == CUDA_SUCCESS) return driver.EventDestroy(event);
    on_failure();
    return code;
  });
}

// Retains and releases the primary context itself: the last release of it is part of the audit.
struct WithItsOwnContext {
  CUstream stream = nullptr;
  CUresult Init(DriverRef driver) {
    CUcontext context = nullptr;
    CUresult code = driver.Init(0);
    if (code == CUDA_SUCCESS) code = driver.DevicePrimaryCtxRetain(&context, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.CtxPushCurrent(context);
    if (code == CUDA_SUCCESS) {
      code = driver.StreamCreate(&stream, 0);
      if (code != CUDA_SUCCESS) (void)driver.CtxPopCurrent(&context);
    }
    if (code != CUDA_SUCCESS) (void)driver.DevicePrimaryCtxRelease(0);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    CUcontext context = nullptr;
    const CUresult one = driver.StreamDestroy(stream);
    const CUresult two = driver.CtxPopCurrent(&context);
    const CUresult three = driver.DevicePrimaryCtxRelease(0);
    return one != CUDA_SUCCESS ? one : two != CUDA_SUCCESS ? two : three;
  }
};

// Does the same in another order in every third run. `runs` counts them.
inline Lifecycle Drifting(int* runs) {
  return Lifecycle("drifts").WithCurrentContext().Init([runs](DriverRef driver) {
    CUevent event = nullptr;
    CUstream stream = nullptr;
    const bool swap = ++*runs % 3 == 0;
    const CUresult code = swap ? driver.StreamCreate(&stream, 0) : driver.EventCreate(&event, 0);
    if (code != CUDA_SUCCESS) return code;
    return swap ? driver.StreamDestroy(stream) : driver.EventDestroy(event);
  });
}

}  // namespace cuaudit::testing
