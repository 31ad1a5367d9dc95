#include "deadline.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "signals.h"

namespace jato {

namespace {

constexpr int kSlots = 64;  // threads that may have a deadline; others get one that is over at once
constexpr auto kTick = std::chrono::microseconds(500);
constexpr int kIdleTicks = 20;
const volatile int32_t kOver = 1;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct alignas(64) WatchSlot {
  std::atomic<int64_t> due{0};  // 0: no deadline
  std::atomic<uint32_t> uses{0};
  std::atomic<bool> taken{false};
  int32_t flag = 0;  // accessed atomically; kernels read it as a plain volatile
};

struct Watch {
  std::array<WatchSlot, kSlots> slots;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<bool> asleep{true};
  bool started = false;
};

std::atomic<Watch*> current_watch{nullptr};

// The child of a fork has no such thread: it starts anew.
Watch& watch() {
  static const bool installed = [] {
    current_watch.store(new Watch);
    pthread_atfork([] { current_watch.load()->mutex.lock(); }, [] { current_watch.load()->mutex.unlock(); },
                   [] { current_watch.store(new Watch); });
    return true;
  }();
  (void)installed;
  return *current_watch.load(std::memory_order_acquire);
}

// One look at all deadlines; whether there is or was one since the last look.
bool look(Watch& watch, uint64_t& seen) {
  const int64_t now = now_ns();
  uint64_t uses = 0;
  bool any = false;
  for (WatchSlot& slot : watch.slots) {
    const int64_t due = slot.due.load();
    uses += slot.uses.load(std::memory_order_relaxed);
    any |= due != 0;
    // A deadline that ends just now may leave the flag up for the next one, which clears it first.
    if (due != 0 && now >= due) __atomic_store_n(&slot.flag, 1, __ATOMIC_RELAXED);
  }
  any |= uses != seen;
  seen = uses;
  return any;
}

void keep_watch(Watch* watch) {
  uint64_t seen = 0;
  for (;;) {
    for (int idle = 0; idle < kIdleTicks;) {
      std::this_thread::sleep_for(kTick);
      idle = look(*watch, seen) ? 0 : idle + 1;
    }
    std::unique_lock<std::mutex> lock(watch->mutex);
    watch->asleep.store(true);
    if (look(*watch, seen)) {  // set before it could know that nobody watches
      watch->asleep.store(false);
      continue;
    }
    watch->wake.wait(lock, [&] { return !watch->asleep.load(); });
  }
}

void wake_up(Watch& watch) {
  std::lock_guard<std::mutex> lock(watch.mutex);
  watch.asleep.store(false);
  if (!watch.started) {
    watch.started = true;
    SignalsBlocked blocked;
    std::thread(keep_watch, &watch).detach();
  }
  watch.wake.notify_one();
}

// The slot of this thread in the current watch, taken on first use and given back when it ends.
struct OwnSlot {
  Watch* owner = nullptr;
  WatchSlot* slot = nullptr;

  WatchSlot* get(Watch& watch) {
    if (owner == &watch && slot) return slot;
    owner = &watch;
    slot = nullptr;
    for (WatchSlot& candidate : watch.slots) {
      bool free = false;
      if (candidate.taken.compare_exchange_strong(free, true)) return slot = &candidate;
    }
    return nullptr;
  }
  ~OwnSlot() {
    if (slot && owner == current_watch.load()) slot->taken.store(false);
  }
};

thread_local OwnSlot own_slot;

}  // namespace

Deadline::Deadline(std::chrono::nanoseconds budget) : flag_(&kOver) {
  Watch& state = watch();
  WatchSlot* slot = own_slot.get(state);
  if (!slot) return;
  __atomic_store_n(&slot->flag, 0, __ATOMIC_RELAXED);
  flag_ = &slot->flag;
  slot->uses.fetch_add(1, std::memory_order_relaxed);
  slot->due.store(now_ns() + budget.count());
  if (state.asleep.load()) wake_up(state);
}

Deadline::~Deadline() {
  if (flag_ != &kOver) own_slot.slot->due.store(0, std::memory_order_release);
}

}  // namespace jato
