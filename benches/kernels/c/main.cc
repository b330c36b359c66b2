//! Gradients of kernels in C++ against the kernels themselves: in one process, one thread, interleaved; medians of the
//! processor's time.
//!
//!     kernels [--small] [--json] [NAME..]
//!
//! With `--json` one object goes to the standard output: the ratio of each workload by its name. The table goes to the
//! standard error. Every gradient is compared with one written by hand first.

#include "bench.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

static double now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

static double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Seconds of the processor for one run.
template <typename Run> static double seconds(const Run &run) {
  const double start = now(CLOCK_PROCESS_CPUTIME_ID);
  run();
  return now(CLOCK_PROCESS_CPUTIME_ID) - start;
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
  std::fprintf(stderr, "%-8s%12s%12s%12s%8s%9s%14s%14s\n", "C++", "primal ms", "gradient", "by hand", "ratio", "by hand",
               "primal GFLOP/s", "gradient GB/s");
  const char *between = "{";
  for (const auto &workload : workloads) {
    const char *name = workload.name;
    const auto is = [&](const char *word) { return !std::strcmp(word, name); };
    if (!names.empty() && std::none_of(names.begin(), names.end(), is)) continue;
    const Workload w = workload.make(small);
    check(name, w);
    const Times t = measured(w, small);
    std::fprintf(stderr, "%-8s%12.3f%12.3f%12.3f%8.2f%9.2f%14.2f%14.2f\n", name, 1e3 * t.primal, 1e3 * t.gradient,
                 1e3 * t.by_hand, t.gradient / t.primal, t.by_hand / t.primal, 1e-9 * w.operations / t.primal,
                 1e-9 * w.bytes / t.gradient);
    if (json) std::printf("%s\"%s\": %.4f", between, name, t.gradient / t.primal);
    between = ", ";
  }
  if (json) std::printf("%s}\n", between[0] == '{' ? "{" : "");
}
