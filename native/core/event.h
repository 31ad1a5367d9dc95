// Event: whether a result is there yet, shared by the arrays that wait for it and the jobs that
// make it.  Pending -> done (all parts completed) or failed (any part failed; the first error
// stays).  A failed event keeps its exception and throws it at every use.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>

#include "errors.h"
#include "ref.h"

namespace jato {

class Event {
 public:
  // `parts`: how many times complete() must be called (a result written by several devices).
  static Ref<Event> create(int parts = 1) { return Ref<Event>::adopt(new Event(parts)); }

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // Done or failed.
  bool ready() const noexcept { return state_.load(std::memory_order_acquire) != State::Pending; }
  bool failed() const noexcept { return state_.load(std::memory_order_acquire) == State::Failed; }

  void complete() noexcept;
  void fail(std::exception_ptr error) noexcept;

  // Waits until ready or until the time is over; returns ready().  Does not throw the error.
  bool wait(std::chrono::nanoseconds timeout) noexcept;
  void wait() noexcept;

  // The exception of a failed event, null otherwise.
  std::exception_ptr error() const noexcept;
  void rethrow_if_failed() const;
  ErrorKind error_kind() const;
  std::string error_message() const;

 private:
  friend class DeviceQueue;
  enum class State : uint8_t { Pending, Done, Failed };

  explicit Event(int parts) : parts_(parts) {
    if (parts <= 0) state_.store(State::Done, std::memory_order_relaxed);
  }
  ~Event() = default;
  // In the child of a fork, where nobody else runs and a lost thread may hold the mutex.
  void fail_without_lock(std::exception_ptr error) noexcept;

  std::atomic<int32_t> references_{1};
  std::atomic<State> state_{State::Pending};
  std::atomic<uint64_t> order_{0};  // of the job that makes it, among all that were ever queued; set by the queue
  int parts_;                 // guarded by mutex_
  std::exception_ptr error_;  // written before state_ becomes Failed, never after
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace jato
