// See queue.h.  A queue's State holds all that changes; a forked child gets fresh ones, and the
// events of jobs that were pending in the parent fail there instead of staying pending for ever.
#include "queue.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include <pthread.h>

#include "machine.h"
#include "signals.h"
#include "spin.h"
#include "threadpool.h"

namespace jato {

struct DeviceQueue::State {
  std::mutex mutex;
  std::condition_variable job_came, job_done;
  std::deque<std::unique_ptr<Job>> jobs;
  bool running = false;
  Ref<Event> running_event;
  bool thread_started = false;
  int32_t cancel = 0;  // of the running job; kernels read it while others write it
  std::atomic<int64_t> depth{0};
  std::atomic<uint32_t> arrivals{0};
  std::atomic<int> submitter_cpu{-1};  // where the latest job came from
};

namespace {

constexpr int kMaxDevices = 4096;
constexpr auto kSpinTime = std::chrono::microseconds(30);
constexpr auto kPollTime = std::chrono::milliseconds(20);

struct Registry {
  std::mutex mutex;
  std::mutex submission;  // held while the jobs of a group are queued; taken after `mutex`
  std::vector<DeviceQueue*> queues;  // by index; null where none was made
  std::atomic<int> count;

  Registry() {
    const long long wanted = environment_number("JATO_NUM_CPU_DEVICES", 1);
    count.store(static_cast<int>(std::clamp<long long>(wanted, 1, kMaxDevices)));
  }
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

thread_local const DeviceQueue* queue_of_thread = nullptr;
thread_local const Job* job_of_thread = nullptr;
thread_local uint64_t order_of_thread = 0;

// Counts jobs as they are queued.
std::atomic<uint64_t> last_order{0};

std::exception_ptr make_error(ErrorKind kind, const char* message) {
  return std::make_exception_ptr(Error(kind, message));
}

bool is_raised(const int32_t& flag) { return __atomic_load_n(&flag, __ATOMIC_RELAXED) != 0; }

}  // namespace

DeviceQueue::DeviceQueue(int index) : index_(index), state_(new State) {}

DeviceQueue& DeviceQueue::get(int index) {
  if (index < 0 || index >= kMaxDevices) {
    throw Error(ErrorKind::Value, "device index: expected 0 to " + std::to_string(kMaxDevices - 1) +
                                      ", got " + std::to_string(index));
  }
  install_fork_handlers();
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  if (all.queues.size() <= static_cast<size_t>(index)) all.queues.resize(static_cast<size_t>(index) + 1);
  DeviceQueue*& queue = all.queues[static_cast<size_t>(index)];
  if (queue == nullptr) queue = new DeviceQueue(index);
  return *queue;
}

int DeviceQueue::count() noexcept { return registry().count.load(std::memory_order_relaxed); }

void DeviceQueue::set_count(int n) {
  if (n < 1 || n > kMaxDevices) {
    throw Error(ErrorKind::Value, "number of CPU devices: expected 1 to " + std::to_string(kMaxDevices) +
                                      ", got " + std::to_string(n));
  }
  registry().count.store(n, std::memory_order_relaxed);
}

void DeviceQueue::submit(std::unique_ptr<Job> job) {
  State* const state = state_;
  job->num_threads_ = thread_override();
  std::lock_guard lock(state->mutex);
  if (job->done) {
    uint64_t none = 0;  // a group has the number of its first job
    job->done->order_.compare_exchange_strong(none, last_order.fetch_add(1, std::memory_order_relaxed) + 1,
                                              std::memory_order_relaxed);
  }
  if (!state->thread_started) {
    SignalsBlocked signals_blocked;
    std::thread([this, state] { work(this, state); }).detach();
    state->thread_started = true;
  }
  state->jobs.push_back(std::move(job));
  state->depth.fetch_add(1, std::memory_order_relaxed);
  state->submitter_cpu.store(current_cpu(), std::memory_order_relaxed);
  state->arrivals.fetch_add(1, std::memory_order_release);
  state->job_came.notify_one();
}

void DeviceQueue::submit_all(std::vector<std::pair<DeviceQueue*, std::unique_ptr<Job>>> jobs) {
  std::lock_guard lock(registry().submission);
  for (auto& [queue, job] : jobs) queue->submit(std::move(job));
}

void DeviceQueue::work(DeviceQueue* queue, State* state) {
  queue_of_thread = queue;
  std::unique_lock lock(state->mutex);
  for (;;) {
    if (state->jobs.empty()) {
      const uint32_t seen = state->arrivals.load(std::memory_order_relaxed);
      lock.unlock();
      spin_until([&] { return state->arrivals.load(std::memory_order_acquire) != seen; },
                 [&] { return state->submitter_cpu.load(std::memory_order_relaxed); }, kSpinTime);
      lock.lock();
    }
    state->job_came.wait(lock, [&] { return !state->jobs.empty(); });
    std::unique_ptr<Job> job = std::move(state->jobs.front());
    state->jobs.pop_front();
    state->running = true;
    state->running_event = job->done;
    __atomic_store_n(&state->cancel, 0, __ATOMIC_RELAXED);
    lock.unlock();
    run_job(state, std::move(job));
    lock.lock();
    state->running = false;
    // Dropped without the lock: the last reference may free much.
    Ref<Event> event = std::move(state->running_event);
    state->depth.fetch_sub(1, std::memory_order_release);
    state->job_done.notify_all();
    lock.unlock();
    event.reset();
    lock.lock();
  }
}

void DeviceQueue::run_job(State* state, std::unique_ptr<Job> job) {
  std::exception_ptr error;
  try {
    for (const Ref<Event>& event : job->wait_for) {
      while (!event->wait(kPollTime)) {
        if (is_raised(state->cancel)) throw Error(ErrorKind::Cancelled, "the computation was cancelled");
      }
      event->rethrow_if_failed();
    }
    set_thread_override(job->num_threads_);
    job_of_thread = job.get();
    order_of_thread = job->done ? job->done->order_.load(std::memory_order_relaxed) : 0;
    job->run(&state->cancel);
    if (is_raised(state->cancel)) throw Error(ErrorKind::Cancelled, "the computation was cancelled");
  } catch (...) {
    error = std::current_exception();
  }
  set_thread_override(0);
  job_of_thread = nullptr;
  const Ref<Event> done = std::move(job->done);
  job.reset();
  if (!done) return;
  if (error) {
    done->fail(std::move(error));
  } else {
    done->complete();
  }
}

void DeviceQueue::cancel() {
  State* const state = state_;
  std::deque<std::unique_ptr<Job>> dropped;
  {
    std::lock_guard lock(state->mutex);
    if (state->running) __atomic_store_n(&state->cancel, 1, __ATOMIC_RELAXED);
    dropped.swap(state->jobs);
  }
  const std::exception_ptr error = make_error(
      ErrorKind::Cancelled, "the computation was cancelled before it started, together with one before it");
  for (std::unique_ptr<Job>& job : dropped) {
    const Ref<Event> done = std::move(job->done);
    job.reset();
    if (done) done->fail(error);
  }
  std::lock_guard lock(state->mutex);
  state->depth.fetch_sub(static_cast<int64_t>(dropped.size()), std::memory_order_release);
  state->job_done.notify_all();
}

void DeviceQueue::cancel_running(const Event* done) {
  State* const state = state_;
  std::lock_guard lock(state->mutex);
  if (state->running && state->running_event.get() == done)
    __atomic_store_n(&state->cancel, 1, __ATOMIC_RELAXED);
}

int64_t DeviceQueue::depth() const noexcept { return state_->depth.load(std::memory_order_acquire); }

bool DeviceQueue::wait_depth(int64_t n, std::chrono::nanoseconds timeout) {
  if (depth() <= n) return true;
  State* const state = state_;
  std::unique_lock lock(state->mutex);
  return state->job_done.wait_for(lock, timeout, [&] { return depth() <= n; });
}

bool DeviceQueue::on_queue_thread() const noexcept { return queue_of_thread == this; }

bool DeviceQueue::on_any_queue_thread() noexcept { return queue_of_thread != nullptr; }

// Waits for earlier work always end: it waits for earlier work only, and stands before this job on any queue.
bool DeviceQueue::comes_after_this(const Event& event, int device) noexcept {
  if (queue_of_thread == nullptr || event.ready()) return false;
  const bool running = job_of_thread != nullptr;
  if (running && event.order_.load(std::memory_order_relaxed) < order_of_thread) return false;
  return device < 0 || queue_of_thread->index_ == device || (running && job_of_thread->spans(device));
}

namespace {

std::vector<DeviceQueue*> all_queues() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  std::vector<DeviceQueue*> queues;
  for (DeviceQueue* queue : all.queues) {
    if (queue != nullptr) queues.push_back(queue);
  }
  return queues;
}

}  // namespace

void DeviceQueue::cancel_all() {
  for (DeviceQueue* queue : all_queues()) queue->cancel();
}

bool DeviceQueue::drain_all(std::chrono::nanoseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  bool drained = true;
  for (DeviceQueue* queue : all_queues()) {
    if (queue->on_queue_thread()) continue;
    const auto left = std::max<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now(),
                                                         std::chrono::nanoseconds(0));
    drained = queue->drain(left) && drained;
  }
  return drained;
}

