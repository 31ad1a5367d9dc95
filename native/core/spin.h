// Waiting for some tens of microseconds without going to sleep.
//
// Waking a sleeping thread costs its waker a system call and itself 10 to 60 us, more than many a step
// of a program takes.  But when processors are short, the thread that would end the wait may be
// standing in line behind the one that spins (measured: each parallel_for took 45 us longer): so a
// spinning thread looks at where the other one was last, and yields when it shares its processor.
// Always yielding would hand the processor to unrelated programs too, for milliseconds; a thread
// that went to sleep was woken beside the other one again and cost it 5 us each time.
#pragma once
#include <sched.h>

#include <chrono>

namespace jato {

// One polite iteration of a spinning loop.
inline void cpu_relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// The processor this thread is on, -1 where the system does not tell.
inline int current_cpu() noexcept {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

// Spins until condition() is true, at most for `time`; returns the condition.  On the processor
// `other_cpu()`, that of the thread which would make it true, it makes way for that thread.
template <class Condition, class Cpu>
bool spin_until(Condition&& condition, Cpu&& other_cpu, std::chrono::nanoseconds time) {
  constexpr int kRelaxes = 32;  // about 1 us: between looks at the clock
  const auto until = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < kRelaxes; ++i) {
      if (condition()) return true;
      cpu_relax();
    }
    const int cpu = current_cpu();
    if (cpu >= 0 && cpu == other_cpu()) sched_yield();
  } while (std::chrono::steady_clock::now() < until);
  return condition();
}

}  // namespace jato
