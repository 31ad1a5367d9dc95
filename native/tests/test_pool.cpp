#include <cstring>
#include <thread>
#include <vector>

#include "check.h"
#include "pool.h"

namespace jato::test {

void test_pool(Runner& runner) {
  runner.run("blocks of every size are aligned, writable and waste little", [] {
    const size_t sizes[] = {0,       1,       63,    64,    65,     511,           512,     513,
                            1000,    4096,    32768, 32769, 100000, (2 << 20) - 1, 2 << 20, (2 << 20) + 1,
                            5000001, 64 << 20};
    for (const size_t bytes : sizes) {
      const Ref<Block> block = Pool::allocate(bytes);
      CHECK(reinterpret_cast<uintptr_t>(block->data()) % 64 == 0);
      CHECK(block->capacity() >= bytes);
      CHECK(bytes < 512 || block->capacity() <= bytes + bytes / 8);
      CHECK_EQUAL(Pool::rounded(bytes), block->capacity());
      CHECK(block->exclusive() && block->pooled());
      if (bytes == 0) continue;
      char* const data = static_cast<char*>(block->data());
      std::memset(data, 1, bytes < 100000 ? block->capacity() : 1);
      data[block->capacity() - 1] = 2;
    }
  });

  runner.run("class sizes grow without gaps", [] {
    size_t last = 0;
    for (size_t bytes = 1; bytes < (8 << 20); bytes += bytes / 37 + 1) {
      const size_t rounded = Pool::rounded(bytes);
      CHECK(rounded >= bytes && rounded >= last && rounded % 64 == 0);
      CHECK_EQUAL(Pool::rounded(rounded), rounded);
      last = rounded;
    }
  });

  runner.run("a freed block comes back first", [] {
    for (const size_t bytes : {size_t{32}, size_t{3000}, size_t{200000}, size_t{9000000}}) {
      Ref<Block> first = Pool::allocate(bytes), second = Pool::allocate(bytes);
      void* const data = second->data();
      first.reset();
      second.reset();
      CHECK(Pool::allocate(bytes)->data() == data);
    }
  });

  runner.run("statistics", [] {
    Pool::trim();
    const PoolStats before = Pool::stats();
    CHECK_EQUAL(before.cached, 0u);
    {
      const Ref<Block> small = Pool::allocate(100), large = Pool::allocate(3 << 20);
      const PoolStats during = Pool::stats();
      CHECK_EQUAL(during.in_use - before.in_use, small->capacity() + large->capacity());
      CHECK_EQUAL(during.allocations - before.allocations, 2u);
      CHECK(during.peak >= during.in_use);
    }
    const PoolStats after = Pool::stats();
    CHECK_EQUAL(after.in_use, before.in_use);
    CHECK_EQUAL(after.cached, Pool::rounded(100) + Pool::rounded(3 << 20));
    {
      const Ref<Block> small = Pool::allocate(100), large = Pool::allocate(3 << 20);
    }
    CHECK_EQUAL(Pool::stats().reuses - after.reuses, 2u);
    CHECK_EQUAL(Pool::trim(), after.cached);
    CHECK_EQUAL(Pool::stats().cached, 0u);
    Pool::reset_peak();
    CHECK(Pool::stats().peak < before.peak + (3 << 20));
  });

  runner.run("the limit holds, and cached memory gives way", [] {
    Pool::trim();
    const size_t base = Pool::stats().in_use;
    Pool::set_limit(base + (20 << 20));
    {
      Ref<Block> held = Pool::allocate(12 << 20);
      CHECK_THROWS(OutOfMemory, (void)Pool::allocate(12 << 20));
      try {
        (void)Pool::allocate(12 << 20);
      } catch (const OutOfMemory& error) {
        CHECK_EQUAL(error.requested, size_t{12} << 20);
        CHECK_EQUAL(error.limit, base + (20 << 20));
        CHECK(error.in_use >= (12 << 20));
        CHECK(std::string(error.what()).find("12.0 MiB") != std::string::npos);
      }
      {
        const Ref<Block> cached = Pool::allocate(6 << 20);
      }
      const Ref<Block> other = Pool::allocate(7 << 20);
      CHECK(Pool::stats().in_use + Pool::stats().cached <= Pool::stats().limit);
    }
    CHECK(Pool::stats().cached <= Pool::stats().limit / 2);
    Pool::set_limit(0);
    CHECK_THROWS(OutOfMemory, (void)Pool::allocate(size_t{1} << 50));
    CHECK_THROWS(OutOfMemory, (void)Pool::allocate(SIZE_MAX - 100));
  });

  runner.run("the oldest cached blocks are given back first", [] {
    Pool::trim();
    Pool::set_limit(Pool::stats().in_use + (40 << 20));
    std::vector<Ref<Block>> blocks;
    for (int i = 0; i < 8; ++i) blocks.push_back(Pool::allocate(4 << 20));
    void* const last = blocks.back()->data();
    for (Ref<Block>& block : blocks) block.reset();
    CHECK(Pool::stats().cached <= (20u << 20) && Pool::stats().cached >= (16u << 20));
    CHECK(Pool::allocate(4 << 20)->data() == last);
    Pool::set_limit(0);
  });

  runner.run("foreign blocks call their deleter once", [] {
    int deleted = 0;
    char memory[16];
    {
      Ref<Block> block = Block::foreign(
          memory, sizeof memory, [](void* context) { ++*static_cast<int*>(context); }, &deleted);
      const Ref<Block> other = block;
      CHECK(!block->pooled() && !block->exclusive());
      block.reset();
      CHECK_EQUAL(deleted, 0);
    }
    CHECK_EQUAL(deleted, 1);
  });

  runner.run("threads allocate, pass on and free", [] {
    Pool::trim();
    const size_t before = Pool::stats().in_use;
    std::vector<std::vector<Ref<Block>>> passed(4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&passed, t] {
        for (int round = 0; round < 200; ++round) {
          const size_t bytes = static_cast<size_t>((round * 37 + t * 11) % 5000);
          Ref<Block> block = Pool::allocate(bytes);
          std::memset(block->data(), t, bytes);
          if (round % 4 == 0) passed[static_cast<size_t>(t)].push_back(std::move(block));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::thread([&passed] { passed.clear(); }).join();
    CHECK_EQUAL(Pool::stats().in_use, before);
  });

  runner.run("one reference shared by many threads", [] {
    const Ref<Block> block = Pool::allocate(64);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&block] {
        for (int i = 0; i < 1000; ++i) const Ref<Block> copy = block;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(block->exclusive());
  });

  runner.run("a full thread cache passes blocks on", [] {
    std::vector<Ref<Block>> blocks;
    for (int i = 0; i < 500; ++i) blocks.push_back(Pool::allocate(64));
    const size_t in_use = Pool::stats().in_use;
    blocks.clear();
    CHECK_EQUAL(in_use - Pool::stats().in_use, 500u * 64u);
  });

  runner.run("a forked child allocates", [] {
    Ref<Block> held = Pool::allocate(1000);
    CHECK(true_in_child([&] {
      Ref<Block> small = Pool::allocate(1000), large = Pool::allocate(4 << 20);
      std::memset(large->data(), 1, 4 << 20);
      held.reset();
      return Pool::trim() > 0;
    }));
  });
}

}  // namespace jato::test
