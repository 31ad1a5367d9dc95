// Profile: what ran when, for tools.  A ring of fixed-size records, off unless started; when off,
// a step pays one relaxed load.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace jato {

struct ProfileRecord {
  char name[48];     // truncated, zero-terminated
  int64_t start_ns;  // steady clock
  int64_t end_ns;
  int32_t thread;  // small number, in order of first appearance
  int64_t bytes;   // the compiler's estimate of the memory traffic, 0 if unknown
};

extern std::atomic<bool> profile_enabled_flag;

inline bool profile_enabled() noexcept { return profile_enabled_flag.load(std::memory_order_relaxed); }

// Starts recording into a fresh ring that keeps the last `capacity` records.
void profile_start(size_t capacity = 65536);
// Stops, and returns the records in order of their end.
std::vector<ProfileRecord> profile_stop();
void profile_record(const char* name, int64_t start_ns, int64_t end_ns, int64_t bytes) noexcept;

inline int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace jato
