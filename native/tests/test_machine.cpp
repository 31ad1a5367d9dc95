#include <cstdlib>

#include "check.h"
#include "dtype.h"
#include "machine.h"

namespace jato::test {

void test_machine(Runner& runner) {
  runner.run("processors and memory are positive", [] {
    CHECK(available_cpus() >= 1);
    CHECK(available_memory() > (16u << 20));
  });

  runner.run("numbers of the environment", [] {
    const auto number = [](const char* text, bool suffixes) {
      setenv("JATO_TEST_NUMBER", text, 1);
      return environment_number("JATO_TEST_NUMBER", -7, suffixes);
    };
    CHECK_EQUAL(number("12", false), 12);
    CHECK_EQUAL(number("0", false), 0);
    CHECK_EQUAL(number("2K", true), 2048);
    CHECK_EQUAL(number("1.5GiB", true), 3ll << 29);
    CHECK_EQUAL(number("3mb", true), 3ll << 20);
    for (const char* bad : {"", "x", "-1", "2K", "1e30", "3 4", "nan"}) CHECK_EQUAL(number(bad, false), -7);
    unsetenv("JATO_TEST_NUMBER");
    CHECK_EQUAL(environment_number("JATO_TEST_NUMBER", 5), 5);
  });

  runner.run("element types", [] {
    CHECK_EQUAL(itemsize(DType::Bool), 1u);
    CHECK_EQUAL(itemsize(DType::BFloat16), 2u);
    CHECK_EQUAL(itemsize(DType::Complex128), 16u);
    CHECK_EQUAL(itemsize(DType::Float0), 1u);
    CHECK_EQUAL(itemsize(DType::Key), 8u);
    CHECK(std::string(name(DType::UInt16)) == "uint16" && std::string(name(DType::Key)) == "key");
    CHECK(!is_valid_dtype(kNumDTypes) && !is_valid_dtype(-1) && is_valid_dtype(0));
  });
}

}  // namespace jato::test
