// What the machine gives this process: processors and memory, within its affinity mask and cgroup.
#pragma once
#include <cstddef>

namespace jato {

// Processors this process may keep busy, at least 1: the smaller of the affinity mask and the cgroup's
// CPU quota, rounded up.
int available_cpus();
// Bytes of memory this process may use: the smaller of physical memory and the cgroup's limit.
size_t available_memory();

// The number in an environment variable; `fallback` when it is unset, empty or not a number >= 0.
// `suffixes`: K, M, G and T (powers of 1024, an optional "B" or "iB" after them) are understood.
long long environment_number(const char* variable, long long fallback, bool suffixes = false);

}  // namespace jato
