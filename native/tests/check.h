// A runner small enough to need no library.  A suite is a function that calls run("name", body) for
// each of its tests; CHECK reports the expression and throws, so that the next test goes on.
#pragma once
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace jato::test {

class Runner {
 public:
  explicit Runner(std::string suite) : suite_(std::move(suite)) {}

  void run(const char* name, const std::function<void()>& body) {
    try {
      body();
      std::printf("ok      %s / %s\n", suite_.c_str(), name);
    } catch (const std::exception& error) {
      std::printf("FAILED  %s / %s: %s\n", suite_.c_str(), name, error.what());
      ++failures_;
    }
    std::fflush(stdout);
  }
  int failures() const { return failures_; }

 private:
  std::string suite_;
  int failures_ = 0;
};

[[noreturn]] inline void check_failed(const char* file, int line, const std::string& what) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) ::jato::test::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#define CHECK_EQUAL(left, right)                                                                         \
  do {                                                                                                   \
    const auto left_value = (left);                                                                      \
    const auto right_value = (right);                                                                    \
    if (!(left_value == right_value))                                                                    \
      ::jato::test::check_failed(                                                                        \
          __FILE__, __LINE__,                                                                            \
          #left " is " + std::to_string(left_value) + ", " #right " is " + std::to_string(right_value)); \
  } while (false)

// The statement throws an E.
#define CHECK_THROWS(E, statement)                                                                 \
  do {                                                                                             \
    bool thrown = false;                                                                           \
    try {                                                                                          \
      statement;                                                                                   \
    } catch (const E&) {                                                                           \
      thrown = true;                                                                               \
    }                                                                                              \
    if (!thrown) ::jato::test::check_failed(__FILE__, __LINE__, #statement " does not throw " #E); \
  } while (false)

// Runs `body` in a forked child; whether it returned true there.
inline bool true_in_child(const std::function<bool()>& body) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    bool result = false;
    try {
      result = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in child: %s\n", error.what());
    }
    _exit(result ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace jato::test