void DeviceQueue::before_fork() {
  registry().mutex.lock();
  registry().submission.lock();
  for (DeviceQueue* queue : registry().queues) {
    if (queue != nullptr) queue->state_->mutex.lock();
  }
}

void DeviceQueue::after_fork_parent() {
  for (DeviceQueue* queue : registry().queues) {
    if (queue != nullptr) queue->state_->mutex.unlock();
  }
  registry().submission.unlock();
  registry().mutex.unlock();
}

void DeviceQueue::after_fork_child() {
  const std::exception_ptr error = make_error(
      ErrorKind::Runtime,
      "this result was still being computed when the process forked, and the forked process has no part in "
      "that; call block_until_ready() before forking");
  for (DeviceQueue* queue : registry().queues) {
    if (queue == nullptr) continue;
    State* const old = queue->state_;  // leaked, with its jobs: lost threads may have been inside
    for (const std::unique_ptr<Job>& job : old->jobs) {
      if (job->done) job->done->fail_without_lock(error);
    }
    if (old->running_event) old->running_event->fail_without_lock(error);
    queue->state_ = new State;
  }
  queue_of_thread = nullptr;
  job_of_thread = nullptr;
  registry().submission.unlock();
  registry().mutex.unlock();
}

void DeviceQueue::install_fork_handlers() {
  static const int installed = pthread_atfork(before_fork, after_fork_parent, after_fork_child);
  (void)installed;
}

}  // namespace jato
