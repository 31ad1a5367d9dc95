#include <cstring>
#include <thread>

#include "check.h"
#include "profile.h"

namespace jato::test {

void test_profile(Runner& runner) {
  runner.run("records while started", [] {
    profile_record("before", 0, 1, 0);
    CHECK(!profile_enabled());
    profile_start(8);
    CHECK(profile_enabled());
    profile_record("a name that is much longer than the room that a record has for it", 1, 2, 30);
    std::thread([] { profile_record("other thread", 3, 4, 0); }).join();
    const std::vector<ProfileRecord> records = profile_stop();
    CHECK(!profile_enabled());
    CHECK_EQUAL(records.size(), 2u);
    CHECK_EQUAL(std::strlen(records[0].name), 47u);
    CHECK_EQUAL(records[0].bytes, 30);
    CHECK(records[0].thread != records[1].thread);
    CHECK(profile_stop().empty());
  });

  runner.run("keeps the last records in order", [] {
    profile_start(4);
    for (int i = 0; i < 11; ++i) profile_record("step", i, i + 1, 0);
    const std::vector<ProfileRecord> records = profile_stop();
    CHECK_EQUAL(records.size(), 4u);
    for (size_t i = 0; i < 4; ++i) CHECK_EQUAL(records[i].start_ns, static_cast<int64_t>(7 + i));
  });
}

}  // namespace jato::test
