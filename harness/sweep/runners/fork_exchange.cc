// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/fork_exchange.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <span>
#include <string_view>

#include "faults/driver/call_id.h"
#include "faults/journal/journal_file.h"
#include "harness/verdict/host/driver_owned.h"

namespace cuaudit::harness {
namespace {

using faults::ForkHeader;
using faults::ForkNode;
using faults::ForkSlot;
using faults::JournalHeader;
using faults::Record;

constexpr std::size_t kPage = 4096;
constexpr std::size_t RoundUp(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Status Failed(const std::string& path, const char* what) { return {Exit::Failure, path + ": cannot " + what + ": " + SystemWords(errno)}; }

// What no process changes in the header of a journal.
constexpr std::size_t kFixedBytes = offsetof(JournalHeader, started);
std::string_view FixedOf(const JournalHeader& header) { return {reinterpret_cast<const char*>(&header), kFixedBytes}; }

bool IsRefusal(faults::ForkRefusal why) { return static_cast<std::size_t>(why) < faults::kForkRefusals; }

}  // namespace

struct ForkExchange::Mapping {
  SharedFile file;
  SharedFile journal;
  faults::JournalView tables;
  faults::KeyMemo memo;
  // A program can write over all that it shares with the tool, so sizes, offsets and the tree are taken from these copies.
  ForkHeader made{};
  std::vector<ForkNode> made_nodes;
  std::vector<ForkSlot> made_slots;
  JournalHeader trunk{};  // of the fault-free run; of both only what FixedOf takes
  JournalHeader forks{};

  ForkHeader* live() const { return reinterpret_cast<ForkHeader*>(file.bytes().data()); }
  ForkNode* nodes() const { return reinterpret_cast<ForkNode*>(file.bytes().data() + made.nodes_offset); }
  ForkSlot* slots() const { return reinterpret_cast<ForkSlot*>(file.bytes().data() + made.slots_offset); }
  JournalHeader* slot_header(std::uint32_t slot) const {
    return reinterpret_cast<JournalHeader*>(file.bytes().data() + made.journals_offset + slot * made.journal_bytes);
  }
  Record* slot_records(std::uint32_t slot) const {
    return reinterpret_cast<Record*>(reinterpret_cast<char*>(slot_header(slot)) + made.records_offset);
  }
  const Record* trunk_records() const { return reinterpret_cast<const Record*>(journal.bytes().data() + trunk.records_offset); }
};

// One journal in memory, assembled from the journals of a fork and its ancestors.
struct ForkExchange::Image {
  JournalHeader* header = nullptr;
  Record* records = nullptr;
  std::size_t capacity = 0;
  std::vector<Part> parts;
  std::shared_ptr<const void> tables;

