// native_tests [SUITE]: runs one suite, or all.
#include <cstring>

#include "check.h"

namespace jato::test {
void test_convolution(Runner& runner);
void test_deadline(Runner& runner);
void test_event(Runner& runner);
void test_executable(Runner& runner);
void test_fft(Runner& runner);
void test_library(Runner& runner);
void test_machine(Runner& runner);
void test_pool(Runner& runner);
void test_profile(Runner& runner);
void test_queue(Runner& runner);
void test_stages(Runner& runner);
void test_threadpool(Runner& runner);
void test_tile_copy(Runner& runner);
}  // namespace jato::test

int main(int argc, char** argv) {
  using namespace jato::test;
  struct Suite {
    const char* name;
    void (*body)(Runner&);
  };
  const Suite suites[] = {
      {"test_machine", test_machine},       {"test_pool", test_pool},
      {"test_threadpool", test_threadpool}, {"test_event", test_event},
      {"test_queue", test_queue},           {"test_profile", test_profile},
      {"test_library", test_library},       {"test_executable", test_executable},
      {"test_deadline", test_deadline},     {"test_convolution", test_convolution},
      {"test_tile_copy", test_tile_copy},   {"test_fft", test_fft},
      {"test_stages", test_stages},
  };
  int failures = 0;
  bool found = false;
  for (const Suite& suite : suites) {
    if (argc > 1 && std::strcmp(argv[1], suite.name) != 0) continue;
    found = true;
    Runner runner(suite.name);
    suite.body(runner);
    failures += runner.failures();
  }
  if (!found) std::fprintf(stderr, "no suite %s\n", argc > 1 ? argv[1] : "");
  return found && failures == 0 ? 0 : 1;
}
