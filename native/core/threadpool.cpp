// See threadpool.h.  One mutex guards the list of jobs and all counts; ranges of a job are handed out
// by atomics of its own.
//
// A job is cut into shares, one for each thread: a thread takes the ranges of its share one after another,
// and then what is left of the others'.  So a thread that comes late or is interrupted costs the others
// one range at most, and a thread finds in its caches what it worked on last time: a matrix product whose
// threads took the next best range took 470 instead of 400 us while the two processors shared no cache.
//
// Lifetime of a job: it lives on its caller's stack.  A worker joins it under the mutex (helpers + 1)
// and leaves it under the mutex; the caller takes it off the list, so that nobody joins any more, and
// waits until no helper is left.
#include "threadpool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>

#include "errors.h"
#include "machine.h"
#include "signals.h"
#include "spin.h"

namespace jato {
namespace {

constexpr int kMaxThreads = 1024;
// Ranges per thread: a thread that is interrupted costs the others one range at most.
constexpr int64_t kRangesPerThread = 4;
constexpr auto kSpinTime = std::chrono::microseconds(40);

// Ranges of one thread; `next` is atomic (by builtins: a default std::atomic would be set to 0 each time).
struct alignas(64) Share {
  int64_t next, end;

  // Where the next range begins; `end` or more when there is none.
  int64_t take(int64_t chunk) {
    const int64_t seen = __atomic_load_n(&next, __ATOMIC_RELAXED);
    return seen >= end ? end : __atomic_fetch_add(&next, chunk, __ATOMIC_RELAXED);
  }
  void drop() { __atomic_store_n(&next, end, __ATOMIC_RELAXED); }
};

constexpr int kMostShares = 64;

struct ParallelJob {
  const RangeFn fn;
  void* const context;
  const int64_t chunk;
  const int max_helpers;
  int share_count;
  Share shares[kMostShares];
  std::atomic<bool> drained{false};  // a thread found nothing left
  std::atomic<int> helper_cpu{-1};  // where the helper that joined last was
  std::atomic<int> helpers{0};      // changes under the pool's mutex; read without it by the caller
  // Guarded by the pool's mutex:
  int joined = 0;  // helpers so far: a helper's worker number
  bool caller_sleeps = false;
  std::exception_ptr error;
  ParallelJob* previous = nullptr;
  ParallelJob* following = nullptr;

  ParallelJob(RangeFn range_fn, void* fn_context, int64_t n, int64_t range, int threads)
      : fn(range_fn),
        context(fn_context),
        chunk(range),
        max_helpers(static_cast<int>(std::min<int64_t>(threads - 1, (n - 1) / range))) {
    const int64_t ranges = (n - 1) / chunk + 1;
    share_count = std::min(max_helpers + 1, kMostShares);
    for (int64_t i = 0; i < share_count; ++i) {
      const int64_t first = ranges * i / share_count, last = ranges * (i + 1) / share_count;
      shares[i] = {first * chunk, std::min(last * chunk, n)};
    }
  }

