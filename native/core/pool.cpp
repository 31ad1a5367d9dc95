// See pool.h.  Bytes are accounted for by the central pool; what sits in the caches of threads counts as
// in use there and is subtracted for statistics.
#include "pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>

#include "machine.h"

namespace jato {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHeader = 64;
constexpr size_t kSmallLimit = 32 << 10;
constexpr size_t kLargeLimit = 2 << 20;
constexpr size_t kHugePage = 2 << 20;
constexpr size_t kPage = 4096;
// A thread keeps at most this many bytes, and at most this many blocks, of one class.
constexpr size_t kThreadClassBytes = 64 << 10;
constexpr uint32_t kThreadClassBlocks = 256;  // a call with 100 results stays in the cache

static_assert(sizeof(Block) <= kHeader);

// Classes: multiples of 64 up to 512, then eight steps per power of two.  Class 0 is 64 bytes.
constexpr unsigned class_of(size_t bytes) {
  if (bytes <= 512) return bytes == 0 ? 0 : static_cast<unsigned>((bytes - 1) / 64);
  const unsigned power = std::bit_width(bytes - 1) - 1;  // 2^power <= bytes - 1
  const unsigned eighth = static_cast<unsigned>((bytes - 1) >> (power - 3)) - 8;
  return 8 + (power - 9) * 8 + eighth;
}

constexpr size_t class_bytes(unsigned size_class) {
  if (size_class < 8) return 64 * (size_class + 1);
  const unsigned power = 9 + (size_class - 8) / 8;
  return size_t{9 + (size_class - 8) % 8} << (power - 3);
}

constexpr size_t kLargestRequest = size_t{1} << 56;
constexpr unsigned kNumClasses = class_of(kLargestRequest) + 1;
constexpr unsigned kNumSmallClasses = class_of(kSmallLimit) + 1;

static_assert(class_bytes(class_of(1)) == 64 && class_bytes(class_of(512)) == 512);
static_assert(class_bytes(class_of(513)) == 576 && class_bytes(class_of(1024)) == 1024);
static_assert(class_bytes(class_of(1025)) == 1152 && class_bytes(class_of(64 << 20)) == 64 << 20);
static_assert(class_bytes(kNumSmallClasses - 1) == kSmallLimit);

constexpr uint32_t thread_blocks(unsigned size_class) {
  return std::clamp<uint32_t>(static_cast<uint32_t>(kThreadClassBytes / class_bytes(size_class)), 2,
                              kThreadClassBlocks);
}

std::string in_words(size_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 6) value /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

}  // namespace

OutOfMemory::OutOfMemory(size_t requested_bytes, size_t bytes_in_use, size_t limit_bytes)
    : Error(ErrorKind::OutOfMemory,
            "out of memory: " + in_words(requested_bytes) + " requested, " + in_words(bytes_in_use) +
                " in use, the limit is " + in_words(limit_bytes) +
                "; delete arrays that are no longer needed, or raise JATO_MEMORY_LIMIT if it is set"),
      requested(requested_bytes),
      in_use(bytes_in_use),
      limit(limit_bytes) {}

// Free small blocks of one thread.  Counters are written by their thread only, read by stats().
struct Pool::ThreadCache {
  struct List {
    Block* first = nullptr;
    uint32_t count = 0;
  };
  List lists[kNumSmallClasses];
  std::atomic<size_t> cached{0};
  std::atomic<uint64_t> allocations{0}, reuses{0};
  ThreadCache* next = nullptr;  // list of all caches, guarded by the central mutex
  ThreadCache* previous = nullptr;

