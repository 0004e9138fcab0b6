// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/fork_exchange.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <string_view>
#include <tuple>

#include "faults/driver/call_id.h"
#include "faults/journal/journal_file.h"
#include "harness/verdict/host/driver_owned.h"

namespace cuaudit::harness {
namespace {

using faults::Fault;

struct Branch {
  Fault fault;
  std::uint32_t trial = faults::kNoTrial;
  std::vector<std::size_t> children;  // in the order in which the lists name them
};

using Key = std::tuple<std::size_t, driver::BaseId, faults::Phase, std::uint32_t, CUresult, faults::How, std::uint32_t>;

using faults::ForkHeader;
using faults::ForkNode;
using faults::ForkSlot;
using faults::JournalHeader;
using faults::Record;

constexpr std::size_t kPage = 4096;
constexpr std::size_t RoundUp(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Status Failed(const std::string& path, const char* what) { return {Exit::Failure, path + ": cannot " + what + ": " + SystemWords(errno)}; }

void* MapShared(const std::string& path, int rights, std::size_t* bytes) {
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat facts = {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) return MAP_FAILED;
  *bytes = static_cast<std::size_t>(facts.st_size);
  return mmap(nullptr, *bytes, rights, MAP_SHARED, file.get(), 0);
}

// What no process changes in the header of a journal.
struct FixedPart {
  char before_byte_order[offsetof(JournalHeader, byte_order)];
  std::uint32_t byte_order;
  std::uint32_t pointer_bytes;
  char tool_version[sizeof(JournalHeader::tool_version)];
  std::uint64_t table_digest;
  std::uint64_t file_bytes;
  std::uint64_t record_capacity;
  std::uint64_t modules_offset;
  std::uint64_t stacks_offset;
  std::uint64_t python_offset;
  std::uint64_t records_offset;
  std::uint32_t rows_and_window[4];
};
static_assert(sizeof(FixedPart) == offsetof(JournalHeader, started));

FixedPart FixedOf(const JournalHeader& header) {
  FixedPart part{};
  std::memcpy(static_cast<void*>(&part), static_cast<const void*>(&header), sizeof(part));
  return part;
}

bool operator==(const FixedPart& a, const FixedPart& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

}  // namespace

std::vector<ForkRow> PlantForks(const std::vector<std::vector<Fault>>& lists) {
  std::vector<Branch> branches(1);
  std::map<Key, std::size_t> known;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    std::size_t at = 0;
    for (const Fault& fault : lists[i]) {
      const Key key{at, fault.base, fault.phase, fault.occurrence, fault.code, fault.how, fault.burst};
      const auto [found, added] = known.try_emplace(key, branches.size());
      if (added) {
        branches[at].children.push_back(found->second);
        branches.push_back({fault, faults::kNoTrial, {}});
      }
      at = found->second;
    }
    if (at != 0 && branches[at].trial == faults::kNoTrial) branches[at].trial = static_cast<std::uint32_t>(i);
  }
  std::vector<ForkRow> rows(1);
  std::vector<std::size_t> branch_of = {0};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::vector<std::size_t> children = branches[branch_of[row]].children;
    std::stable_sort(children.begin(), children.end(),
                     [&](std::size_t a, std::size_t b) { return faults::CompareWhere(branches[a].fault, branches[b].fault) < 0; });
    rows[row].first_child = static_cast<std::uint32_t>(rows.size());
    rows[row].children = static_cast<std::uint32_t>(children.size());
    for (const std::size_t child : children) {
      rows.push_back({branches[child].fault, static_cast<std::uint32_t>(row), 0, 0, rows[row].depth + 1, branches[child].trial, false});
      branch_of.push_back(child);
    }
  }
  return rows;
}

std::vector<ForkRow> PlantControls(const std::vector<Fault>& points) {
  std::vector<std::vector<Fault>> lists;
  lists.reserve(points.size());
  for (const Fault& point : points) lists.push_back({point});
  std::vector<ForkRow> rows = PlantForks(lists);
  for (std::size_t row = 1; row < rows.size(); ++row) rows[row].control = true;
  return rows;
}

struct ForkExchange::Mapping {
  char* file = nullptr;
  std::size_t file_bytes = 0;
  const char* journal = nullptr;
  std::size_t journal_bytes = 0;
  faults::JournalView tables;
  faults::KeyMemo memo;
  // A program can write over all that it shares with the tool, so sizes and offsets are taken from these copies.
  ForkHeader made{};
  FixedPart trunk{};

