//! Gradients of kernels in C++ against the kernels themselves: in one process, one thread, interleaved; medians of the
//! processor's time.
//!
//!     kernels [--small] [--json] [NAME..]
//!
//! With `--json` one object goes to the standard output: the seconds of each workload's primal, gradient, and gradient by
//! hand. The table goes to the standard error. Every gradient is compared with one written by hand first.
//!
//! The last columns are the roofline of the gradient. Its operations are counted as three of the primal's: itself, and in
//! the reverse a product for each operand. Its bytes are those of the arguments and their cotangents, and twice those of the
//! memory that it takes, as the system counts it: what it keeps is written once and read once. The time for either, at
//! the best that the processor gives, is a part of the time that was measured; the larger part is told. What is far from
//! both waits for something else: for one operation after the other, for branches, for calls.

#include "bench.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

static double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double processor_time() { return now(CLOCK_PROCESS_CPUTIME_ID); }

/// Bytes of memory that the gradient takes, in whole pages: those of a process of its own, as long as no gradient has left
/// any. Zero if there is no such process.
static double memory(const Workload &w) {
  int ends[2];
  if (pipe(ends)) return 0;
  const pid_t child = fork();
  if (child == 0) {
    rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    w.gradient();
    getrusage(RUSAGE_SELF, &after);
    // In kilobytes.
    const double bytes = 1024.0 * double(after.ru_maxrss - before.ru_maxrss);
    _exit(write(ends[1], &bytes, sizeof bytes) == sizeof bytes ? 0 : 1);
  }
  close(ends[1]);
  double bytes = 0;
  if (child < 0 || read(ends[0], &bytes, sizeof bytes) != sizeof bytes) bytes = 0;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return bytes;
}

/// The gradient is that by hand. Where terms of order one cancel, rounding is larger than the result.
static void check(const char *name, const Workload &w) {
  const Vec found = w.gradient(), wanted = w.by_hand();
  double largest = 1e-30;
  for (double x : wanted) largest = std::max(largest, std::fabs(x));
  for (size_t i = 0; i < wanted.size(); i++) {
    if (found.size() == wanted.size() && std::fabs(found[i] - wanted[i]) <= 1e-9 * largest + 1e-13) continue;
    std::fprintf(stderr, "%s: element %zu of the gradient is wrong\n", name, i);
    std::exit(1);
  }
}

struct Times {
  double primal, gradient, by_hand;
};

static Times measured(const Workload &w, bool small) {
  const double patience = small ? 0 : 2.5;
  const size_t least = small ? 1 : 5;
  std::vector<double> primal, gradient, by_hand;
  const double start = now(CLOCK_MONOTONIC);
  double sink = 0;
  while (primal.size() < least || (now(CLOCK_MONOTONIC) - start < patience && primal.size() < 1000)) {
    primal.push_back(seconds([&] { sink += w.primal(); }));
    gradient.push_back(seconds([&] { sink += w.gradient()[0]; }));
    by_hand.push_back(seconds([&] { sink += w.by_hand()[0]; }));
  }
  // What nobody reads may not be computed.
  if (std::isnan(sink)) std::fputs("not a number\n", stderr);
  return {median(primal), median(gradient), median(by_hand)};
}

int main(int count, char **words) {
  const struct {
    const char *name;
    Workload (*make)(bool small);
  } workloads[] = {{"gmm", gmm}, {"ba", ba},     {"lse", lse},       {"llsq", llsq}, {"ode", ode},
                   {"det", det}, {"lstm", lstm}, {"kmeans", kmeans}, {"ht", ht}};
  bool small = false, json = false;
  std::vector<const char *> names;
  for (int i = 1; i < count; i++) {
    if (!std::strcmp(words[i], "--small")) small = true;
    else if (!std::strcmp(words[i], "--json")) json = true;
    else names.push_back(words[i]);
  }
  const Roof best = roof(small);
  std::fprintf(stderr, "at best %.1f GFLOP/s, %.1f GB/s\n", 1e-9 * best.operations, 1e-9 * best.bytes);
  std::fprintf(stderr, "%-8s%12s%12s%12s%8s%9s%11s%9s%9s%9s  %s\n", "C++", "primal ms", "gradient", "by hand", "ratio",
               "by hand", "primal G/s", "GFLOP/s", "takes MB", "GB/s", "of the roof");
  const auto wanted = [&](const char *name) {
    const auto is = [&](const char *word) { return !std::strcmp(word, name); };
    return names.empty() || std::any_of(names.begin(), names.end(), is);
  };
  std::vector<double> taken_by;
  for (const auto &workload : workloads) taken_by.push_back(wanted(workload.name) ? memory(workload.make(small)) : 0);
  const char *between = "{";
  for (size_t k = 0; k < taken_by.size(); k++) {
    const char *name = workloads[k].name;
    if (!wanted(name)) continue;
    const Workload w = workloads[k].make(small);
    const double taken = taken_by[k];
    check(name, w);
    const Times t = measured(w, small);
    const double operations = 3 * w.operations, bytes = w.bytes + 2 * taken;
    const double in_operations = operations / best.operations, in_bytes = bytes / best.bytes;
    std::fprintf(stderr, "%-8s%12.3f%12.3f%12.3f%8.2f%9.2f%11.2f%9.2f%9.1f%9.2f  %.0f%% %s\n", name, 1e3 * t.primal,
                 1e3 * t.gradient, 1e3 * t.by_hand, t.gradient / t.primal, t.by_hand / t.primal,
                 1e-9 * w.operations / t.primal, 1e-9 * operations / t.gradient, 1e-6 * taken, 1e-9 * bytes / t.gradient,
                 100 * std::max(in_operations, in_bytes) / t.gradient,
                 in_operations > in_bytes ? "arithmetic" : "memory");
    if (json) std::printf("%s\"%s\": [%.6e, %.6e, %.6e]", between, name, t.primal, t.gradient, t.by_hand);
    between = ", ";
  }
  if (json) std::printf("%s}\n", between[0] == '{' ? "{" : "");
}