  explicit Image(std::size_t count) : capacity(count) {
    void* const memory = std::malloc(RoundUp(sizeof(JournalHeader)) + count * sizeof(Record));
    if (memory == nullptr) throw std::bad_alloc();
    header = static_cast<JournalHeader*>(memory);
    records = reinterpret_cast<Record*>(static_cast<char*>(memory) + RoundUp(sizeof(JournalHeader)));
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() { std::free(header); }
};

ForkExchange::ForkExchange() = default;

Result<std::unique_ptr<ForkExchange>> ForkExchange::Make(const std::string& path, const std::string& journal,
                                                         const std::vector<ForkNode>& nodes, std::size_t records, const Pools& pools) {
  std::set<std::uint32_t> depths;  // depths at which processes fork in turn
  for (const ForkNode& node : nodes) {
    if (node.depth != 0 && node.children != 0) depths.insert(node.depth);
  }
  ForkHeader header{};
  std::memcpy(header.magic, faults::kForkMagic, sizeof(header.magic));
  header.table_digest = driver::TableDigest();
  header.tool = getpid();
  header.nodes = static_cast<std::uint32_t>(nodes.size());
  header.slots = pools.leaves + pools.others * static_cast<std::uint32_t>(depths.size());
  header.record_capacity = static_cast<std::uint32_t>(std::min<std::size_t>(records, UINT_MAX));
  header.nodes_offset = RoundUp(sizeof(ForkHeader));
  header.slots_offset = RoundUp(header.nodes_offset + nodes.size() * sizeof(ForkNode));
  header.journals_offset = RoundUp(header.slots_offset + header.slots * sizeof(ForkSlot));
  header.records_offset = RoundUp(sizeof(JournalHeader));
  header.journal_bytes = header.records_offset + RoundUp(header.record_capacity * sizeof(Record));
  header.file_bytes = header.journals_offset + header.slots * header.journal_bytes;

  std::unique_ptr<ForkExchange> exchange(new ForkExchange);
  exchange->path_ = path;
  exchange->mapping_ = std::make_shared<Mapping>();
  Mapping& mapping = *exchange->mapping_;
  {
    const FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.valid()) return Failed(path, "create");
    if (ftruncate(file.get(), static_cast<off_t>(header.file_bytes)) != 0) return Failed(path, "size");
    // Reserves storage for everything that the tool itself writes: a store to a page without disk space would kill the tool.
    std::size_t at = 0;
    for (std::uint32_t slot = 0; slot <= header.slots; ++slot) {
      const std::size_t begin = slot == 0 ? 0 : header.journals_offset + (slot - 1) * header.journal_bytes;
      const std::size_t end = slot == 0 ? header.journals_offset : begin + header.records_offset;
      for (at = begin; at < end; at += kPage) {
        constexpr char kZeros[kPage] = {};
        if (pwrite(file.get(), kZeros, kPage, static_cast<off_t>(at)) != static_cast<ssize_t>(kPage)) return Failed(path, "write");
      }
    }
  }
  if (!mapping.file.Open(path, true)) return Failed(path, "map");
  if (!mapping.journal.Open(journal, false)) return Failed(journal, "map");
  if (const char* const wrong = mapping.tables.Open(mapping.journal.bytes().data(), mapping.journal.bytes().size())) {
    return Status(Exit::Failure, journal + ": " + wrong);
  }
  mapping.tables.Remember(&mapping.memo);
  for (JournalHeader* const fixed : {&mapping.trunk, &mapping.forks})
    std::memcpy(static_cast<void*>(fixed), static_cast<const void*>(&mapping.tables.header()), kFixedBytes);
  mapping.forks.record_capacity = header.record_capacity;
  std::memcpy(static_cast<void*>(&mapping.made), static_cast<const void*>(&header), sizeof(header));
  std::memcpy(static_cast<void*>(mapping.live()), static_cast<const void*>(&header), sizeof(header));
  mapping.made_nodes = std::vector<ForkNode>(nodes.size());
  for (ForkNode* const copy : {mapping.made_nodes.data(), mapping.nodes()})
    std::memcpy(static_cast<void*>(copy), static_cast<const void*>(nodes.data()), nodes.size() * sizeof(ForkNode));
  mapping.made_slots = std::vector<ForkSlot>(header.slots);
  std::uint32_t slot = pools.leaves;
  for (const std::uint32_t depth : depths) {
    for (std::uint32_t i = 0; i < pools.others; ++i, ++slot) mapping.made_slots[slot].pool = depth;
  }
  std::memcpy(static_cast<void*>(mapping.slots()), static_cast<const void*>(mapping.made_slots.data()), header.slots * sizeof(ForkSlot));
  exchange->forks_.resize(nodes.size());
  return exchange;
}

ForkExchange::~ForkExchange() { unlink(path_.c_str()); }

const ForkHeader& ForkExchange::header() const noexcept { return mapping_->made; }
const ForkNode& ForkExchange::node(std::uint32_t i) const noexcept { return mapping_->made_nodes[i]; }
const ForkSlot& ForkExchange::slot(std::uint32_t i) const noexcept { return mapping_->made_slots[i]; }

ForkExchange::Fork ForkExchange::Noted(std::uint32_t slot) const {
  const ForkSlot& facts = mapping_->slots()[slot];
  const faults::SlotState state = facts.state.load(std::memory_order_acquire);
  Fork fork;
  if (state == faults::SlotState::Free) return fork;
  fork.node = facts.node.load(std::memory_order_acquire);
  if (state != faults::SlotState::Claimed || fork.node >= header().nodes) fork.node = kNobody;
  if (fork.node == 0 || fork.node == kNobody) return fork;
  const ForkNode& noted = mapping_->nodes()[fork.node];
  fork.pid = noted.pid.load(std::memory_order_acquire);
  fork.slot = noted.slot.load(std::memory_order_relaxed);
  fork.parent_slot = noted.parent_slot.load(std::memory_order_relaxed);
  fork.parent_records = noted.parent_records.load(std::memory_order_relaxed);
  return fork;
}

bool ForkExchange::Fits(const Fork& noted, std::uint32_t slot) const {
  const ForkNode& made = node(noted.node);
  return forks_[noted.node].node == 0 && noted.slot == slot && mapping_->made_slots[slot].pool == (made.children == 0 ? 0 : made.depth) &&
         noted.parent_slot == forks_[made.parent].slot;
}

bool ForkExchange::Waits(std::uint32_t slot) const {
  return (slot == faults::kNoSlot ? mapping_->live()->waiting : mapping_->slots()[slot].waiting).load() != 0;
}

faults::ForkRefusal ForkExchange::Refusal(std::uint32_t node) const {
  const faults::ForkRefusal why = mapping_->nodes()[node].why.load();
  return IsRefusal(why) ? why : faults::ForkRefusal::None;
}

bool ForkExchange::Whole(std::uint32_t index) const {
  const auto file_part = [](const ForkHeader& of) {
    return std::string_view(reinterpret_cast<const char*>(&of), offsetof(ForkHeader, freed));
  };
  if (mapping_->file.Resized() || mapping_->journal.Resized()) return false;
  if (file_part(mapping_->made) != file_part(*mapping_->live())) return false;
  if (FixedOf(mapping_->tables.header()) != FixedOf(mapping_->trunk)) return false;
  const auto as_made = [this](std::uint32_t i) {
    return std::memcmp(mapping_->nodes() + i, mapping_->made_nodes.data() + i, offsetof(ForkNode, state)) == 0;
  };
  if (index == 0) {
    std::uint32_t i = 0;
    std::uint32_t slot = 0;
    while (i < header().nodes && as_made(i) && IsRefusal(mapping_->nodes()[i].why.load())) ++i;
    while (slot < header().slots && mapping_->slots()[slot].pool == mapping_->made_slots[slot].pool) ++slot;
    return i == header().nodes && slot == header().slots;
  }
  for (std::uint32_t at = index; at != 0; at = node(at).parent) {
    if (!as_made(at) || Noted(forks_[at].slot) != forks_[at]) return false;
  }
  return FixedOf(*mapping_->slot_header(forks_[index].slot)) == FixedOf(mapping_->forks);
}

// The parent goes on and can write over what it has recorded, so its records are copied before they are folded. A parent whose last call
// had not returned is copied anew for each fork; what earlier forks have stays as it is.
void ForkExchange::Follow(const Fork& fork) {
  forks_[fork.node] = fork;
  const bool of_trunk = fork.parent_slot == faults::kNoSlot;
  const auto [found, fresh] = accounts_.try_emplace(fork.parent_slot);
  Account& parent = found->second;
  if (fresh && of_trunk) parent.folding = std::make_unique<Folding>();
  Account own;
  if (fork.parent_records < parent.folded) {  // the parent's ledger is already past this fork
    own.above = parent.copy;
    accounts_.insert_or_assign(fork.slot, std::move(own));
    return;
  }
  const std::uint64_t capacity = of_trunk ? mapping_->trunk.record_capacity : header().record_capacity;
  if (parent.folding == nullptr || parent.copy == nullptr) {
    parent.copy = std::make_shared<Image>(static_cast<std::size_t>(capacity));
    parent.folded = 0;
  }
  const Record* const records = of_trunk ? mapping_->trunk_records() : mapping_->slot_records(fork.parent_slot);
  const std::size_t more = static_cast<std::size_t>(std::min(fork.parent_records, capacity) - parent.folded);
  Record* const copy = parent.copy->records + parent.folded;
  std::memcpy(static_cast<void*>(copy), static_cast<const void*>(records + parent.folded), more * sizeof(Record));
  const bool kept = fork.parent_records <= capacity && parent.folding != nullptr && parent.folding->Add({copy, more});
  if (!kept) parent.folding.reset();
  if (kept) folded_ += more;
  parent.folded += more;
  own.above = parent.copy;
  if (kept) own.folding = std::make_unique<Folding>(*parent.folding);
  accounts_.insert_or_assign(fork.slot, std::move(own));
}

std::vector<ForkExchange::Part> ForkExchange::PartsOf(std::uint32_t index) const {
  const Account& own = accounts_.at(forks_[index].slot);
  const std::uint64_t written = mapping_->slot_header(forks_[index].slot)->next_record.load(std::memory_order_acquire);
  const std::size_t folded = own.folding == nullptr ? 0 : static_cast<std::size_t>(own.folded);
  const auto count = static_cast<std::size_t>(std::max<std::uint64_t>(folded, std::min<std::uint64_t>(written, header().record_capacity)));
  std::vector<Part> parts = {{index, mapping_->slot_records(forks_[index].slot) + folded, count - folded}};
  if (folded != 0) parts.push_back({index, own.copy->records, folded});
  for (std::uint32_t at = index; at != 0; at = node(at).parent) {
    const std::uint32_t parent = node(at).parent;
    const std::uint64_t capacity = parent == 0 ? mapping_->trunk.record_capacity : header().record_capacity;
    parts.push_back(
        {parent, accounts_.at(forks_[at].slot).above->records, static_cast<std::size_t>(std::min(forks_[at].parent_records, capacity))});
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// The common beginning with the previous journal is kept in place, unless it may have changed since.
std::shared_ptr<ForkExchange::Image> ForkExchange::Put(const std::vector<Part>& parts, bool settled) {
  std::size_t total = 0;
  for (const Part& part : parts) total += part.count;
  std::shared_ptr<Image> image = std::move(image_);
  if (image == nullptr || image.use_count() != 1 || image->capacity < total) {
    image = std::make_shared<Image>(2 * total);
    image->tables = mapping_;
  }
  std::size_t same = 0;
  bool alike = settled;
  Record* to = image->records;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    alike = alike && i < image->parts.size() && image->parts[i].node == parts[i].node;
    same = alike ? std::min(image->parts[i].count, parts[i].count) : 0;
    alike = alike && image->parts[i].count == parts[i].count;
    std::memcpy(static_cast<void*>(to + same), static_cast<const void*>(parts[i].records + same), (parts[i].count - same) * sizeof(Record));
    copied_ += parts[i].count - same;
    to += parts[i].count;
  }
  image->parts = parts;
  image->header->next_record.store(total, std::memory_order_relaxed);
  image_ = image;
  return image;
}

Observation ForkExchange::Collect(std::uint32_t index, const Ending& ending) {
  const std::uint32_t slot = forks_[index].slot;
  const std::vector<Part> parts = PartsOf(index);
  Account& account = accounts_.at(slot);
  const std::shared_ptr<Image> image = Put(parts, account.folding != nullptr);
  const std::uint64_t total = image->header->next_record.load(std::memory_order_relaxed);
  const std::span<const Record> records(image->records, static_cast<std::size_t>(total));
  std::optional<Ledger> ledger;
  if (account.folding != nullptr) ledger = account.folding->Finish(records.last(parts.back().count));
  folded_ += ledger.has_value() ? parts.back().count : 0;
  account.folding.reset();

  std::memcpy(static_cast<void*>(image->header), static_cast<const void*>(mapping_->slot_header(slot)), sizeof(JournalHeader));
  std::memcpy(static_cast<void*>(image->header), static_cast<const void*>(&mapping_->forks), kFixedBytes);
  image->header->driver_path[sizeof(image->header->driver_path) - 1] = '\0';
  image->header->flags.fetch_and(~(faults::kRecording | faults::kPacked));
  image->header->next_record.store(total, std::memory_order_relaxed);
  Observation seen;
  seen.path = path_;
  seen.ending = ending;
  seen.journal = faults::JournalView::Join(image->header, records, mapping_->tables, parts.front().count);
  seen.keeps = image;
  if (!ledger.has_value()) {
    ledger = Fold(records);
    folded_ += records.size();
  }
  seen.ledger = std::move(*ledger);
  MarkDriverOwned(seen.journal, &seen.ledger);
  return seen;
}

void ForkExchange::Free(std::uint32_t slot) {
  JournalHeader* const header = mapping_->slot_header(slot);
  const std::uint64_t written = std::min<std::uint64_t>(header->next_record.load(), mapping_->made.record_capacity);
  const std::uint64_t stored = std::min<std::uint64_t>(written, header->reserved.load());
  std::memset(static_cast<void*>(mapping_->slot_records(slot)), 0, static_cast<std::size_t>(stored) * sizeof(Record));
  ForkSlot& one = mapping_->slots()[slot];
  one.node.store(0, std::memory_order_relaxed);
  one.waiting.store(0, std::memory_order_relaxed);
  one.state.store(faults::SlotState::Free, std::memory_order_release);
  std::atomic<std::uint32_t>& freed = mapping_->live()->freed;
  freed.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&freed), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace cuaudit::harness
