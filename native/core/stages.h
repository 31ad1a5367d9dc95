// A program spread over devices, in stages.
//
// The parts of a local stage run on the queues of their devices, apart from each other; a whole stage is one
// program over what all of them made, where they meet.  Arguments, values between stages and results are
// slots of shared memory; a part reads and writes places in them.
//
//   StagedProgram   the stages, checked once
//   StagedRun       one call: memory of the slots, who has arrived where, the error that ends all of it
//
// Each device gets one job for a call.  The job runs the device's parts; at a whole stage it arrives, and the
// last one to arrive runs it while the others wait.  The jobs of a call are queued together
// (DeviceQueue::submit_all), so that any two calls have the same order on all queues they share and no two
// wait for each other.  Start at StagedRun::run_device.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "event.h"
#include "executable.h"
#include "queue.h"
#include "ref.h"

namespace jato {

// A place in the memory of a slot.
struct StageOperand {
  int32_t slot;
  int64_t offset;  // bytes
};

struct StagePart {
  int device;  // kAllDevices: the one part of a whole stage
  Ref<Executable> executable;
  std::vector<StageOperand> inputs, outputs;
};

inline constexpr int kAllDevices = -1;

struct Stage {
  std::vector<StagePart> parts;
  bool whole = false;
  bool joins = false;  // whole: it reads what local parts wrote, so that all devices must have arrived
};

// Slots are numbered: arguments first, then values between stages, then results.  A local part may read what
// its own device or a whole stage wrote.
class StagedProgram {
 public:
  // `bytes`: of the slots that are no arguments.  A mistake is an Error(Value).
  StagedProgram(int num_inputs, std::vector<size_t> bytes, int num_results, std::vector<Stage> stages);

  int num_inputs() const noexcept { return num_inputs_; }
  int num_results() const noexcept { return num_results_; }
  int num_slots() const noexcept { return num_inputs_ + static_cast<int>(bytes_.size()); }
  size_t bytes(int slot) const { return bytes_[static_cast<size_t>(slot - num_inputs_)]; }
  bool is_result(int slot) const noexcept { return slot >= num_slots() - num_results_; }
  const std::vector<Stage>& stages() const noexcept { return stages_; }
  const std::vector<int>& devices() const noexcept { return devices_; }
  const std::vector<int>& uses() const noexcept { return uses_; }  // of each slot, by all operands
  // Does a device that has arrived at this whole stage wait for it?  Not at the last one: nothing is left
  // to do there, unless callbacks must come before those of the next call.
  bool awaited(size_t stage) const {
    return stage + 1 < stages_.size() || stages_[stage].parts[0].executable->has_host_steps();
  }
  // Do devices wait for each other anywhere?
  bool any_awaited() const;
  // Of all parts, for one thread.
  double cost_ns() const noexcept { return cost_ns_; }
  bool unbounded() const noexcept { return unbounded_; }
  // As of an Executable: may all of it be tried on the calling thread, and started again elsewhere?
  bool may_be_tried() const noexcept {
    return restartable_ && failed_trials_.load(std::memory_order_relaxed) < kMostTrials;
  }
  void note_trial(bool in_time) const noexcept {
    failed_trials_.store(in_time ? 0 : failed_trials_.load(std::memory_order_relaxed) + 1,
                         std::memory_order_relaxed);
  }

 private:
  void check_part(const StagePart& part, const std::vector<bool>& written) const;

  int num_inputs_;
  std::vector<size_t> bytes_;
  int num_results_;
  std::vector<Stage> stages_;
  std::vector<int> devices_;
  std::vector<int> uses_;
  double cost_ns_ = 0;
  bool unbounded_ = false;
  bool restartable_ = true;
  mutable std::atomic<int> failed_trials_{0};
};

class StagedRun {
 public:
  // `done`: completed by the jobs, one part each.
  StagedRun(std::shared_ptr<const StagedProgram> program, Ref<Event> done);
  virtual ~StagedRun();
  StagedRun(const StagedRun&) = delete;

  std::vector<Ref<Event>> wait_for;  // results of earlier work that are arguments

  // Queues the jobs.
  static void submit(const std::shared_ptr<StagedRun>& run);
  // Runs everything on this thread.  An Error(Cancelled) when the flag is raised.
  void run_here(const volatile int32_t* cancel = &kNeverCancelled);
  // Ends the call: the results have failed, and what still runs for it is cancelled.  The first error stays.
  void fail(std::exception_ptr error) noexcept;

 protected:
  // The arguments; each block carries a reference that the run takes.  Called once, when `wait_for` is over.
  virtual void take_inputs(std::vector<Buffer>& inputs) = 0;
  // The results; each block carries a reference.  Called once, before `done` completes.
  virtual void give_results(const std::vector<Buffer>& results) = 0;

 private:
  friend class StagedJob;
  struct Slot {
    Buffer buffer;
    int uses = 0;
  };

  void run_device(int device, const volatile int32_t* cancel);
  void prepare();
  void run_part(const StagePart& part, const volatile int32_t* cancel);
  void finish_device();
  void finish();

  const std::shared_ptr<const StagedProgram> program_;
  const Ref<Event> done_;
  std::vector<Ref<Event>> ran_;  // whole stages; null for local ones
  std::unique_ptr<std::atomic<int>[]> arrived_;
  std::atomic<int> finished_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  bool prepared_ = false;    // guarded by mutex_, as are the slots
  std::vector<Slot> slots_;
};

}  // namespace jato
