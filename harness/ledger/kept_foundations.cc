// SPDX-License-Identifier: MIT
#include "harness/ledger/kept_foundations.h"

#include <algorithm>

namespace cuaudit::harness {

using driver::Kind;

namespace {

bool MayStandOn(Kind above, Kind below) {
  if (above == Kind::Mapping) return below == Kind::AddressReservation;
  return below == Kind::HostHeap || below == Kind::HostMapping;
}

bool Overlap(const Object& one, const Object& other) {
  return one.handle - other.handle < other.bytes || other.handle - one.handle < one.bytes;
}

}  // namespace

KeptFoundations::KeptFoundations(const Ledger& ledger) {
  for (const Object& object : ledger.objects) {
    if (object.kind != Kind::Mapping && object.kind != Kind::HostRegistration) continue;
    // What lay there before has ended, whatever the program was told.
    std::erase_if(held_, [&](const Object* one) { return one->pid == object.pid && one->kind == object.kind && Overlap(*one, object); });
    if (object.state == State::ReleaseRefused || object.release_denied) held_.push_back(&object);
  }
}

const Site* KeptFoundations::HeldBy(const Object& object) const {
  if (object.state != State::Live) return nullptr;
  const auto above = std::find_if(held_.begin(), held_.end(), [&](const Object* one) {
    return one->pid == object.pid && MayStandOn(one->kind, object.kind) && one->acquired.begin > object.acquired.begin &&
           Overlap(*one, object);
  });
  return above == held_.end() ? nullptr : &(*above)->released;
}

}  // namespace cuaudit::harness
