// See stages.h.
#include "stages.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "errors.h"

namespace jato {

namespace {

// How often a job that waits for others looks at its cancel flag.
constexpr auto kPollTime = std::chrono::milliseconds(20);

bool is_raised(const volatile int32_t* flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0; }

[[noreturn]] void invalid(const std::string& what) { throw Error(ErrorKind::Value, "stages: " + what); }

void throw_if_cancelled(const volatile int32_t* cancel) {
  if (is_raised(cancel)) throw Error(ErrorKind::Cancelled, "the computation was cancelled");
}

void await(Event& event, const volatile int32_t* cancel) {
  while (!event.wait(kPollTime)) throw_if_cancelled(cancel);
  event.rethrow_if_failed();
}

}  // namespace

// --- the program

StagedProgram::StagedProgram(int num_inputs, std::vector<size_t> bytes, int num_results,
                             std::vector<Stage> stages)
    : num_inputs_(num_inputs),
      bytes_(std::move(bytes)),
      num_results_(num_results),
      stages_(std::move(stages)) {
  if (num_inputs_ < 0 || num_results_ < 0 || static_cast<size_t>(num_results_) > bytes_.size())
    invalid("wrong number of slots");
  const size_t count = static_cast<size_t>(num_slots());
  std::vector<bool> written(count), local(count);
  std::fill_n(written.begin(), num_inputs_, true);
  uses_.resize(count);
  for (Stage& stage : stages_) {
    if (stage.parts.empty()) invalid("a stage is empty");
    stage.whole = stage.parts[0].device == kAllDevices;
    if (stage.whole && stage.parts.size() != 1) invalid("a whole stage has one part");
    for (const StagePart& part : stage.parts) {
      if (!stage.whole && part.device < 0) invalid("a part has no device");
      check_part(part, written);
      for (const StageOperand& operand : part.inputs) {
        ++uses_[static_cast<size_t>(operand.slot)];
        if (stage.whole) stage.joins = stage.joins || local[static_cast<size_t>(operand.slot)];
      }
      for (const StageOperand& operand : part.outputs) ++uses_[static_cast<size_t>(operand.slot)];
      if (!stage.whole && std::find(devices_.begin(), devices_.end(), part.device) == devices_.end())
        devices_.push_back(part.device);
      cost_ns_ += part.executable->cost_ns();
      unbounded_ = unbounded_ || part.executable->unbounded();
      restartable_ = restartable_ && part.executable->may_be_tried();
    }
    for (const StagePart& part : stage.parts) {
      for (const StageOperand& operand : part.outputs) {
        written[static_cast<size_t>(operand.slot)] = true;
        local[static_cast<size_t>(operand.slot)] = !stage.whole;
      }
    }
  }
  if (devices_.empty()) invalid("there is no local stage");
  if (!std::all_of(written.end() - num_results_, written.end(), [](bool w) { return w; }))
    invalid("nothing writes a result");
}

void StagedProgram::check_part(const StagePart& part, const std::vector<bool>& written) const {
  const Executable& executable = *part.executable;
  if (part.inputs.size() != static_cast<size_t>(executable.num_inputs()) ||
      part.outputs.size() != static_cast<size_t>(executable.num_outputs()))
    invalid("a part's executable has another number of inputs or outputs");
  const auto check = [&](const StageOperand& operand, size_t size, bool output) {
    if (operand.slot < (output ? num_inputs_ : 0) || operand.slot >= num_slots())
      invalid("there is no slot " + std::to_string(operand.slot) + (output ? " to write" : " to read"));
    if (!output && !written[static_cast<size_t>(operand.slot)])
      invalid("slot " + std::to_string(operand.slot) + " is read before it is written");
    if (operand.offset < 0 || (operand.slot >= num_inputs_ &&
                               static_cast<size_t>(operand.offset) + size > bytes(operand.slot)))
      invalid("offset " + std::to_string(operand.offset) + " of slot " + std::to_string(operand.slot) +
              " is outside of it");
  };
  for (size_t i = 0; i < part.inputs.size(); ++i)
    check(part.inputs[i], executable.input_bytes(static_cast<int>(i)), false);
  for (size_t j = 0; j < part.outputs.size(); ++j)
    check(part.outputs[j], executable.output(static_cast<int>(j)).bytes, true);
}

bool StagedProgram::any_awaited() const {
  for (size_t s = 0; s < stages_.size(); ++s) {
    if (stages_[s].whole && awaited(s)) return true;
  }
  return false;
}

// --- a run

class StagedJob final : public Job {
 public:
  StagedJob(std::shared_ptr<StagedRun> run, int device) : run_(std::move(run)), device_(device) {
    done = run_->done_;
  }
  ~StagedJob() override {
    if (started_) return;  // else it was dropped, and others of its call may be waiting for it
    run_->fail(std::make_exception_ptr(
        Error(ErrorKind::Cancelled,
              "the computation was cancelled before it started, together with one before it")));
  }
  void run(const volatile int32_t* cancel) override {
    started_ = true;
    run_->run_device(device_, cancel);
  }
  bool spans(int device) const noexcept override {
    const std::vector<int>& all = run_->program_->devices();
    return run_->program_->any_awaited() && std::find(all.begin(), all.end(), device) != all.end();
  }

