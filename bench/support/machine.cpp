#include "support/machine.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include <braid/core/version.hpp>

namespace bench {
namespace {

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  std::string line, model, family, number;
  const auto value = [&] { return line.substr(std::min(line.size(), line.find(':') + 2)); };
  while (std::getline(in, line) && !line.empty()) {
    if (line.rfind("model name", 0) == 0) model = value();
    else if (line.rfind("cpu family", 0) == 0) family = value();
    else if (line.rfind("model\t", 0) == 0) number = value();
  }
  return model.empty() ? "unknown" : model + " (family " + family + " model " + number + ")";
}

std::string isa() {
#if defined(__x86_64__)
  std::string best = "sse2";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) best = "avx2";
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    best = "avx512";
  const char* forced = std::getenv("BRAID_ISA");
  return forced && *forced ? best + " (BRAID_ISA=" + forced + ")" : best;
#else
  return "generic";
#endif
}

std::string compiler() {
#if defined(__clang__)
  return "clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__);
#else
  return "g++ " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__);
#endif
}

// The commit of the sources, with "+changes" if they differ from it. "unknown" outside a git
// checkout.
std::string commit() {
  const std::string git = std::string("git -C '") + BRAID_SOURCE_DIR + "' ";
  const std::string command = git + "rev-parse --short HEAD 2>/dev/null && " + git +
                              "diff --quiet HEAD 2>/dev/null || echo +changes";
  std::string out;
  if (FILE* pipe = popen(command.c_str(), "r")) {
    std::array<char, 128> buffer{};
    while (std::fgets(buffer.data(), buffer.size(), pipe))
      for (const char* c = buffer.data(); *c; ++c)
        if (*c != '\n') out += *c;
    pclose(pipe);
  }
  return out.empty() || out[0] == '+' ? "unknown" : out;
}

double load() {
  double values[1] = {0};
  return getloadavg(values, 1) == 1 ? values[0] : -1;
}

double memory_gib() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(sysconf(_SC_PAGE_SIZE)) / (1024.0 * 1024.0 * 1024.0);
}

std::string kernel() {
  utsname name{};
  return uname(&name) == 0 ? std::string(name.sysname) + " " + name.release : "unknown";
}

// The processors that share a core with this one, as the kernel lists them, or this one if it does
// not.
std::string siblings(int cpu) {
  std::ifstream in("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                   "/topology/thread_siblings_list");
  std::string list;
  return std::getline(in, list) && !list.empty() ? list : std::to_string(cpu);
}

struct Cores {
  std::vector<int> list;
  std::size_t physical = 0;
  Cores() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) CPU_SET(0, &mask);
    std::set<std::string> seen;
    std::vector<int> rest;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &mask)) (seen.insert(siblings(cpu)).second ? list : rest).push_back(cpu);
    physical = list.size();
    list.insert(list.end(), rest.begin(), rest.end());
  }
};
// Read once, before any thread is pinned: the first call comes from main.
const Cores& all_cores() {
  static const Cores cores;
  return cores;
}

}  // namespace

std::vector<int> cores() { return all_cores().list; }
std::size_t physical_cores() { return all_cores().physical; }

std::string core_list(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count && i < all_cores().list.size(); ++i)
    text += (i ? "," : "") + std::to_string(all_cores().list[i]);
  return text;
}

void stay_on(std::size_t count) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (std::size_t i = 0; i < count && i < all_cores().list.size(); ++i)
    CPU_SET(all_cores().list[i], &mask);
  sched_setaffinity(0, sizeof mask, &mask);  // if the system refuses, threads are not pinned
}

Json machine_card() {
  Json card;
  card.set("cpu", cpu_model())
      .set("cores", static_cast<int>(all_cores().physical))
      .set("threads", static_cast<int>(std::thread::hardware_concurrency()));
  card.set("isa", isa())
      .set("memory_gib", memory_gib())
      .set("compiler", compiler())
      .set("kernel", kernel());
  card.set("braid", braid::version()).set("commit", commit()).set("load", load());
  return card;
}

std::string machine_line() {
  char memory[32], busy[32];
  std::snprintf(memory, sizeof memory, "%.0f GiB", memory_gib());
  std::snprintf(busy, sizeof busy, "%.2f", load());
  return cpu_model() + ", " + std::to_string(all_cores().physical) + " cores, " + isa() + ", " +
         memory + ", " + kernel() + ", " + compiler() + ", commit " + commit() + ", load " + busy;
}

std::string busy_warning() {
  const double now = load();
  if (now < 0.5) return "";
  char text[120];
  std::snprintf(text, sizeof text,
                "warning: the load was %.1f before the start: other programs share the cores, do "
                "not quote these figures",
                now);
  return text;
}

}  // namespace bench