  ThreadCache();
  ~ThreadCache();
  void add_cached(ptrdiff_t bytes) {
    cached.store(cached.load(std::memory_order_relaxed) + static_cast<size_t>(bytes),
                 std::memory_order_relaxed);
  }
  static void count_one(std::atomic<uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

struct Pool::Central {
  std::mutex mutex;
  // Free blocks of each class; the last one was freed last.
  std::vector<Block*> free[kNumClasses];
  ThreadCache* threads = nullptr;
  uint64_t clock = 0;
  size_t in_use = 0;  // includes the caches of threads
  size_t cached = 0;
  size_t peak = 0;
  size_t limit = 0;
  size_t largest_class_used = 0;
  unsigned next_color = 0;
  uint64_t allocations = 0, reuses = 0;  // not counted by a thread cache, or by one that is gone

  Central() {
    limit = configured_limit(static_cast<size_t>(environment_number("JATO_MEMORY_LIMIT", 0, true)));
  }

  static size_t configured_limit(size_t bytes) { return bytes != 0 ? bytes : available_memory(); }

  // --- all below: mutex held -------------------------------------------------------------------

  Block* pop_locked(unsigned size_class) {
    auto& list = free[size_class];
    if (list.empty()) return nullptr;
    Block* block = list.back();
    list.pop_back();
    cached -= block->capacity();
    add_in_use_locked(block->capacity());
    return block;
  }

  void add_in_use_locked(size_t bytes) {
    in_use += bytes;
    peak = std::max(peak, in_use);
  }

  void push_locked(Block* block) {
    block->freed_at_ = ++clock;
    largest_class_used = std::max<size_t>(largest_class_used, block->size_class_);
    in_use -= block->capacity();
    try {
      free[block->size_class_].push_back(block);
    } catch (const std::bad_alloc&) {
      destroy_memory(block);
      return;
    }
    cached += block->capacity();
    if (cached > limit / 2) trim_locked(limit / 2);
  }

  // Unmaps the blocks that were freed longest ago until at most `target` bytes are cached.
  size_t trim_locked(size_t target) {
    const size_t before = cached;
    if (target == 0) {
      for (auto& list : free) {
        for (Block* block : list) unmap_locked(block);
        list.clear();
        list.shrink_to_fit();
      }
      return before;
    }
    while (cached > target) {
      std::vector<Block*>* oldest = nullptr;
      for (size_t c = 0; c <= largest_class_used; ++c) {
        if (!free[c].empty() &&
            (oldest == nullptr || free[c].front()->freed_at_ < oldest->front()->freed_at_)) {
          oldest = &free[c];
        }
      }
      if (oldest == nullptr) break;
      unmap_locked(oldest->front());
      oldest->erase(oldest->begin());
    }
    return before - cached;
  }

  void unmap_locked(Block* block) {
    cached -= block->capacity();
    destroy_memory(block);
  }

  void check_limit_locked(size_t bytes, size_t requested) const {
    if (in_use > limit || bytes > limit - in_use) throw OutOfMemory(requested, in_use, limit);
  }

  static void destroy_memory(Block* block) {
    if (block->kind_ == Block::Kind::Large) {
      munmap(block->mapping_, block->mapping_bytes_);
      delete block;
    } else {
      block->~Block();
      std::free(block);
    }
  }

  // Null when the system has no memory.
  Block* create(unsigned size_class, unsigned color) {
    const size_t capacity = class_bytes(size_class);
    if (capacity >= kLargeLimit) return create_large(size_class, capacity, color);
    void* memory = std::aligned_alloc(kAlignment, kHeader + capacity);
    if (memory == nullptr) return nullptr;
    Block* block = new (memory) Block;
    block->data_ = static_cast<char*>(memory) + kHeader;
    block->capacity_ = capacity;
    block->size_class_ = static_cast<uint16_t>(size_class);
    block->kind_ = capacity <= kSmallLimit ? Block::Kind::Small : Block::Kind::Middle;
    return block;
  }

  // Data of large blocks starts at one of eight offsets in its page: a kernel that walks through a
  // dozen arrays in step would otherwise find all of them in the same cache set.
  static Block* create_large(unsigned size_class, size_t capacity, unsigned color) {
    const size_t mapped = (capacity + kPage + kPage - 1) / kPage * kPage;
    void* start =
        mmap(nullptr, mapped + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return nullptr;
    // Keep the part that begins at a huge page.
    char* const first = static_cast<char*>(start);
    const auto address = reinterpret_cast<uintptr_t>(first);
    const size_t before = (kHugePage - address % kHugePage) % kHugePage;
    if (before != 0) munmap(first, before);
    if (before != kHugePage) munmap(first + before + mapped, kHugePage - before);
    char* const base = first + before;
#if defined(MADV_HUGEPAGE)
    madvise(base, mapped, MADV_HUGEPAGE);  // a failure only costs speed
#endif
    Block* block = new (std::nothrow) Block;
    if (block == nullptr) {
      munmap(base, mapped);
      return nullptr;
    }
    block->data_ = base + (color % 8) * (kPage / 8);
    block->capacity_ = capacity;
    block->size_class_ = static_cast<uint16_t>(size_class);
    block->kind_ = Block::Kind::Large;
    block->mapping_ = base;
    block->mapping_bytes_ = mapped;
    return block;
  }
};

namespace {

// The pointer is separate from its owner because a trivial thread-local needs no check for
// initialisation.  Null before first use and after the thread's destructors ran.
#if defined(__GLIBC__)
// A fixed offset from the thread register instead of a call: the module is loaded late, but glibc
// keeps room for a few such words.
__attribute__((tls_model("initial-exec")))
#endif
thread_local void* thread_cache_pointer = nullptr;
thread_local bool thread_is_ending = false;

}  // namespace

// Never destroyed: blocks may be let go of by static destructors of other libraries.
Pool::Central& Pool::central() {
  static Central* const pool = [] {
    static Central* created = new Central;
    pthread_atfork([] { created->mutex.lock(); }, [] { created->mutex.unlock(); },
                   [] {
                     // The caches of other threads lie in their memory, which is gone in a child.
                     auto* const own = static_cast<ThreadCache*>(thread_cache_pointer);
                     created->threads = own;
                     if (own != nullptr) own->next = own->previous = nullptr;
                     created->mutex.unlock();
                   });
    return created;
  }();
  return *pool;
}

Pool::ThreadCache::ThreadCache() {
  Central& pool = central();
  std::lock_guard lock(pool.mutex);
  next = pool.threads;
  if (next != nullptr) next->previous = this;
  pool.threads = this;
}

Pool::ThreadCache::~ThreadCache() {
  Central& pool = central();
  std::lock_guard lock(pool.mutex);
  for (List& list : lists) {
    while (list.first != nullptr) {
      Block* block = list.first;
      list.first = block->next_;
      pool.push_locked(block);
    }
  }
  pool.allocations += allocations.load(std::memory_order_relaxed);
  pool.reuses += reuses.load(std::memory_order_relaxed);
  (previous != nullptr ? previous->next : pool.threads) = next;
  if (next != nullptr) next->previous = previous;
}

Pool::ThreadCache* Pool::thread_cache() noexcept {
  if (thread_cache_pointer != nullptr) return static_cast<ThreadCache*>(thread_cache_pointer);
  if (thread_is_ending) return nullptr;
  struct Owner {
    ThreadCache cache;
    ~Owner() {
      thread_cache_pointer = nullptr;
      thread_is_ending = true;
    }
  };
  thread_local Owner owner;
  thread_cache_pointer = &owner.cache;
  return &owner.cache;
}

Ref<Block> Pool::allocate(size_t bytes) {
  if (bytes <= kSmallLimit) {
    const unsigned size_class = class_of(bytes);
    ThreadCache* const cache = thread_cache();
    if (cache != nullptr) {
      ThreadCache::count_one(cache->allocations);
      ThreadCache::List& list = cache->lists[size_class];
      if (Block* const block = list.first) {
        list.first = block->next_;
        --list.count;
        cache->add_cached(-static_cast<ptrdiff_t>(block->capacity_));
        ThreadCache::count_one(cache->reuses);
        block->references_.store(1, std::memory_order_relaxed);
        return Ref<Block>::adopt(block);
      }
    }
    return Ref<Block>::adopt(allocate_slow(bytes, size_class));
  }
  if (bytes > kLargestRequest) {
    const PoolStats now = stats();
    throw OutOfMemory(bytes, now.in_use, now.limit);
  }
  return Ref<Block>::adopt(allocate_slow(bytes, class_of(bytes)));
}

Block* Pool::allocate_slow(size_t bytes, unsigned size_class) {
  Central& pool = central();
  const size_t capacity = class_bytes(size_class);
  unsigned color = 0;
  {
    std::lock_guard lock(pool.mutex);
    const bool counted = capacity <= kSmallLimit && thread_cache_pointer != nullptr;
    if (!counted) ++pool.allocations;
    pool.check_limit_locked(capacity, bytes);
    if (Block* block = pool.pop_locked(size_class)) {
      ++pool.reuses;
      block->references_.store(1, std::memory_order_relaxed);
      return block;
    }
    // Cached memory of other classes gives way to what is needed now.
    const size_t room = pool.limit - pool.in_use - capacity;
    if (pool.cached > room) pool.trim_locked(room);
    pool.add_in_use_locked(capacity);
    color = pool.next_color++;
  }
  // Mapping takes microseconds: not under the lock.
  Block* block = pool.create(size_class, color);
  if (block == nullptr) {
    trim();
    block = pool.create(size_class, color);
  }
  if (block == nullptr) {
    std::lock_guard lock(pool.mutex);
    pool.in_use -= capacity;
    throw OutOfMemory(bytes, pool.in_use, pool.limit);
  }
  return block;
}

void Pool::give_back(Block* block) noexcept {
  ThreadCache* const cache = block->kind_ == Block::Kind::Small ? thread_cache() : nullptr;
  if (cache == nullptr) {
    Central& pool = central();
    std::lock_guard lock(pool.mutex);
    pool.push_locked(block);
    return;
  }
  ThreadCache::List& list = cache->lists[block->size_class_];
  block->next_ = list.first;
  list.first = block;
  ++list.count;
  cache->add_cached(static_cast<ptrdiff_t>(block->capacity_));
  if (list.count <= thread_blocks(block->size_class_)) return;
  // Half of a full list goes to the central pool, the colder half.
  const uint32_t keep = list.count / 2;
  Block* last_kept = list.first;
  for (uint32_t i = 1; i < keep; ++i) last_kept = last_kept->next_;
  Block* rest = last_kept->next_;
  last_kept->next_ = nullptr;
  cache->add_cached(-static_cast<ptrdiff_t>((list.count - keep) * block->capacity_));
  list.count = keep;
  Central& pool = central();
  std::lock_guard lock(pool.mutex);
  while (rest != nullptr) {
    Block* const next = rest->next_;
    pool.push_locked(rest);
    rest = next;
  }
}

Ref<Block> Block::foreign(void* data, size_t capacity, Deleter deleter, void* context) {
  Block* block = new Block;
  block->data_ = data;
  block->capacity_ = capacity;
  block->kind_ = Kind::Foreign;
  block->deleter_ = deleter;
  block->context_ = context;
  return Ref<Block>::adopt(block);
}

void Block::destroy() noexcept {
  if (kind_ != Kind::Foreign) {
    Pool::give_back(this);
    return;
  }
  const Deleter deleter = deleter_;
  void* const context = context_;
  delete this;
  if (deleter != nullptr) deleter(context);
}

PoolStats Pool::stats() {
  Central& pool = central();
  std::lock_guard lock(pool.mutex);
  PoolStats stats{pool.in_use, pool.cached, pool.peak, pool.limit, pool.allocations, pool.reuses};
  for (const ThreadCache* cache = pool.threads; cache != nullptr; cache = cache->next) {
    const size_t cached = cache->cached.load(std::memory_order_relaxed);
    stats.in_use -= std::min(cached, stats.in_use);
    stats.cached += cached;
    stats.allocations += cache->allocations.load(std::memory_order_relaxed);
    stats.reuses += cache->reuses.load(std::memory_order_relaxed);
  }
  return stats;
}

void Pool::reset_peak() {
  Central& pool = central();
  std::lock_guard lock(pool.mutex);
  pool.peak = pool.in_use;
}

size_t Pool::trim() {
  Central& pool = central();
  ThreadCache* const cache = thread_cache();
  std::lock_guard lock(pool.mutex);
  if (cache != nullptr) {
    for (ThreadCache::List& list : cache->lists) {
      while (list.first != nullptr) {
        Block* block = list.first;
        list.first = block->next_;
        pool.push_locked(block);
      }
      list.count = 0;
    }
    cache->cached.store(0, std::memory_order_relaxed);
  }
  return pool.trim_locked(0);
}

void Pool::set_limit(size_t bytes) {
  Central& pool = central();
  const size_t limit = Central::configured_limit(bytes);
  std::lock_guard lock(pool.mutex);
  pool.limit = limit;
  if (pool.cached > limit / 2) pool.trim_locked(limit / 2);
}

size_t Pool::rounded(size_t bytes) { return class_bytes(class_of(bytes)); }

}  // namespace jato
