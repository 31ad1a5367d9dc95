#include <stdexcept>
#include <thread>

#include "check.h"
#include "event.h"
#include "pool.h"

namespace jato::test {

using namespace std::chrono_literals;

void test_event(Runner& runner) {
  runner.run("completes", [] {
    const Ref<Event> event = Event::create();
    CHECK(!event->ready() && !event->wait(1ms));
    event->complete();
    CHECK(event->ready() && !event->failed() && event->wait(0ns));
    event->wait();
    event->rethrow_if_failed();
    CHECK(event->error() == nullptr && event->error_message().empty());
  });

  runner.run("wakes its waiters", [] {
    for (int round = 0; round < 50; ++round) {
      Ref<Event> event = Event::create();
      std::thread waiter([event] { event->wait(); });
      std::thread completer([event]() mutable {
        event->complete();
        event.reset();
      });
      event.reset();
      waiter.join();
      completer.join();
    }
  });

  runner.run("counts its parts", [] {
    const Ref<Event> event = Event::create(3);
    event->complete();
    event->complete();
    CHECK(!event->ready());
    event->complete();
    CHECK(event->ready());
    CHECK(Event::create(0)->ready());
  });

  runner.run("keeps its first error", [] {
    const Ref<Event> event = Event::create(2);
    event->fail(std::make_exception_ptr(Error(ErrorKind::Value, "first")));
    event->fail(std::make_exception_ptr(std::runtime_error("second")));
    event->complete();
    CHECK(event->ready() && event->failed());
    CHECK(event->error_kind() == ErrorKind::Value && event->error_message() == "first");
    for (int use = 0; use < 2; ++use) CHECK_THROWS(Error, event->rethrow_if_failed());
  });

  runner.run("names the kind of other exceptions", [] {
    const auto kind_of = [](auto exception) {
      const Ref<Event> event = Event::create();
      event->fail(std::make_exception_ptr(exception));
      return event->error_kind();
    };
    CHECK(kind_of(std::runtime_error("x")) == ErrorKind::Runtime);
    CHECK(kind_of(std::bad_alloc()) == ErrorKind::OutOfMemory);
    CHECK(kind_of(OutOfMemory(1, 2, 3)) == ErrorKind::OutOfMemory);
    CHECK(kind_of(7) == ErrorKind::Runtime);
  });
}

}  // namespace jato::test