  ForkHeader* live() const { return reinterpret_cast<ForkHeader*>(file); }
  ForkNode* nodes() const { return reinterpret_cast<ForkNode*>(file + made.nodes_offset); }
  ForkSlot* slots() const { return reinterpret_cast<ForkSlot*>(file + made.slots_offset); }
  JournalHeader* slot_header(std::uint32_t slot) const {
    return reinterpret_cast<JournalHeader*>(file + made.journals_offset + slot * made.journal_bytes);
  }
  Record* slot_records(std::uint32_t slot) const {
    return reinterpret_cast<Record*>(reinterpret_cast<char*>(slot_header(slot)) + made.records_offset);
  }
  const Record* trunk_records() const { return reinterpret_cast<const Record*>(journal + trunk.records_offset); }
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (file != nullptr) munmap(file, file_bytes);
    if (journal != nullptr) munmap(const_cast<char*>(journal), journal_bytes);
  }
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
                                                         const std::vector<ForkRow>& rows, std::size_t records, const Pools& pools) {
  std::set<std::uint32_t> depths;  // depths at which processes fork in turn
  for (const ForkRow& row : rows) {
    if (row.depth != 0 && row.children != 0) depths.insert(row.depth);
  }
  ForkHeader header{};
  std::memcpy(header.magic, faults::kForkMagic, sizeof(header.magic));
  header.table_digest = driver::TableDigest();
  header.tool = getpid();
  header.nodes = static_cast<std::uint32_t>(rows.size());
  header.slots = pools.leaves + pools.others * static_cast<std::uint32_t>(depths.size());
  header.record_capacity = static_cast<std::uint32_t>(std::min<std::size_t>(records, UINT_MAX));
  header.nodes_offset = RoundUp(sizeof(ForkHeader));
  header.slots_offset = RoundUp(header.nodes_offset + rows.size() * sizeof(ForkNode));
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
  void* const memory = MapShared(path, PROT_READ | PROT_WRITE, &mapping.file_bytes);
  if (memory == MAP_FAILED) return Failed(path, "map");
  mapping.file = static_cast<char*>(memory);
  const void* const of_journal = MapShared(journal, PROT_READ, &mapping.journal_bytes);
  if (of_journal == MAP_FAILED) return Failed(journal, "map");
  mapping.journal = static_cast<const char*>(of_journal);
  if (const char* const wrong = mapping.tables.Open(mapping.journal, mapping.journal_bytes)) {
    return Status(Exit::Failure, journal + ": " + wrong);
  }
  mapping.tables.Remember(&mapping.memo);
  mapping.trunk = FixedOf(mapping.tables.header());
  std::memcpy(static_cast<void*>(&mapping.made), static_cast<const void*>(&header), sizeof(header));
  std::memcpy(static_cast<void*>(mapping.file), static_cast<const void*>(&header), sizeof(header));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ForkNode* const node = ::new (static_cast<void*>(mapping.nodes() + i)) ForkNode();
    node->fault = rows[i].fault;
    node->parent = rows[i].parent;
    node->first_child = rows[i].first_child;
    node->children = rows[i].children;
    node->depth = rows[i].depth;
    node->trial = rows[i].trial;
    node->control = rows[i].control;
  }
  std::uint32_t slot = 0;
  for (; slot < pools.leaves; ++slot) ::new (static_cast<void*>(mapping.slots() + slot)) ForkSlot();
  for (const std::uint32_t depth : depths) {
    for (std::uint32_t i = 0; i < pools.others; ++i, ++slot) {
      ::new (static_cast<void*>(mapping.slots() + slot)) ForkSlot();
      mapping.slots()[slot].pool = depth;
    }
  }
  return exchange;
}

ForkExchange::~ForkExchange() { unlink(path_.c_str()); }