  bool wants_helper() const { return joined < max_helpers && !drained.load(std::memory_order_relaxed); }
};

struct PoolState {
  std::mutex mutex;
  std::condition_variable work_came, helper_left;
  ParallelJob* jobs = nullptr;        // newest first
  std::atomic<uint32_t> arrivals{0};  // changes when a job comes: what idle workers spin on
  std::atomic<int> caller_cpu{-1};    // where the latest job came from
  int workers = 0;
  int busy_workers = 0;
  int callers = 0;
  int sleepers = 0;
};

std::atomic<int> process_threads{0};  // 0: not asked for yet
thread_local std::vector<int> pushed_threads;
thread_local int override_threads = 0;
thread_local bool inside = false;
thread_local int seat = 0;  // whose share this thread begins with: 0 for callers, then the pool's threads

// Replaced in the child of a fork, where the workers are gone and the old one's condition
// variables may be in any state.
std::atomic<PoolState*> current_state{nullptr};

PoolState& pool_state() {
  static const bool installed = [] {
    current_state.store(new PoolState);
    pthread_atfork([] { current_state.load()->mutex.lock(); }, [] { current_state.load()->mutex.unlock(); },
                   [] { current_state.store(new PoolState); });
    return true;
  }();
  (void)installed;
  return *current_state.load(std::memory_order_acquire);
}

void run_ranges(PoolState& pool, ParallelJob& job, int worker) {
  inside = true;
  for (int i = 0; i < job.share_count; ++i) {
    Share& share = job.shares[(seat + i) % job.share_count];
    for (int64_t begin; (begin = share.take(job.chunk)) < share.end;) {
      try {
        job.fn(job.context, begin, std::min(begin + job.chunk, share.end), worker);
      } catch (...) {
        for (int k = 0; k < job.share_count; ++k) job.shares[k].drop();
        std::lock_guard lock(pool.mutex);
        if (!job.error) job.error = std::current_exception();
      }
    }
  }
  job.drained.store(true, std::memory_order_relaxed);
  inside = false;
}

// A job that a further worker may help with now.  Mutex held.
ParallelJob* find_job_locked(PoolState& pool) {
  const int busy = pool.busy_workers + pool.callers;
  for (ParallelJob* job = pool.jobs; job != nullptr; job = job->following) {
    // A job may have asked for more threads than the process's number.
    const int allowed = std::max(process_threads.load(std::memory_order_relaxed), job->max_helpers + 1);
    if (busy < allowed && job->wants_helper()) return job;
  }
  return nullptr;
}

// The next job for a worker.  A worker that came too late for a job spins again: jobs that come so
// fast are worth it, and asleep it would be late for each of them.
ParallelJob& wait_for_job(PoolState& pool, std::unique_lock<std::mutex>& lock) {
  for (;;) {
    if (ParallelJob* const job = find_job_locked(pool)) return *job;
    const uint32_t seen = pool.arrivals.load(std::memory_order_relaxed);
    lock.unlock();
    const bool arrived =
        spin_until([&] { return pool.arrivals.load(std::memory_order_acquire) != seen; },
                   [&] { return pool.caller_cpu.load(std::memory_order_relaxed); }, kSpinTime);
    lock.lock();
    if (arrived) continue;
    if (ParallelJob* const job = find_job_locked(pool)) return *job;
    ++pool.sleepers;
    pool.work_came.wait(lock);
    --pool.sleepers;
  }
}

void worker_main(PoolState& pool, int number) {
  seat = number;
  std::unique_lock lock(pool.mutex);
  for (;;) {
    ParallelJob& job = wait_for_job(pool, lock);
    const int worker = ++job.joined;
    job.helpers.fetch_add(1, std::memory_order_relaxed);
    job.helper_cpu.store(current_cpu(), std::memory_order_relaxed);
    ++pool.busy_workers;
    lock.unlock();
    run_ranges(pool, job, worker);
    lock.lock();
    --pool.busy_workers;
    // The caller may return, and the job vanish, as soon as `helpers` is 0.
    const bool caller_sleeps = job.caller_sleeps;
    job.helpers.fetch_sub(1, std::memory_order_release);
    if (caller_sleeps) pool.helper_left.notify_all();
  }
}

// Starts workers until there are `wanted`.  Mutex held.
void start_workers_locked(PoolState& pool, int wanted) {
  if (pool.workers >= wanted) return;
  SignalsBlocked signals_blocked;
  try {
    while (pool.workers < wanted) {
      std::thread([&pool, number = pool.workers + 1] { worker_main(pool, number); }).detach();
      ++pool.workers;
    }
  } catch (const std::system_error&) {
    // No more threads to be had: fewer helpers do the same work.
  }
}

void wait_for_helpers(PoolState& pool, ParallelJob& job) {
  const auto all_left = [&] { return job.helpers.load(std::memory_order_acquire) == 0; };
  const auto helper_cpu = [&] { return job.helper_cpu.load(std::memory_order_relaxed); };
  if (!spin_until(all_left, helper_cpu, kSpinTime)) {
    std::unique_lock lock(pool.mutex);
    job.caller_sleeps = true;
    pool.helper_left.wait(lock, all_left);
  }
  // The last helper may still hold the mutex; it touches the job no more.
}

void run_parallel(int64_t n, int64_t chunk, int threads, RangeFn fn, void* context) {
  PoolState& pool = pool_state();
  ParallelJob job(fn, context, n, chunk, threads);
  int to_wake = 0;
  {
    std::lock_guard lock(pool.mutex);
    start_workers_locked(pool, threads - 1);
    ++pool.callers;
    job.following = pool.jobs;
    if (job.following != nullptr) job.following->previous = &job;
    pool.jobs = &job;
    pool.caller_cpu.store(current_cpu(), std::memory_order_relaxed);
    pool.arrivals.fetch_add(1, std::memory_order_release);
    to_wake = std::min(pool.sleepers, job.max_helpers);
  }
  for (; to_wake > 0; --to_wake) pool.work_came.notify_one();
  run_ranges(pool, job, 0);
  {
    std::lock_guard lock(pool.mutex);
    --pool.callers;
    (job.previous != nullptr ? job.previous->following : pool.jobs) = job.following;
    if (job.following != nullptr) job.following->previous = job.previous;
    // This caller's processor is free now: somebody else's job may want a helper.
    if (pool.jobs != nullptr && pool.sleepers > 0) pool.work_came.notify_one();
  }
  wait_for_helpers(pool, job);
  if (job.error) std::rethrow_exception(job.error);
}

void check_count(int n, int lowest, const char* function) {
  if (n < lowest || n > kMaxThreads) {
    throw Error(ErrorKind::Value, std::string(function) + ": expected a number of threads from " +
                                      std::to_string(lowest) + " to " + std::to_string(kMaxThreads) +
                                      ", got " + std::to_string(n));
  }
}

int process_num_threads() {
  int n = process_threads.load(std::memory_order_relaxed);
  if (n == 0) {
    n = default_num_threads();
    process_threads.store(n, std::memory_order_relaxed);
  }
  return n;
}

struct Scratch {
  void* memory = nullptr;
  size_t bytes = 0;
  ~Scratch() { std::free(memory); }
};

thread_local Scratch scratch, panels;

void* grown(Scratch& memory, size_t bytes) {
  if (bytes > memory.bytes) {
    const size_t rounded = (std::max(bytes, memory.bytes * 2) + 63) / 64 * 64;
    std::free(memory.memory);
    memory.bytes = 0;
    memory.memory = std::aligned_alloc(64, rounded);
    if (memory.memory == nullptr) throw std::bad_alloc();
    memory.bytes = rounded;
  }
  return memory.memory;
}

}  // namespace

int default_num_threads() {
  const long long wanted = environment_number("JATO_NUM_THREADS", 0);
  if (wanted > 0) return static_cast<int>(std::min<long long>(wanted, kMaxThreads));
  return std::min(available_cpus(), kMaxThreads);
}

int num_threads() { return override_threads > 0 ? override_threads : process_num_threads(); }

void set_num_threads(int n) {
  check_count(n, 0, "set_num_threads");
  process_threads.store(n > 0 ? n : default_num_threads(), std::memory_order_relaxed);
}

void push_num_threads(int n) {
  check_count(n, 1, "push_num_threads");
  pushed_threads.push_back(override_threads);
  override_threads = n;
}

void pop_num_threads() {
  if (pushed_threads.empty()) {
    throw Error(ErrorKind::Value, "pop_num_threads: no number of threads was pushed on this thread");
  }
  override_threads = pushed_threads.back();
  pushed_threads.pop_back();
}

int thread_override() { return override_threads; }
void set_thread_override(int n) { override_threads = n; }

bool in_parallel_region() { return inside; }

void parallel_for_impl(int64_t n, int64_t grain, RangeFn fn, void* context) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int threads = inside || n <= grain ? 1 : num_threads();
  if (threads == 1) {
    fn(context, 0, n, 0);
    return;
  }
  const int64_t grains = (n - 1) / grain + 1;
  const int64_t chunk = std::max<int64_t>(grains / (threads * kRangesPerThread), 1) * grain;
  run_parallel(n, chunk, threads, fn, context);
}

void parallel_for_each_impl(int64_t n, int threads, RangeFn fn, void* context) {
  if (n <= 0) return;
  if (inside || n == 1 || threads <= 1) {
    fn(context, 0, n, 0);
  } else {
    run_parallel(n, 1, threads, fn, context);
  }
}

void* thread_scratch(size_t bytes) { return grown(scratch, bytes); }
void* thread_panels(size_t bytes) { return grown(panels, bytes); }

}  // namespace jato
