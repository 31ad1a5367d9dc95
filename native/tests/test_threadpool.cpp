#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"
#include "errors.h"
#include "spin.h"
#include "threadpool.h"

namespace jato::test {
namespace {

// Each index is visited once, in ranges that begin at multiples of the grain.
void check_coverage(int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
  std::atomic<bool> aligned{true}, numbered{true};
  const int threads = num_threads();  // of the caller
  parallel_for(n, grain, [&](int64_t begin, int64_t end, int worker) {
    if (begin % grain != 0 || begin >= end || end > n) aligned = false;
    if (worker < 0 || worker >= threads) numbered = false;
    for (int64_t i = begin; i < end; ++i) visits[static_cast<size_t>(i)].fetch_add(1);
  });
  CHECK(aligned && numbered);
  for (const auto& count : visits) CHECK_EQUAL(count.load(), 1);
}

// The same for single items, on some number of threads.
void check_each(int64_t n, int threads) {
  std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
  std::atomic<bool> numbered{true};
  parallel_for_each(n, threads, [&](int64_t i, int worker) {
    if (worker < 0 || worker >= threads) numbered = false;
    visits[static_cast<size_t>(i)].fetch_add(1);
  });
  CHECK(numbered);
  for (const auto& count : visits) CHECK_EQUAL(count.load(), 1);
}

int64_t parallel_sum(int64_t n) {
  std::atomic<int64_t> sum{0};
  parallel_for(n, 3, [&](int64_t begin, int64_t end, int) {
    int64_t part = 0;
    for (int64_t i = begin; i < end; ++i) part += i;
    sum += part;
  });
  return sum;
}

}  // namespace

void test_threadpool(Runner& runner) {
  set_num_threads(4);

  runner.run("ranges cover everything once", [] {
    for (const int64_t n : {0, 1, 2, 7, 64, 1000, 1001}) {
      for (const int64_t grain : {1, 3, 64, 5000}) check_coverage(n, grain);
    }
    for (int round = 0; round < 300; ++round) CHECK_EQUAL(parallel_sum(100), 4950);
  });

  runner.run("a sleeping pool wakes up", [] {
    for (int round = 0; round < 5; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      CHECK_EQUAL(parallel_sum(1000), 499500);
    }
  });

  runner.run("several callers at once", [] {
    std::atomic<bool> right{true};
    std::vector<std::thread> callers;
    for (int t = 0; t < 6; ++t) {
      callers.emplace_back([&right] {
        for (int round = 0; round < 100; ++round) {
          if (parallel_sum(500) != 124750) right = false;
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    CHECK(right);
  });

  runner.run("workers of one call differ while they run", [] {
    std::atomic<int> active[8] = {};
    std::atomic<bool> alone{true};
    for (int round = 0; round < 50; ++round) {
      parallel_for(64, 1, [&](int64_t, int64_t, int worker) {
        if (active[worker].fetch_add(1) != 0) alone = false;
        for (int i = 0; i < 500; ++i) cpu_relax();
        active[worker].fetch_sub(1);
      });
    }
    CHECK(alone);
  });

  runner.run("each item of a list is done once", [] {
    for (const int64_t n : {0, 1, 3, 4, 5, 64, 257, 1000}) {
      for (const int threads : {1, 2, 3, 4, 100}) check_each(n, threads);
    }
    CHECK_THROWS(std::out_of_range, parallel_for_each(100, 4, [](int64_t i, int) {
                   if (i == 60) throw std::out_of_range("sixty");
                 }));
  });

  runner.run("threads begin with shares of their own", [] {
    // Both threads are held in their first items, so that neither can take the other's.
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> begun{0};
      std::atomic<int64_t> first[2] = {-1, -1};
      parallel_for_each(10, 2, [&](int64_t i, int worker) {
        int64_t none = -1;
        if (!first[worker].compare_exchange_strong(none, i)) return;
        ++begun;
        while (begun < 2) std::this_thread::yield();
      });
      CHECK_EQUAL(first[0].load(), 0);
      CHECK_EQUAL(first[1].load(), 5);
    }
  });

  runner.run("several threads take part", [] {
    std::atomic<int> waiting{0};
    parallel_for(2, 1, [&](int64_t, int64_t, int) {
      // Returns only when both ranges are running at the same time.
      ++waiting;
      while (waiting < 2) std::this_thread::yield();
    });
    CHECK_EQUAL(waiting.load(), 2);
  });

  runner.run("items are visited once, whatever the number of threads", [] {
    for (const int64_t n : {0, 1, 2, 3, 63, 64, 65, 500}) {
      for (const int threads : {1, 2, 3, 4, 9, 64, 70}) check_each(n, threads);  // 70: more than shares
    }
    push_num_threads(1);  // the number asked for holds, not the thread's
    check_each(50, 3);
    pop_num_threads();
  });

  runner.run("items of a thread that is late are taken by others", [] {
    for (int round = 0; round < 20; ++round) {
      // The item that somebody is at ends when all others are done: those of the same share, too.
      std::atomic<int> done{0};
      const int late = round * 2;
      parallel_for_each(40, 2, [&](int64_t i, int) {
        if (i == late) {
          while (done < 39) std::this_thread::yield();
        }
        ++done;
      });
      CHECK_EQUAL(done.load(), 40);
      std::atomic<int64_t> rest{0};
      parallel_for(4000, 100, [&](int64_t begin, int64_t end, int) {
        if (begin == 100 * late) {
          while (rest < 4000 - (end - begin)) std::this_thread::yield();
        }
        rest += end - begin;
      });
      CHECK_EQUAL(rest.load(), 4000);
    }
  });

  runner.run("an exception ends all shares", [] {
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> calls{0}, running{0};
      CHECK_THROWS(std::out_of_range, parallel_for_each(100000, 4, [&](int64_t i, int) {
                     ++running;
                     ++calls;
                     const bool bad = i % 25000 == 10;  // in each share
                     --running;
                     if (bad) throw std::out_of_range("ten");
                     if (i % 25000 > 10) std::this_thread::yield();
                   }));
      CHECK(calls < 100000);
      CHECK_EQUAL(running.load(), 0);  // nobody is at work any more
      check_each(10, 4);
    }
    CHECK_THROWS(std::out_of_range, parallel_for_each(3, 1, [](int64_t, int) { throw std::out_of_range(""); }));
  });

  runner.run("a nested call runs serially", [] {
    std::atomic<int> calls{0};
    std::atomic<bool> serial{true};
    CHECK(!in_parallel_region());
    parallel_for(8, 1, [&](int64_t outer_begin, int64_t outer_end, int) {
      for (int64_t i = outer_begin; i < outer_end; ++i) {
        parallel_for(100, 1, [&](int64_t begin, int64_t end, int worker) {
          ++calls;
          if (begin != 0 || end != 100 || worker != 0 || !in_parallel_region()) serial = false;
        });
      }
    });
    CHECK_EQUAL(calls.load(), 8);
    CHECK(serial && !in_parallel_region());
  });

  runner.run("exceptions reach the caller and leave the pool usable", [] {
    for (int round = 0; round < 50; ++round) {
      CHECK_THROWS(std::out_of_range, parallel_for(100, 1, [&](int64_t begin, int64_t, int) {
                     if (begin >= 10) throw std::out_of_range("ten");
                   }));
      CHECK_EQUAL(parallel_sum(50), 1225);
    }
    CHECK_THROWS(std::out_of_range,
                 parallel_for(1, 1, [](int64_t, int64_t, int) { throw std::out_of_range(""); }));
  });

  runner.run("numbers of threads", [] {
    CHECK_EQUAL(num_threads(), 4);
    push_num_threads(1);
    CHECK_EQUAL(num_threads(), 1);
    const auto self = std::this_thread::get_id();
    std::atomic<bool> same{true};
    parallel_for(100, 1, [&](int64_t, int64_t, int) { same = same && std::this_thread::get_id() == self; });
    CHECK(same);
    std::thread([] { CHECK_EQUAL(num_threads(), 4); }).join();
    push_num_threads(6);
    CHECK_EQUAL(num_threads(), 6);
    check_coverage(1000, 1);
    pop_num_threads();
    CHECK_EQUAL(num_threads(), 1);
    pop_num_threads();
    CHECK_EQUAL(num_threads(), 4);
    CHECK_THROWS(Error, pop_num_threads());
    CHECK_THROWS(Error, push_num_threads(0));
    CHECK_THROWS(Error, set_num_threads(-1));
    CHECK_THROWS(Error, set_num_threads(1 << 20));
    set_num_threads(0);
    CHECK_EQUAL(num_threads(), default_num_threads());
    set_num_threads(4);
  });

  runner.run("scratch memory grows and stays", [] {
    char* const small = static_cast<char*>(thread_scratch(100));
    CHECK(reinterpret_cast<uintptr_t>(small) % 64 == 0);
    small[99] = 1;
    CHECK(thread_scratch(50) == small);
    static_cast<char*>(thread_scratch(100000))[99999] = 1;
    void* other = nullptr;
    std::thread([&] { other = thread_scratch(10); }).join();
    CHECK(other != thread_scratch(10));
    char* const panels = static_cast<char*>(thread_panels(100));
    panels[99] = 2;
    static_cast<char*>(thread_scratch(1000000))[99] = 3;
    CHECK(thread_panels(100) == panels && panels[99] == 2);
  });

  runner.run("a forked child computes", [] {
    CHECK_EQUAL(parallel_sum(1000), 499500);
    CHECK(true_in_child([] { return parallel_sum(1000) == 499500 && parallel_sum(10) == 45; }));
    CHECK_EQUAL(parallel_sum(1000), 499500);
  });
}

}  // namespace jato::test
