// Deadline: a cancel flag that raises itself when its time is over.
//
// A loop whose number of iterations nobody knows is tried at once on the calling thread, where a
// short one costs nothing but itself.  One that is still running at the deadline is given up and
// starts again on its device's queue, where it can be waited for and interrupted.
//
// One thread looks at all deadlines every half millisecond while there are any; a few milliseconds
// after the last one it sleeps.  So setting a deadline costs a look at the clock.
#pragma once
#include <chrono>
#include <cstdint>

namespace jato {

// At most one at a time on a thread.
class Deadline {
 public:
  explicit Deadline(std::chrono::nanoseconds budget);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // Nonzero once the time is over; valid as long as this object.
  const volatile int32_t* flag() const noexcept { return flag_; }

 private:
  const volatile int32_t* flag_;
};

}  // namespace jato
