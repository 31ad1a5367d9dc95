// The threads of the process: parallel_for over a range, shared by everything that runs.
//
// There are num_threads - 1 workers, started when first needed; the thread that calls
// parallel_for works too.  Several threads may call at once; when callers and workers together
// would exceed num_threads, the callers run with fewer helpers.  A call from inside a parallel_for
// runs serially.  Workers spin for some tens of microseconds after work, because that is when
// the next step of a program arrives, and sleep after that.  A forked child starts a fresh pool.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace jato {

// The default: JATO_NUM_THREADS, else the smaller of the affinity mask and the cgroup's CPU quota.
int default_num_threads();
// What parallel_for on this thread uses: the innermost pushed number, else the process's.
int num_threads();
// Sets the number for the process; 0 restores the default.
void set_num_threads(int n);

// Overrides for the calling thread (the `with` form), nestable.  Jobs queued on a device run
// with the number of the thread that queued them.
void push_num_threads(int n);
void pop_num_threads();
// The override of this thread, 0 when there is none; for handing it to another thread.
int thread_override();
void set_thread_override(int n);

using RangeFn = void (*)(void* context, int64_t begin, int64_t end, int worker);

// Calls fn on disjoint ranges that cover [0, n).  Each range begins at a multiple of `grain`;
// `worker` is below the caller's num_threads() and differs between ranges that run at the same time.  The
// first exception of fn ends the loop early and is thrown to the caller.  Each thread begins with a share of
// its own, the same one when it meets the same n again, and goes on with what is left of the others'.
void parallel_for_impl(int64_t n, int64_t grain, RangeFn fn, void* context);

// Calls the callable that `context` points to.
template <class Callable>
void call_range(void* context, int64_t begin, int64_t end, int worker) {
  (*static_cast<Callable*>(context))(begin, end, worker);
}

template <class F>
void parallel_for(int64_t n, int64_t grain, F&& fn) {
  parallel_for_impl(n, grain, call_range<std::remove_reference_t<F>>,
                    const_cast<void*>(static_cast<const void*>(&fn)));
}

// As parallel_for with each item a range of its own, on at most `threads` threads; `worker` is below `threads`.
void parallel_for_each_impl(int64_t n, int threads, RangeFn fn, void* context);

// fn(i, worker) for each i below n.  Of T threads the first begins with the first n / T items, and so on; one
// that has done its own takes those of others, one by one.
template <class F>
void parallel_for_each(int64_t n, int threads, F&& fn) {
  auto items = [&fn](int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i) fn(i, worker);
  };
  parallel_for_each_impl(n, threads, call_range<decltype(items)>, &items);
}

// True while the calling thread runs a range of a parallel_for.
bool in_parallel_region();

// Scratch memory of the calling thread: at least `bytes`, 64-byte aligned, valid until this
// thread asks again.  Only grows.
void* thread_scratch(size_t bytes);
// The same, but memory that uses of thread_scratch leave alone: the packed factor of a matrix product, between
// whose blocks of rows a thread does other work.  By thread, so that it is in this thread's caches.
void* thread_panels(size_t bytes);

}  // namespace jato
