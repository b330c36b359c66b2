//! What a workload is, and what all of them use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

using Vec = std::vector<double>;

/// Functions that are measured are not merged with what calls them.
#define KERNEL __attribute__((noinline))

/// The field's entry point: the plugin answers calls of it.
template <typename... Types> double __enzyme_autodiff(Types...);
extern int enzyme_dup, enzyme_const;

/// A function to differentiate, on arguments of its own.
struct Workload {
  /// The function.
  std::function<double()> primal;
  /// Its gradient, and the same written by hand: all parameters' one after the other.
  std::function<Vec()> gradient, by_hand;
  /// Arithmetic of the primal, in operations.
  double operations;
  /// What the gradient reads and writes at least, in bytes: arguments, and their cotangents.
  double bytes;
};

/// Seconds of the processor's time since some moment.
double processor_time();

/// Seconds of the processor for one run.
template <typename Run> double seconds(const Run &run) {
  const double start = processor_time();
  run();
  return processor_time() - start;
}

/// What the processor gives at best, a second: operations, and bytes of memory.
struct Roof {
  double operations, bytes;
};
Roof roof(bool small);

/// Numbers between -1 and 1, the same in each run (SplitMix64).
struct Random {
  uint64_t state;
  double number() {
    state += 0x9e3779b97f4a7c15u;
    uint64_t bits = state;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
    return double(bits >> 11) / double(uint64_t(1) << 52) - 1.0;
  }
  Vec numbers(size_t count) {
    Vec all(count);
    for (auto &x : all) x = number();
    return all;
  }
};

/// The workloads; each in a file of its name.
Workload gmm(bool small), ba(bool small), lse(bool small), llsq(bool small), ode(bool small), det(bool small),
    lstm(bool small), kmeans(bool small), ht(bool small);
