#include "machine.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#endif

namespace jato {
namespace {

bool read_first_line(const std::string& path, std::string& line) {
  std::ifstream file(path);
  return file && std::getline(file, line);
}

// The folders that may hold this process's limits of one controller: its own cgroup and all above.
// Version 1 has a mount per controller and lines "7:cpu,cpuacct:/path"; version 2 has one tree
// and the line "0::/path".  Inside a container the path may not exist below the mount: then only
// the mount itself, where the container's own limits appear, is left.
std::vector<std::string> cgroup_folders(const std::string& controller) {
  const std::string root = "/sys/fs/cgroup";
  std::vector<std::string> folders;
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string path = line.substr(second + 1);
    std::string base;
    const std::string names = line.substr(first + 1, second - first - 1);
    if (names.empty()) {
      base = root;
    } else if (("," + names + ",").find("," + controller + ",") != std::string::npos) {
      base = root + "/" + controller;
    } else {
      continue;
    }
    for (;;) {
      folders.push_back(base + (path == "/" ? "" : path));
      if (path.empty() || path == "/") break;
      path = path.substr(0, path.rfind('/'));
      if (path.empty()) path = "/";
    }
  }
  return folders;
}

double cgroup_cpus() {
  double cpus = 1e9;
  for (const std::string& folder : cgroup_folders("cpu")) {
    std::string line;
    double quota = -1, period = 0;
    if (read_first_line(folder + "/cpu.max", line)) {
      std::istringstream(line) >> quota >> period;  // "max 100000" leaves quota at 0
    } else if (read_first_line(folder + "/cpu.cfs_quota_us", line)) {
      quota = std::strtod(line.c_str(), nullptr);
      if (read_first_line(folder + "/cpu.cfs_period_us", line)) period = std::strtod(line.c_str(), nullptr);
    }
    if (quota > 0 && period > 0) cpus = std::min(cpus, quota / period);
  }
  return cpus;
}

}  // namespace

int available_cpus() {
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  // A set of 1024 processors is too small for some machines; the call says so, and then all are ours.
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
#endif
  const double quota = cgroup_cpus();
  if (quota < cpus) cpus = static_cast<int>(quota) + (quota > static_cast<int>(quota) ? 1 : 0);
  return std::max(cpus, 1);
}

size_t available_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  size_t memory =
      pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : SIZE_MAX / 2;
  for (const std::string& folder : cgroup_folders("memory")) {
    std::string line;
    if (!read_first_line(folder + "/memory.max", line) &&
        !read_first_line(folder + "/memory.limit_in_bytes", line)) {
      continue;
    }
    const unsigned long long limit = std::strtoull(line.c_str(), nullptr, 10);  // "max" gives 0
    if (limit > 0) memory = std::min(memory, static_cast<size_t>(limit));
  }
  return memory;
}

long long environment_number(const char* variable, long long fallback, bool suffixes) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || !(value >= 0)) return fallback;
  double factor = 1;
  if (suffixes) {
    const char letters[] = "KMGT";
    for (int i = 0; i < 4; ++i) {
      if (std::toupper(static_cast<unsigned char>(*end)) == letters[i]) {
        factor = static_cast<double>(1ull << (10 * (i + 1)));
        ++end;
        break;
      }
    }
    if (*end == 'i') ++end;
    if (*end == 'B' || *end == 'b') ++end;
  }
  if (*end != '\0' || value * factor > 9e18) return fallback;
  return static_cast<long long>(value * factor);
}

}  // namespace jato
