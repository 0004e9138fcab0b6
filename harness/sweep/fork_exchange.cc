// SPDX-License-Identifier: MIT
#include "harness/sweep/fork_exchange.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

#include "faults/driver/call_id.h"
#include "harness/verdict/driver_owned.h"

namespace cuaudit::harness {
namespace {

using faults::ForkHeader;
using faults::ForkNode;
using faults::ForkSlot;
using faults::JournalHeader;
using faults::Record;

constexpr std::size_t kPage = 4096;
constexpr std::size_t RoundUp(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Status Failed(const std::string& path, const char* what) {
  return {Exit::Failure, path + ": cannot " + what + ": " + std::strerror(errno)};
}

void* MapShared(const std::string& path, int rights, std::size_t* bytes) {
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat facts = {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) return MAP_FAILED;
  *bytes = static_cast<std::size_t>(facts.st_size);
  return mmap(nullptr, *bytes, rights, MAP_SHARED, file.get(), 0);
}

// One journal in memory, put together from several.
struct Image {
  JournalHeader* header = nullptr;
  Record* records = nullptr;
  std::shared_ptr<const void> tables;

  explicit Image(std::size_t count) {
    void* const memory = std::malloc(RoundUp(sizeof(JournalHeader)) + count * sizeof(Record));
    if (memory == nullptr) throw std::bad_alloc();
    header = static_cast<JournalHeader*>(memory);
    records = reinterpret_cast<Record*>(static_cast<char*>(memory) + RoundUp(sizeof(JournalHeader)));
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() { std::free(header); }
};

}  // namespace

struct ForkExchange::Mapping {
  char* file = nullptr;
  std::size_t file_bytes = 0;
  const char* journal = nullptr;
  std::size_t journal_bytes = 0;
  faults::JournalView tables;

  ForkHeader* header() const { return reinterpret_cast<ForkHeader*>(file); }
  ForkNode* nodes() const { return reinterpret_cast<ForkNode*>(file + header()->nodes_offset); }
  ForkSlot* slots() const { return reinterpret_cast<ForkSlot*>(file + header()->slots_offset); }
  JournalHeader* slot_header(std::uint32_t slot) const {
    return reinterpret_cast<JournalHeader*>(file + header()->journals_offset + slot * header()->journal_bytes);
  }
  Record* slot_records(std::uint32_t slot) const {
    return reinterpret_cast<Record*>(reinterpret_cast<char*>(slot_header(slot)) + header()->records_offset);
  }
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (file != nullptr) munmap(file, file_bytes);
    if (journal != nullptr) munmap(const_cast<char*>(journal), journal_bytes);
  }
};

Result<std::unique_ptr<ForkExchange>> ForkExchange::Make(const std::string& path, const std::string& journal,
                                                         const std::vector<ForkRow>& rows, std::size_t records, const Pools& pools) {
  std::set<std::uint32_t> depths;  // at which processes fork in turn
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
    // Storage for all that the tool itself writes: a store to a page that the disk cannot hold would kill it.
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

const ForkHeader& ForkExchange::header() const noexcept { return *mapping_->header(); }
const ForkNode& ForkExchange::node(std::uint32_t i) const noexcept { return mapping_->nodes()[i]; }
const ForkSlot& ForkExchange::slot(std::uint32_t i) const noexcept { return mapping_->slots()[i]; }

Observation ForkExchange::Collect(std::uint32_t index, const Ending& ending) const {
  struct Part {
    const Record* records;
    std::size_t count;
  };
  std::vector<Part> parts;  // the last first
  const std::uint32_t own = node(index).slot;
  std::uint64_t count = mapping_->slot_header(own)->next_record.load(std::memory_order_acquire);
  std::size_t total = 0;
  for (std::uint32_t at = index; at != 0; at = node(at).parent) {
    const std::size_t kept = static_cast<std::size_t>(std::min<std::uint64_t>(count, header().record_capacity));
    parts.push_back({mapping_->slot_records(node(at).slot), kept});
    total += kept;
    count = node(at).parent_records;
  }
  const JournalHeader& first = mapping_->tables.header();
  parts.push_back({reinterpret_cast<const Record*>(mapping_->journal + first.records_offset),
                   static_cast<std::size_t>(std::min(count, first.record_capacity))});
  total += parts.back().count;

  const auto image = std::make_shared<Image>(total);
  std::memcpy(static_cast<void*>(image->header), static_cast<const void*>(mapping_->slot_header(own)), sizeof(JournalHeader));
  image->header->next_record.store(total, std::memory_order_relaxed);
  image->tables = mapping_;
  Record* to = image->records;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    std::memcpy(static_cast<void*>(to), static_cast<const void*>(part->records), part->count * sizeof(Record));
    to += part->count;
  }
  Observation seen;
  seen.path = path_;
  seen.ending = ending;
  seen.journal = faults::JournalView::Join(image->header, {image->records, total}, mapping_->tables);
  seen.keeps = image;
  seen.ledger = Fold(seen.journal.records());
  MarkDriverOwned(seen.journal, &seen.ledger);
  return seen;
}

void ForkExchange::Free(std::uint32_t slot) {
  JournalHeader* const header = mapping_->slot_header(slot);
  const std::uint64_t written = std::min<std::uint64_t>(header->next_record.load(), mapping_->header()->record_capacity);
  const std::uint64_t stored = std::min<std::uint64_t>(written, header->reserved.load());
  std::memset(static_cast<void*>(mapping_->slot_records(slot)), 0, static_cast<std::size_t>(stored) * sizeof(Record));
  ForkSlot& one = mapping_->slots()[slot];
  one.node.store(0, std::memory_order_relaxed);
  one.waiting.store(0, std::memory_order_relaxed);
  one.moves.store(0, std::memory_order_relaxed);
  one.state.store(faults::SlotState::Free, std::memory_order_release);
  std::atomic<std::uint32_t>& freed = mapping_->header()->freed;
  freed.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&freed), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace cuaudit::harness
