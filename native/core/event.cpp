#include "event.h"

#include "spin.h"

namespace jato {

namespace {
// Spinning longer would take a processor away from the workers that make the result.
constexpr auto kSpinTime = std::chrono::microseconds(5);
}  // namespace

void Event::complete() noexcept {
  {
    std::lock_guard lock(mutex_);
    if (state_.load(std::memory_order_relaxed) != State::Pending || --parts_ > 0) return;
    state_.store(State::Done, std::memory_order_release);
    // Under the lock, because a waiter that sees the state may drop the last reference.
    changed_.notify_all();
  }
}

void Event::fail(std::exception_ptr error) noexcept {
  std::lock_guard lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != State::Pending) return;
  error_ = std::move(error);
  state_.store(State::Failed, std::memory_order_release);
  changed_.notify_all();
}

void Event::fail_without_lock(std::exception_ptr error) noexcept {
  if (state_.load(std::memory_order_relaxed) != State::Pending) return;
  error_ = std::move(error);
  state_.store(State::Failed, std::memory_order_release);
}

bool Event::wait(std::chrono::nanoseconds timeout) noexcept {
  if (spin_until([this] { return ready(); }, [] { return -1; }, kSpinTime)) return true;
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return ready(); });
}

void Event::wait() noexcept {
  while (!wait(std::chrono::hours(1))) {
  }
}

std::exception_ptr Event::error() const noexcept { return failed() ? error_ : nullptr; }

void Event::rethrow_if_failed() const {
  if (failed()) std::rethrow_exception(error_);
}

ErrorKind Event::error_kind() const {
  try {
    rethrow_if_failed();
  } catch (const Error& error) {
    return error.kind();
  } catch (const std::bad_alloc&) {
    return ErrorKind::OutOfMemory;
  } catch (...) {
  }
  return ErrorKind::Runtime;
}

std::string Event::error_message() const {
  try {
    rethrow_if_failed();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown error";
  }
  return {};
}

}  // namespace jato
