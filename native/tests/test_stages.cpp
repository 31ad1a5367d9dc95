#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "check.h"
#include "stages.h"
#include "threadpool.h"

namespace jato::test {
namespace {

using namespace std::chrono_literals;

constexpr size_t kFloat = sizeof(float);

float& at(void* buffer) { return *static_cast<float*>(buffer); }

// A program of one host step.
Ref<Executable> host_program(std::vector<size_t> inputs, std::vector<size_t> outputs, HostCallback body) {
  ExecutableBuilder builder;
  std::vector<Slot> slots;
  for (const size_t bytes : inputs) slots.push_back(builder.input(bytes));
  for (const size_t bytes : outputs) slots.push_back(builder.output(bytes));
  builder.host(builder.callback(std::move(body)), std::move(slots));
  return builder.finish(0, 1e9);
}

// Runs until it is cancelled.
Ref<Executable> endless_program() {
  ExecutableBuilder builder;
  const Slot x = builder.input(kFloat), y = builder.output(kFloat);
  LoopStep loop;
  loop.count = int64_t{1} << 60;
  builder.begin_loop(std::move(loop));
  builder.copy(y, x, kFloat);
  builder.end();
  return builder.finish(0, 1e9);
}

class TestRun final : public StagedRun {
 public:
  TestRun(std::shared_ptr<const StagedProgram> program, Ref<Event> done, std::vector<float> arguments)
      : StagedRun(std::move(program), std::move(done)), arguments_(std::move(arguments)) {}

  std::vector<float> results;

