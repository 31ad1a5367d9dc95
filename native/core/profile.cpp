#include "profile.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace jato {

std::atomic<bool> profile_enabled_flag{false};

namespace {

struct Ring {
  std::mutex mutex;
  std::vector<ProfileRecord> records;  // fills up to `capacity`, then wraps
  size_t capacity = 0;
  uint64_t written = 0;
};

// Never destroyed: queue threads may still record while the process ends.
Ring& ring() {
  static Ring* const instance = new Ring;
  return *instance;
}

int32_t thread_number() {
  static std::atomic<int32_t> next{0};
  thread_local const int32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

void profile_start(size_t capacity) {
  Ring& target = ring();
  std::lock_guard lock(target.mutex);
  target.capacity = std::max<size_t>(capacity, 1);
  target.records.clear();
  target.records.reserve(target.capacity);
  target.written = 0;
  profile_enabled_flag.store(true, std::memory_order_relaxed);
}

std::vector<ProfileRecord> profile_stop() {
  Ring& source = ring();
  std::lock_guard lock(source.mutex);
  profile_enabled_flag.store(false, std::memory_order_relaxed);
  std::vector<ProfileRecord> records = std::move(source.records);
  source.records.clear();
  if (source.written > records.size()) {
    const auto oldest = static_cast<ptrdiff_t>(source.written % source.capacity);
    std::rotate(records.begin(), records.begin() + oldest, records.end());
  }
  source.capacity = 0;
  source.written = 0;
  return records;
}

void profile_record(const char* name, int64_t start_ns, int64_t end_ns, int64_t bytes) noexcept {
  ProfileRecord record{};
  std::strncpy(record.name, name, sizeof record.name - 1);
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  record.thread = thread_number();
  record.bytes = bytes;
  Ring& target = ring();
  std::lock_guard lock(target.mutex);
  if (target.capacity == 0) return;  // stopped meanwhile
  if (target.records.size() < target.capacity) {
    target.records.push_back(record);  // reserved: does not allocate
  } else {
    target.records[target.written % target.capacity] = record;
  }
  ++target.written;
}

}  // namespace jato
