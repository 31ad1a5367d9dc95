// Threads of the runtime take no signals: those belong to the embedding language, whose main
// thread would otherwise not notice Ctrl-C.  Faults stay unblocked, so that a crash is reported.
#pragma once
#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace jato {

// While it lives, threads that the calling thread starts begin with signals blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace jato