 private:
  void take_inputs(std::vector<Buffer>& inputs) override {
    Ref<Block> block = Pool::allocate(arguments_.size() * kFloat);
    std::memcpy(block->data(), arguments_.data(), arguments_.size() * kFloat);
    void* const data = block->data();
    inputs.push_back({block.detach(), data});
  }
  void give_results(const std::vector<Buffer>& made) override {
    for (const Buffer& result : made) {
      results.push_back(at(result.data));
      result.block->release();
    }
  }
  std::vector<float> arguments_;
};

using Program = std::shared_ptr<const StagedProgram>;

struct Call {
  Call(const Program& program, std::vector<float> arguments)
      : done(Event::create(static_cast<int>(program->devices().size()))),
        run(std::make_shared<TestRun>(program, done, std::move(arguments))) {
    StagedRun::submit(run);
  }
  float result() {
    done->wait();
    done->rethrow_if_failed();
    return run->results.at(0);
  }
  Ref<Event> done;
  std::shared_ptr<TestRun> run;
};

// first(x_i) for each device, their sum s, first(x_i) + s for each, and the sum of these.
Program sum_program(const std::vector<int>& devices, const std::function<void(int, void* const*)>& first) {
  const int count = static_cast<int>(devices.size());
  const size_t all = static_cast<size_t>(count) * kFloat;
  const auto sum = [count](void* const* buffers) {
    float total = 0;
    for (int i = 0; i < count; ++i) total += static_cast<float*>(buffers[0])[i];
    at(buffers[1]) = total;
  };
  const auto last = [](void* const* buffers) { at(buffers[2]) = at(buffers[0]) + at(buffers[1]); };
  Stage made, met, used, end;
  for (int i = 0; i < count; ++i) {
    const int64_t place = i * static_cast<int64_t>(kFloat);
    const auto body = [first, i](void* const* buffers) { first(i, buffers); };
    const int device = devices[static_cast<size_t>(i)];
    made.parts.push_back({device, host_program({kFloat}, {kFloat}, body), {{0, place}}, {{1, place}}});
    used.parts.push_back(
        {device, host_program({kFloat, kFloat}, {kFloat}, last), {{1, place}, {2, 0}}, {{3, place}}});
  }
  met.parts.push_back({kAllDevices, host_program({all}, {kFloat}, sum), {{1, 0}}, {{2, 0}}});
  end.parts.push_back({kAllDevices, host_program({all}, {kFloat}, sum), {{3, 0}}, {{4, 0}}});
  std::vector<Stage> stages;
  for (Stage* stage : {&made, &met, &used, &end}) stages.push_back(std::move(*stage));
  return std::make_shared<StagedProgram>(1, std::vector<size_t>{all, kFloat, all, kFloat}, 1,
                                         std::move(stages));
}

void doubled(int, void* const* buffers) { at(buffers[1]) = 2 * at(buffers[0]); }

}  // namespace

void test_stages(Runner& runner) {
  runner.run("parts meet and go on, and what lies between is freed", [] {
    const size_t before = Pool::stats().in_use;
    for (const std::vector<int>& devices : {std::vector<int>{0, 1, 2, 3}, {2, 0}, {1}, {0, 1, 0, 1}}) {
      const Program program = sum_program(devices, doubled);
      std::vector<float> arguments(devices.size(), 1);
      arguments[0] = 5;
      const float total = 2 * (static_cast<float>(devices.size()) + 4);
      const float wanted = total + total * static_cast<float>(devices.size());
      for (int round = 0; round < 50; ++round) CHECK_EQUAL(Call(program, arguments).result(), wanted);
      TestRun here(program, Event::create(0), arguments);
      here.run_here();
      CHECK_EQUAL(here.results.at(0), wanted);
    }
    CHECK(DeviceQueue::drain_all(5s));
    CHECK_EQUAL(Pool::stats().in_use, before);
  });

  runner.run("a whole stage of arguments runs once and waits for nobody", [] {
    std::atomic<int> count{0};
    Stage first, second;
    const auto copy = [&](void* const* b) { at(b[1]) = at(b[0]), ++count; };
    first.parts.push_back({kAllDevices, host_program({kFloat}, {kFloat}, copy), {{0, 0}}, {{1, 0}}});
    const auto add = [](void* const* b) { at(b[1]) = at(b[0]) + 1; };
    for (const int device : {0, 1})
      second.parts.push_back({device, host_program({kFloat}, {kFloat}, add), {{1, 0}}, {{2, device * 4}}});
    std::vector<Stage> stages;
    stages.push_back(std::move(first));
    stages.push_back(std::move(second));
    const auto program =
        std::make_shared<StagedProgram>(1, std::vector<size_t>{kFloat, 2 * kFloat}, 1, std::move(stages));
    CHECK(!program->stages()[0].joins);
    for (int round = 1; round < 20; ++round) {
      CHECK_EQUAL(Call(program, {3}).result(), 4);
      CHECK_EQUAL(count.load(), round);
    }
  });

  runner.run("a device leaves the last whole stage to those that come later", [] {
    std::atomic<bool> go{false};
    Stage first, last;
    for (const int device : {0, 1}) {
      const auto body = [&go, device](void* const* b) {
        while (device == 1 && !go) std::this_thread::yield();
        at(b[1]) = at(b[0]);
      };
      first.parts.push_back({device, host_program({kFloat}, {kFloat}, body), {{0, 0}}, {{1, device * 4}}});
    }
    ExecutableBuilder builder;
    const Slot x = builder.input(2 * kFloat), y = builder.output(2 * kFloat);
    builder.copy(y, x, 2 * kFloat);
    last.parts.push_back({kAllDevices, builder.finish(0, 1), {{1, 0}}, {{2, 0}}});
    std::vector<Stage> stages;
    stages.push_back(std::move(first));
    stages.push_back(std::move(last));
    const size_t bytes = 2 * kFloat;
    const auto program =
        std::make_shared<StagedProgram>(1, std::vector<size_t>{bytes, bytes}, 1, std::move(stages));
    CHECK(program->stages()[1].joins && !program->any_awaited());
    for (int round = 0; round < 20; ++round) {
      go = false;
      Call call(program, {7});
      const bool free = DeviceQueue::get(0).drain(5s);
      const bool pending = !call.done->ready();
      go = true;
      CHECK_EQUAL(call.result(), 7);
      CHECK(free && pending);
    }
  });

  runner.run("a part that fails ends the call and frees the others", [] {
    std::atomic<bool> fails{true};
    Program program = sum_program({0, 1, 2, 3}, [&](int i, void* const* buffers) {
      doubled(i, buffers);
      if (i == 2 && fails) throw std::out_of_range("two");
    });
    for (int round = 0; round < 20; ++round) {
      Call call(program, {1, 1, 1, 1});
      CHECK_THROWS(std::out_of_range, call.result());
    }
    fails = false;
    CHECK_EQUAL(Call(program, {1, 1, 1, 1}).result(), 40);

    Stage mixed;  // one fails while the other runs for ever
    mixed.parts.push_back({0, endless_program(), {{0, 0}}, {{1, 0}}});
    const auto fail = [](void* const*) {
      std::this_thread::sleep_for(2ms);
      throw std::out_of_range("one");
    };
    mixed.parts.push_back({1, host_program({kFloat}, {kFloat}, fail), {{0, 0}}, {{1, 4}}});
    std::vector<Stage> stages;
    stages.push_back(std::move(mixed));
    program = std::make_shared<StagedProgram>(1, std::vector<size_t>{2 * kFloat}, 1, std::move(stages));
    for (int round = 0; round < 5; ++round) {
      Call call(program, {1});
      CHECK_THROWS(std::out_of_range, call.result());
    }
    CHECK(DeviceQueue::drain_all(5s));
  });

  runner.run("an argument that failed fails the call", [] {
    const Program program = sum_program({0, 1}, doubled);
    const Ref<Event> bad = Event::create();
    const Ref<Event> done = Event::create(2);
    const auto run = std::make_shared<TestRun>(program, done, std::vector<float>{1, 1});
    run->wait_for.push_back(bad);
    StagedRun::submit(run);
    bad->fail(std::make_exception_ptr(std::out_of_range("argument")));
    done->wait();
    CHECK_THROWS(std::out_of_range, done->rethrow_if_failed());
  });

  runner.run("cancelling one device ends the call on all", [] {
    std::atomic<bool> go{false};
    const Program program = sum_program({0, 1}, [&](int i, void* const* buffers) {
      while (i == 1 && !go) std::this_thread::yield();
      doubled(i, buffers);
    });
    Call running(program, {1, 1}), queued(program, {1, 1});
    std::this_thread::sleep_for(2ms);
    DeviceQueue::get(0).cancel();  // there it waits for device 1
    running.done->wait();
    queued.done->wait();
    CHECK(running.done->error_kind() == ErrorKind::Cancelled);
    CHECK(queued.done->error_kind() == ErrorKind::Cancelled);
    go = true;
    CHECK_EQUAL(Call(program, {1, 1}).result(), 12);
  });

  runner.run("calls of several threads on shared devices do not wait for each other", [] {
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (const std::vector<int>& devices :
         {std::vector<int>{0, 1, 2}, {2, 1, 0}, {1, 2}, {3, 0}, {2, 3, 1}}) {
      threads.emplace_back([&good, devices] {
        const Program program = sum_program(devices, doubled);
        const float count = static_cast<float>(devices.size());
        std::vector<Call> calls;
        for (int round = 0; round < 40; ++round)
          calls.emplace_back(program, std::vector<float>(devices.size(), 1));
        for (Call& call : calls) good += call.result() == 2 * count + 2 * count * count;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK_EQUAL(good.load(), 200);
  });

  runner.run("a part must not wait for what comes after it on a device of the call", [] {
    std::atomic<bool> queued{false};
    std::atomic<int> seen{-1};
    Ref<Event> earlier = Event::create(), later;
    class Nothing final : public Job {
      void run(const volatile int32_t*) override {}
    };
    const Program program = sum_program({0, 1}, [&](int i, void* const* buffers) {
      doubled(i, buffers);
      if (i != 1) return;
      while (!queued) std::this_thread::yield();
      seen = DeviceQueue::comes_after_this(*later, 0) + 2 * DeviceQueue::comes_after_this(*later, 3) +
             4 * DeviceQueue::comes_after_this(*later, -1);
    });
    Call call(program, {1, 1});
    auto job = std::make_unique<Nothing>();
    later = job->done = Event::create();
    DeviceQueue::get(0).submit(std::move(job));
    queued = true;
    CHECK_EQUAL(call.result(), 12);
    CHECK_EQUAL(seen.load(), 1 + 4);
    later->wait();
    CHECK(!DeviceQueue::comes_after_this(*earlier, 0));  // not a queue's thread
  });

  runner.run("fork", [] {
    std::atomic<bool> go{false};
    const Program slow = sum_program({0, 1}, [&](int i, void* const* buffers) {
      while (!go) std::this_thread::yield();
      doubled(i, buffers);
    });
    const Program fast = sum_program({0, 1}, doubled);
    Call pending(slow, {1, 1});
    const bool good =
        true_in_child([&] { return pending.done->failed() && Call(fast, {1, 1}).result() == 12; });
    go = true;
    CHECK_EQUAL(pending.result(), 12);
    CHECK(good);
  });
}

}  // namespace jato::test