const ForkHeader& ForkExchange::header() const noexcept { return mapping_->made; }
const ForkHeader& ForkExchange::live() const noexcept { return *mapping_->live(); }
const ForkNode& ForkExchange::node(std::uint32_t i) const noexcept { return mapping_->nodes()[i]; }
const ForkSlot& ForkExchange::slot(std::uint32_t i) const noexcept { return mapping_->slots()[i]; }

bool ForkExchange::Whole(std::uint32_t index) const {
  const auto file_part = [](const ForkHeader& of) {
    return std::string_view(reinterpret_cast<const char*>(&of), offsetof(ForkHeader, freed));
  };
  FixedPart expected = mapping_->trunk;
  if (file_part(mapping_->made) != file_part(*mapping_->live()) || !(FixedOf(mapping_->tables.header()) == expected)) return false;
  const std::uint32_t slot = node(index).slot;
  expected.record_capacity = mapping_->made.record_capacity;
  return slot < mapping_->made.slots && FixedOf(*mapping_->slot_header(slot)) == expected;
}

void ForkExchange::Follow(std::uint32_t index) {
  const ForkNode& fork = node(index);
  const bool of_trunk = fork.parent_slot == faults::kNoSlot;
  const auto [found, fresh] = accounts_.try_emplace(fork.parent_slot);
  Account& parent = found->second;
  if (fresh && of_trunk) parent.folding = std::make_unique<Folding>();
  if (fork.parent_records < parent.folded) {  // the parent's ledger is already past this fork
    accounts_.insert_or_assign(fork.slot, Account());
    return;
  }
  const Record* const records = of_trunk ? mapping_->trunk_records() : mapping_->slot_records(fork.parent_slot);
  const std::size_t more = static_cast<std::size_t>(fork.parent_records - parent.folded);
  const std::uint64_t capacity = of_trunk ? mapping_->trunk.record_capacity : header().record_capacity;
  const bool kept = fork.parent_records <= capacity && parent.folding != nullptr && parent.folding->Add({records + parent.folded, more});
  if (!kept) parent.folding.reset();
  if (kept) folded_ += more;
  parent.folded = fork.parent_records;
  Account own;
  if (kept) own.folding = std::make_unique<Folding>(*parent.folding);
  accounts_.insert_or_assign(fork.slot, std::move(own));
}

std::vector<ForkExchange::Part> ForkExchange::PartsOf(std::uint32_t index) const {
  std::vector<Part> parts;
  std::uint64_t count = mapping_->slot_header(node(index).slot)->next_record.load(std::memory_order_acquire);
  for (std::uint32_t at = index; at != 0; at = node(at).parent) {
    parts.push_back(
        {at, mapping_->slot_records(node(at).slot), static_cast<std::size_t>(std::min<std::uint64_t>(count, header().record_capacity))});
    count = node(at).parent_records;
  }
  const std::uint64_t capacity = mapping_->trunk.record_capacity;
  parts.push_back({0, mapping_->trunk_records(), static_cast<std::size_t>(std::min(count, capacity))});
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
  const std::uint32_t slot = node(index).slot;
  const std::vector<Part> parts = PartsOf(index);
  Account& account = accounts_[slot];
  std::optional<Ledger> ledger;
  const std::size_t rest = parts.back().count - std::min<std::size_t>(account.folded, parts.back().count);
  if (account.folding != nullptr) ledger = account.folding->Finish({parts.back().records + account.folded, rest});
  folded_ += ledger.has_value() ? rest : 0;
  account = Account();

  const std::shared_ptr<Image> image = Put(parts, ledger.has_value());
  const std::uint64_t total = image->header->next_record.load(std::memory_order_relaxed);
  std::memcpy(static_cast<void*>(image->header), static_cast<const void*>(mapping_->slot_header(slot)), sizeof(JournalHeader));
  image->header->next_record.store(total, std::memory_order_relaxed);
  const std::span<const Record> records(image->records, static_cast<std::size_t>(total));
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
  one.moves.store(0, std::memory_order_relaxed);
  one.state.store(faults::SlotState::Free, std::memory_order_release);
  std::atomic<std::uint32_t>& freed = mapping_->live()->freed;
  freed.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&freed), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace cuaudit::harness
