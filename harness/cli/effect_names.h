// SPDX-License-Identifier: MIT
// effect_names.h: names of the effects of effects.h for tables that people read.
#pragma once

#include <string_view>

#include "faults/driver/effects.h"

namespace cuaudit::harness {

constexpr std::string_view EffectName(driver::Effect effect) {
  switch (effect) {
    case driver::Effect::Describes:
      return "describes";
    case driver::Effect::Queries:
      return "queries";
    case driver::Effect::Uses:
      return "uses";
    case driver::Effect::Acquires:
      return "acquires";
    case driver::Effect::AcquiresCounted:
      return "acquires counted";
    case driver::Effect::AcquiresGiven:
      return "acquires given";
    case driver::Effect::Retains:
      return "retains";
    case driver::Effect::RetainsCounted:
      return "retains counted";
    case driver::Effect::Releases:
      return "releases";
    case driver::Effect::ReleasesCounted:
      return "releases counted";
    case driver::Effect::ReleasesRange:
      return "releases range";
    case driver::Effect::ReleasesPointee:
      return "releases pointee";
    case driver::Effect::RetainsPrimary:
      return "retains primary";
    case driver::Effect::ReleasesPrimary:
      return "releases primary";
    case driver::Effect::ResetsPrimary:
      return "resets primary";
    case driver::Effect::CreatesContext:
      return "creates context";
    case driver::Effect::DestroysContext:
      return "destroys context";
    case driver::Effect::PushesContext:
      return "pushes context";
    case driver::Effect::PopsContext:
      return "pops context";
    case driver::Effect::SetsContext:
      return "sets context";
    case driver::Effect::AddsNode:
      return "adds node";
    case driver::Effect::ClonesGraph:
      return "clones graph";
    case driver::Effect::BeginsCapture:
      return "begins capture";
    case driver::Effect::EndsCapture:
      return "ends capture";
    case driver::Effect::Instantiates:
      return "instantiates";
    case driver::Effect::UpdatesGraph:
      return "updates graph";
    case driver::Effect::LaunchesGraph:
      return "launches graph";
    case driver::Effect::GraphRetains:
      return "graph retains";
    case driver::Effect::GraphReleases:
      return "graph releases";
  }
  return {};
}

}  // namespace cuaudit::harness
