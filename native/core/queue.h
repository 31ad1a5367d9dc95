// Device queues: heavy work runs in order on one thread per logical device, away from the caller.
//
// A Job carries everything its run needs (references to blocks, the executable) and the event
// that its results wait for.  The queue completes the event when run() returns and fails it with
// the exception that run() throws.  Queues live for ever; shrinking their number only hides some.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "event.h"
#include "ref.h"

namespace jato {

class Job {
 public:
  virtual ~Job() = default;
  // Runs on the queue's thread.  `cancel` becomes nonzero when the job shall stop early.
  virtual void run(const volatile int32_t* cancel) = 0;
  // Does it wait, while it runs, for a job that was queued together with it on this device?
  virtual bool spans(int device) const noexcept {
    (void)device;
    return false;
  }

  Ref<Event> done;                   // null: nobody waits
  std::vector<Ref<Event>> wait_for;  // results of other devices; one that failed fails this job

 private:
  friend class DeviceQueue;
  int num_threads_ = 0;  // the submitting thread's override
};

class DeviceQueue {
 public:
  // The queue of logical device `index`; made on first use, never destroyed.
  static DeviceQueue& get(int index);
  static int count() noexcept;
  // How many logical devices there are (JATO_NUM_CPU_DEVICES initially, else 1).
  static void set_count(int n);

  int index() const noexcept { return index_; }

  // Appends a job.  The job is destroyed on the queue's thread, before its event completes, so that
  // references it held are gone when a waiter goes on.
  void submit(std::unique_ptr<Job> job);
  // Appends jobs that wait for each other while they run, one to each queue: no other such group comes
  // between them.  If a job cannot be queued, those left are destroyed and the error is thrown.
  static void submit_all(std::vector<std::pair<DeviceQueue*, std::unique_ptr<Job>>> jobs);
  // Raises the cancel flag of the running job and fails the queued ones with Error(Cancelled).
  // Jobs submitted later run normally.
  void cancel();
  // Raises the cancel flag of the running job if this is its event.
  void cancel_running(const Event* done);
  // Jobs queued or running.
  int64_t depth() const noexcept;
  // Waits until depth() <= n; returns whether that is so.  A caller far ahead of its device should
  // do this before it queues more, because the results of queued jobs take memory already.
  bool wait_depth(int64_t n, std::chrono::nanoseconds timeout);
  bool drain(std::chrono::nanoseconds timeout) { return wait_depth(0, timeout); }
  // True on this queue's own thread (waiting for its events there would never end).
  bool on_queue_thread() const noexcept;
  static bool on_any_queue_thread() noexcept;
  // Would a wait for this event, of work on `device` (negative: on several), never end, because that work
  // comes after the job that this thread runs?
  static bool comes_after_this(const Event& event, int device) noexcept;

  static void cancel_all();
  // To be called before the interpreter goes away, and before fork (a job that is pending in the
  // parent fails in the child).
  static bool drain_all(std::chrono::nanoseconds timeout);

  struct State;  // queue.cpp

 private:
  explicit DeviceQueue(int index);
  static void before_fork();
  static void after_fork_parent();
  static void after_fork_child();
  static void install_fork_handlers();
  static void work(DeviceQueue* queue, State* state);
  static void run_job(State* state, std::unique_ptr<Job> job);

  int index_;
  State* state_;  // replaced after fork
};

}  // namespace jato
