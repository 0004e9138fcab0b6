// SPDX-License-Identifier: MIT
#include "harness/ledger/contexts.h"

namespace cuaudit::harness {

using driver::Kind;

// cuGreenCtxCreate(green, descriptor, device, flags): the primary context lives at least as long as the green context.
void Contexts::CreateGreen(const faults::Record& record) {
  greens_[record.argument[0]] = {record.argument[2], 0};
  ++primaries_[record.argument[2]].greens;
}

// cuCtxFromGreenCtx(context, green): while this context is current, new streams belong to the green context and all other objects to the
// primary context.
void Contexts::ViewGreen(const faults::Record& record) {
  const auto found = greens_.find(record.argument[1]);
  if (found != greens_.end()) found->second.view = record.argument[0];
}

const faults::Record& Contexts::BehindView(const faults::Record& record) {
  if (greens_.empty()) return record;
  if (record.context == 0 || driver::EffectOf(BaseOf(record)).kind != Kind::PeerAccess) return record;
  behind_ = record;
  for (const auto& [handle, green] : greens_) {
    const auto primary = green.view == record.context ? primaries_.find(green.device) : primaries_.end();
    if (primary != primaries_.end() && primary->second.context != 0) behind_.context = primary->second.context;
  }
  return behind_;
}

void Contexts::DestroyGreen(const faults::Record& record, Answer answer) {
  const auto found = greens_.find(record.argument[0]);
  if (found == greens_.end() || !Releases(answer)) return;
  const Green green = found->second;
  greens_.erase(found);
  Primary& primary = primaries_[green.device];
  account_->OrphanKind(Kind::Stream, record.argument[0], 0, SiteOf(record));
  account_->OrphanKind(Kind::Stream, green.view, primary.context, SiteOf(record));
  if (primary.greens != 0) --primary.greens;
  OrphanUnheld(primary, record);
}

}  // namespace cuaudit::harness
