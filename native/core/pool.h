// Memory of arrays: reference-counted blocks from a pool that keeps memory mapped and warm.
//
// A page that the operating system hands out fresh costs more (fault, zeroing) than a kernel
// needs to fill it, so freed blocks stay mapped and the most recently freed one is given out
// first.  Three sizes of blocks, in size classes with at most 12.5 % waste:
//
//   small   up to 32 KiB   header and data in one allocation; a cache per thread, no lock
//   middle  below 2 MiB    header and data in one allocation; free lists under the pool's lock
//   large   2 MiB and up   mapped, huge pages; free lists under the pool's lock
//
// All data is 64-byte aligned.  Start at Pool::allocate; Block::release is the way back.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "errors.h"
#include "ref.h"

namespace jato {

class OutOfMemory : public Error {
 public:
  OutOfMemory(size_t requested, size_t in_use, size_t limit);
  size_t requested, in_use, limit;  // bytes
};

class Pool;

class Block {
 public:
  using Deleter = void (*)(void* context);

  // A block around memory of somebody else (a NumPy array, a DLPack capsule).  `deleter(context)`
  // runs once, on whichever thread lets go of the last reference; it must not throw.
  static Ref<Block> foreign(void* data, size_t capacity, Deleter deleter, void* context);

  void* data() const noexcept { return data_; }
  size_t capacity() const noexcept { return capacity_; }
  bool pooled() const noexcept { return kind_ != Kind::Foreign; }
  // True when the caller holds the only reference.  Whoever lets others look at the data (an
  // exported buffer, a view) must hold a reference for as long, or donation would overwrite it.
  bool exclusive() const noexcept { return references_.load(std::memory_order_acquire) == 1; }
  int32_t references() const noexcept { return references_.load(std::memory_order_acquire); }

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    // The sole holder needs no locked instruction: nobody else can be changing the count.
    if (references_.load(std::memory_order_acquire) == 1 ||
        references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy();
    }
  }

 private:
  friend class Pool;
  enum class Kind : uint8_t { Small, Middle, Large, Foreign };

  void destroy() noexcept;

  void* data_ = nullptr;
  size_t capacity_ = 0;
  std::atomic<int32_t> references_{1};
  uint16_t size_class_ = 0;
  Kind kind_ = Kind::Small;
  union {
    Block* next_ = nullptr;  // pooled and free: the next block of the free list
    Deleter deleter_;        // foreign
  };
  union {
    void* context_ = nullptr;  // foreign
    void* mapping_;            // large: start of the mapping
  };
  union {
    size_t mapping_bytes_ = 0;  // large, in use or free
  };
  uint64_t freed_at_ = 0;  // a tick of the pool's clock: which cached block is the oldest
};

struct PoolStats {
  size_t in_use;         // bytes of blocks that somebody holds
  size_t cached;         // bytes of freed blocks kept for reuse
  size_t peak;           // highest in_use (thread caches count as in use here)
  size_t limit;          // bytes that in_use may reach
  uint64_t allocations;  // calls of allocate
  uint64_t reuses;       // of these, served from freed blocks
};

// The pool of the process.  Safe from any thread and after fork.
class Pool {
 public:
  // A block of at least `bytes` bytes (0 is valid).  Its contents are undefined.
  // Throws OutOfMemory, after giving cached memory back to the system, if that does not help.
  static Ref<Block> allocate(size_t bytes);

  static PoolStats stats();
  static void reset_peak();
  // Gives all cached memory of the pool and of the calling thread's cache back to the system;
  // returns the number of bytes.
  static size_t trim();
  // 0: what the machine (or its cgroup) has.  Initially JATO_MEMORY_LIMIT (bytes; K, M, G, T suffixes).
  static void set_limit(size_t bytes);
  // The capacity that a request is rounded up to.
  static size_t rounded(size_t bytes);

 private:
  friend class Block;
  struct Central;
  struct ThreadCache;
  static void give_back(Block* block) noexcept;
  static Block* allocate_slow(size_t bytes, unsigned size_class);
  static ThreadCache* thread_cache() noexcept;
  static Central& central();
};

}  // namespace jato