 private:
  std::shared_ptr<StagedRun> run_;
  int device_;
  bool started_ = false;
};

StagedRun::StagedRun(std::shared_ptr<const StagedProgram> program, Ref<Event> done)
    : program_(std::move(program)), done_(std::move(done)) {
  const std::vector<Stage>& stages = program_->stages();
  arrived_ = std::make_unique<std::atomic<int>[]>(stages.size());
  for (size_t s = 0; s < stages.size(); ++s) {
    arrived_[s] = 0;
    ran_.push_back(stages[s].whole ? Event::create() : Ref<Event>());
  }
  slots_.resize(static_cast<size_t>(program_->num_slots()));
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].uses = program_->uses()[i];
}

StagedRun::~StagedRun() {
  for (const Slot& slot : slots_) {
    if (slot.buffer.block != nullptr) slot.buffer.block->release();
  }
}

void StagedRun::submit(const std::shared_ptr<StagedRun>& run) {
  std::vector<std::pair<DeviceQueue*, std::unique_ptr<Job>>> jobs;
  for (const int device : run->program_->devices())
    jobs.emplace_back(&DeviceQueue::get(device), std::make_unique<StagedJob>(run, device));
  DeviceQueue::submit_all(std::move(jobs));
}

void StagedRun::run_here(const volatile int32_t* cancel) {
  prepare();
  for (const Stage& stage : program_->stages()) {
    for (const StagePart& part : stage.parts) run_part(part, cancel);
  }
  finish();
}

void StagedRun::run_device(int device, const volatile int32_t* cancel) {
  try {
    // Looked at after the queue took this job for its running one: fail() raises that one's flag.
    if (failed_.load()) throw Error(ErrorKind::Cancelled, "another device's part failed");
    for (const Ref<Event>& event : wait_for) await(*event, cancel);
    prepare();
    const int others = static_cast<int>(program_->devices().size()) - 1;
    for (size_t s = 0; s < program_->stages().size(); ++s) {
      const Stage& stage = program_->stages()[s];
      if (!stage.whole) {
        for (const StagePart& part : stage.parts) {
          if (part.device == device) run_part(part, cancel);
        }
      } else if (arrived_[s].fetch_add(1, std::memory_order_acq_rel) == (stage.joins ? others : 0)) {
        run_part(stage.parts[0], cancel);
        ran_[s]->complete();
      } else if (program_->awaited(s)) {
        await(*ran_[s], cancel);
      }
    }
    finish_device();
  } catch (...) {
    fail(std::current_exception());
    throw;
  }
}

void StagedRun::prepare() {
  std::lock_guard lock(mutex_);
  if (prepared_) return;
  std::vector<Buffer> inputs;
  inputs.reserve(static_cast<size_t>(program_->num_inputs()));
  take_inputs(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) slots_[i].buffer = inputs[i];
  prepared_ = true;
}

void StagedRun::run_part(const StagePart& part, const volatile int32_t* cancel) {
  throw_if_cancelled(cancel);
  std::vector<Buffer> inputs, outputs;
  inputs.reserve(part.inputs.size());
  outputs.reserve(part.outputs.size());
  {
    std::lock_guard lock(mutex_);
    const auto place = [&](const StageOperand& operand) -> Buffer {
      Buffer& whole = slots_[static_cast<size_t>(operand.slot)].buffer;
      if (whole.block == nullptr) {
        Ref<Block> block = part.executable->new_block(program_->bytes(operand.slot));
        whole.data = block->data();
        whole.block = block.detach();
      }
      return {whole.block, static_cast<char*>(whole.data) + operand.offset};
    };
    for (const StageOperand& operand : part.inputs) inputs.push_back(place(operand));
    for (const StageOperand& operand : part.outputs) outputs.push_back(place(operand));
  }
  part.executable->execute_into(inputs.data(), outputs.data(), cancel);
  throw_if_cancelled(cancel);
  std::vector<Block*> unused;
  {
    std::lock_guard lock(mutex_);
    for (const std::vector<StageOperand>* operands : {&part.inputs, &part.outputs}) {
      for (const StageOperand& operand : *operands) {
        Slot& slot = slots_[static_cast<size_t>(operand.slot)];
        if (--slot.uses == 0 && !program_->is_result(operand.slot))
          unused.push_back(std::exchange(slot.buffer.block, nullptr));
      }
    }
  }
  for (Block* block : unused) block->release();
}

void StagedRun::finish_device() {
  if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<int>(program_->devices().size()))
    finish();
}

void StagedRun::finish() {
  std::vector<Buffer> results;
  for (size_t i = slots_.size() - static_cast<size_t>(program_->num_results()); i < slots_.size(); ++i)
    results.push_back(std::exchange(slots_[i].buffer, Buffer{}));
  give_results(results);
}

void StagedRun::fail(std::exception_ptr error) noexcept {
  if (failed_.exchange(true)) return;
  done_->fail(std::move(error));
  const std::exception_ptr ended =
      std::make_exception_ptr(Error(ErrorKind::Cancelled, "another device's part failed"));
  for (const Ref<Event>& event : ran_) {
    if (event) event->fail(ended);
  }
  for (const int device : program_->devices()) DeviceQueue::get(device).cancel_running(done_.get());
}

}  // namespace jato
