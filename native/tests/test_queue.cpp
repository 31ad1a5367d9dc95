#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>

#include "check.h"
#include "queue.h"
#include "threadpool.h"

namespace jato::test {
namespace {

using namespace std::chrono_literals;

class FunctionJob final : public Job {
 public:
  explicit FunctionJob(std::function<void(const volatile int32_t*)> body) : body_(std::move(body)) {}
  void run(const volatile int32_t* cancel) override { body_(cancel); }

 private:
  std::function<void(const volatile int32_t*)> body_;
};

Ref<Event> submit(DeviceQueue& queue, std::function<void(const volatile int32_t*)> body,
                  Ref<Event> wait_for = {}) {
  auto job = std::make_unique<FunctionJob>(std::move(body));
  const Ref<Event> done = job->done = Event::create();
  if (wait_for) job->wait_for.push_back(std::move(wait_for));
  queue.submit(std::move(job));
  return done;
}

bool raised(const volatile int32_t* flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0; }

}  // namespace

void test_queue(Runner& runner) {
  DeviceQueue& queue = DeviceQueue::get(0);

  runner.run("jobs run in order", [&] {
    std::vector<int> order;
    Ref<Event> last;
    for (int i = 0; i < 200; ++i)
      last = submit(queue, [&order, i](const volatile int32_t*) { order.push_back(i); });
    last->wait();
    CHECK_EQUAL(order.size(), 200u);
    for (int i = 0; i < 200; ++i) CHECK_EQUAL(order[static_cast<size_t>(i)], i);
    CHECK(queue.drain(1s));
    CHECK_EQUAL(queue.depth(), 0);
  });

  runner.run("a failed job fails its event only", [&] {
    const Ref<Event> bad = submit(queue, [](const volatile int32_t*) { throw std::out_of_range("bad"); });
    const Ref<Event> good = submit(queue, [](const volatile int32_t*) {});
    good->wait();
    CHECK(bad->failed() && !good->failed());
    CHECK_THROWS(std::out_of_range, bad->rethrow_if_failed());
  });

  runner.run("a job's references are gone when its event completes", [&] {
    const auto held = std::make_shared<int>(1);
    for (int round = 0; round < 100; ++round) {
      submit(queue, [held](const volatile int32_t*) {})->wait();
      CHECK_EQUAL(held.use_count(), 1);
    }
  });

  runner.run("waits for results of other devices", [&] {
    DeviceQueue& other = DeviceQueue::get(1);
    std::atomic<int> value{0};
    const Ref<Event> slow = submit(other, [&](const volatile int32_t*) {
      std::this_thread::sleep_for(5ms);
      value = 1;
    });
    int seen = -1;
    submit(queue, [&](const volatile int32_t*) { seen = value; }, slow)->wait();
    CHECK_EQUAL(seen, 1);
    const Ref<Event> bad = submit(other, [](const volatile int32_t*) { throw std::out_of_range("bad"); });
    const Ref<Event> after = submit(queue, [&](const volatile int32_t*) { seen = 2; }, bad);
    after->wait();
    CHECK_THROWS(std::out_of_range, after->rethrow_if_failed());
    CHECK_EQUAL(seen, 1);
  });

  runner.run("cancel stops the running job and drops the queued ones", [&] {
    std::atomic<bool> started{false};
    const Ref<Event> running = submit(queue, [&](const volatile int32_t* cancel) {
      started = true;
      while (!raised(cancel)) std::this_thread::yield();
    });
    std::atomic<bool> ran{false};
    const Ref<Event> queued = submit(queue, [&](const volatile int32_t*) { ran = true; });
    while (!started) std::this_thread::yield();
    queue.cancel();
    running->wait();
    queued->wait();
    CHECK(running->error_kind() == ErrorKind::Cancelled && queued->error_kind() == ErrorKind::Cancelled);
    CHECK(!ran);
    const Ref<Event> later = submit(queue, [&](const volatile int32_t* cancel) { ran = !raised(cancel); });
    later->wait();
    CHECK(ran && !later->failed());
    CHECK(queue.drain(1s));
    DeviceQueue::cancel_all();
  });

  runner.run("cancel ends a wait for another device", [&] {
    const Ref<Event> never = Event::create();
    const Ref<Event> waiting = submit(queue, [](const volatile int32_t*) {}, never);
    while (queue.depth() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(2ms);
    queue.cancel();
    waiting->wait();
    CHECK(waiting->error_kind() == ErrorKind::Cancelled);
  });

  runner.run("the submitter's number of threads travels with the job", [&] {
    int seen = 0;
    push_num_threads(3);
    const Ref<Event> with = submit(queue, [&](const volatile int32_t*) { seen = num_threads(); });
    pop_num_threads();
    with->wait();
    CHECK_EQUAL(seen, 3);
    submit(queue, [&](const volatile int32_t*) { seen = num_threads(); })->wait();
    CHECK_EQUAL(seen, num_threads());
  });

  runner.run("depth and threads", [&] {
    CHECK(queue.drain(5s) && !queue.on_queue_thread());
    bool on_thread = false;
    std::atomic<bool> go{false};
    submit(queue, [&](const volatile int32_t*) {
      on_thread = queue.on_queue_thread();
      while (!go) std::this_thread::yield();
    });
    submit(queue, [](const volatile int32_t*) {});
    const int64_t depth = queue.depth();
    const bool below_one = queue.wait_depth(1, 2ms), below_two = queue.wait_depth(2, 0ns);
    go = true;
    CHECK_EQUAL(depth, 2);
    CHECK(!below_one && below_two);
    CHECK(DeviceQueue::drain_all(5s));
    CHECK(on_thread);
  });

  runner.run("number of devices", [] {
    CHECK_EQUAL(DeviceQueue::count(), 1);
    DeviceQueue::set_count(8);
    CHECK_EQUAL(DeviceQueue::count(), 8);
    CHECK(&DeviceQueue::get(7) == &DeviceQueue::get(7) && DeviceQueue::get(7).index() == 7);
    CHECK_THROWS(Error, DeviceQueue::set_count(0));
    CHECK_THROWS(Error, DeviceQueue::get(-1));
    DeviceQueue::set_count(1);
  });

  runner.run("parallel work on several devices", [] {
    std::atomic<int64_t> total{0};
    std::vector<Ref<Event>> events;
    for (int round = 0; round < 20; ++round) {
      for (int device = 0; device < 4; ++device) {
        events.push_back(submit(DeviceQueue::get(device), [&](const volatile int32_t*) {
          parallel_for(100, 1, [&](int64_t begin, int64_t end, int) { total += end - begin; });
        }));
      }
    }
    for (const Ref<Event>& event : events) event->wait();
    CHECK_EQUAL(total.load(), 8000);
  });

  runner.run("fork: pending results fail in the child, new jobs run", [&] {
    std::atomic<bool> started{false}, go{false};
    const Ref<Event> running = submit(queue, [&](const volatile int32_t*) {
      started = true;
      while (!go) std::this_thread::yield();
    });
    const Ref<Event> queued = submit(queue, [](const volatile int32_t*) {});
    while (!started) std::this_thread::yield();
    CHECK(true_in_child([&] {
      bool ran = false;
      submit(queue, [&](const volatile int32_t*) { ran = true; })->wait();
      return running->failed() && queued->failed() && ran &&
             queued->error_message().find("fork") != std::string::npos;
    }));
    go = true;
    queued->wait();
    CHECK(!running->failed() && !queued->failed());
  });
}

}  // namespace jato::test
