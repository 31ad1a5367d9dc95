#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"
#include "deadline.h"

namespace jato::test {

using namespace std::chrono;

namespace {

bool raised(const Deadline& deadline) { return __atomic_load_n(deadline.flag(), __ATOMIC_RELAXED) != 0; }

// Microseconds until the flag goes up; -1 if it does not within a second.
int64_t raised_after(nanoseconds budget) {
  const auto start = steady_clock::now();
  Deadline deadline(budget);
  while (!raised(deadline)) {
    if (steady_clock::now() - start > seconds(1)) return -1;
    std::this_thread::yield();
  }
  return duration_cast<microseconds>(steady_clock::now() - start).count();
}

}  // namespace

void test_deadline(Runner& runner) {
  runner.run("raises its flag", [] {
    CHECK(raised_after(milliseconds(2)) >= 2000);
    std::this_thread::sleep_for(milliseconds(30));  // the watching thread sleeps by now
    CHECK(raised_after(microseconds(300)) >= 300);
  });

  runner.run("of a short run stays down", [] {
    for (int i = 0; i < 1000; ++i) {
      Deadline deadline(seconds(1));
      CHECK(!raised(deadline));
    }
  });

  runner.run("of many threads", [] {
    std::atomic<int> good{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 100; ++t) threads.emplace_back([&] { good += raised_after(milliseconds(1)) >= 0; });
    for (std::thread& thread : threads) thread.join();
    CHECK(good == 100);
  });

  runner.run("in the child of a fork", [] {
    CHECK(raised_after(microseconds(100)) >= 100);
    const pid_t child = fork();
    if (child == 0) _exit(raised_after(microseconds(100)) >= 100 ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  });
}

}  // namespace jato::test
