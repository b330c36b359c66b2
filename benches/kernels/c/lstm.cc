//! Layers of long short-term memory with elementwise gates, over a sequence.

#include "bench.h"
#include <cmath>
#include <cstring>

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One layer, one time: `w` has four rows of weights, then four rows of biases.
static void layer(const double *__restrict w, double *__restrict hidden, double *__restrict cell,
                  const double *__restrict input, size_t b) {
  for (size_t i = 0; i < b; i++) {
    const double forget = sigmoid(input[i] * w[i] + w[4 * b + i]);
    const double enter = sigmoid(hidden[i] * w[b + i] + w[5 * b + i]);
    const double leave = sigmoid(input[i] * w[2 * b + i] + w[6 * b + i]);
    const double change = std::tanh(hidden[i] * w[3 * b + i] + w[7 * b + i]);
    cell[i] = cell[i] * forget + enter * change;
    hidden[i] = leave * std::tanh(cell[i]);
  }
}

/// `main` has the layers' weights, `extra` those of input and output, and the output's biases.
KERNEL static double primal(const double *__restrict main, const double *__restrict extra,
                            const double *__restrict start, const double *__restrict sequence, size_t layers,
                            size_t times, size_t b) {
  Vec state(start, start + 2 * layers * b), input(b), guess(b);
  double total = 0;
  for (size_t t = 0; t < times; t++) {
    for (size_t i = 0; i < b; i++) input[i] = sequence[t * b + i] * extra[i];
    for (size_t l = 0; l < layers; l++) {
      double *hidden = &state[2 * l * b];
      layer(&main[8 * l * b], hidden, hidden + b, input.data(), b);
      std::memcpy(input.data(), hidden, b * sizeof(double));
    }
    double sum = 2;
    for (size_t i = 0; i < b; i++) {
      guess[i] = input[i] * extra[b + i] + extra[2 * b + i];
      sum += std::exp(guess[i]);
    }
    sum = std::log(sum);
    for (size_t i = 0; i < b; i++) total += sequence[(t + 1) * b + i] * (guess[i] - sum);
  }
  return -total / double(times * b);
}

/// What one unit of a layer did at one time: input, hidden and cell before, gates, the cell's hyperbolic tangent.
struct Unit {
  double input, hidden, cell, forget, enter, leave, change, tanh;
};

/// What the loss is differentiated at.
struct Net {
  size_t layers, times, b;
  Vec main, extra, start, sequence;
};

/// The forward sweep: all units, and all outputs.
static void forward(const Net &n, std::vector<Unit> &units, Vec &outputs) {
  Vec state = n.start, input(n.b);
  for (size_t t = 0; t < n.times; t++) {
    for (size_t i = 0; i < n.b; i++) input[i] = n.sequence[t * n.b + i] * n.extra[i];
    for (size_t l = 0; l < n.layers; l++) {
      const double *w = &n.main[8 * l * n.b];
      double *hidden = &state[2 * l * n.b], *cell = hidden + n.b;
      for (size_t i = 0; i < n.b; i++) {
        Unit u{input[i], hidden[i], cell[i], 0, 0, 0, 0, 0};
        u.forget = sigmoid(u.input * w[i] + w[4 * n.b + i]);
        u.enter = sigmoid(u.hidden * w[n.b + i] + w[5 * n.b + i]);
        u.leave = sigmoid(u.input * w[2 * n.b + i] + w[6 * n.b + i]);
        u.change = std::tanh(u.hidden * w[3 * n.b + i] + w[7 * n.b + i]);
        cell[i] = u.cell * u.forget + u.enter * u.change;
        u.tanh = std::tanh(cell[i]);
        input[i] = hidden[i] = u.leave * u.tanh;
        units.push_back(u);
      }
    }
    outputs.insert(outputs.end(), input.begin(), input.end());
  }
}

static Vec by_hand(const Net &n) {
  const size_t b = n.b;
  std::vector<Unit> units;
  Vec outputs, bars(n.main.size() + n.extra.size()), state_bar(n.start.size()), guess(b), below(b);
  units.reserve(n.times * n.layers * b);
  outputs.reserve(n.times * b);
  forward(n, units, outputs);
  double *main_bar = bars.data(), *extra_bar = main_bar + n.main.size();
  const double seed = -1 / double(n.times * b);
  for (size_t t = n.times; t-- > 0;) {
    const double *output = &outputs[t * b], *next = &n.sequence[(t + 1) * b];
    double sum = 2, all = 0;
    for (size_t i = 0; i < b; i++) {
      guess[i] = output[i] * n.extra[b + i] + n.extra[2 * b + i];
      sum += std::exp(guess[i]);
      all += next[i];
    }
    sum = std::log(sum);
    for (size_t i = 0; i < b; i++) {
      const double bar = seed * (next[i] - all * std::exp(guess[i] - sum));
      extra_bar[b + i] += bar * output[i];
      extra_bar[2 * b + i] += bar;
      below[i] = bar * n.extra[b + i];
    }
    for (size_t l = n.layers; l-- > 0;) {
      const double *w = &n.main[8 * l * b];
      double *w_bar = main_bar + 8 * l * b, *hidden_bars = &state_bar[2 * l * b], *cell_bars = hidden_bars + b;
      for (size_t i = 0; i < b; i++) {
        const Unit &u = units[(t * n.layers + l) * b + i];
        const double hidden_bar = hidden_bars[i] + below[i];
        const double cell_bar = cell_bars[i] + hidden_bar * u.leave * (1 - u.tanh * u.tanh);
        const double gates[4] = {cell_bar * u.cell * u.forget * (1 - u.forget),
                                 cell_bar * u.change * u.enter * (1 - u.enter),
                                 hidden_bar * u.tanh * u.leave * (1 - u.leave),
                                 cell_bar * u.enter * (1 - u.change * u.change)};
        const double from[4] = {u.input, u.hidden, u.input, u.hidden};
        for (size_t row = 0; row < 4; row++) {
          w_bar[row * b + i] += gates[row] * from[row];
          w_bar[(4 + row) * b + i] += gates[row];
        }
        cell_bars[i] = cell_bar * u.forget;
        hidden_bars[i] = gates[1] * w[b + i] + gates[3] * w[3 * b + i];
        below[i] = gates[0] * w[i] + gates[2] * w[2 * b + i];
      }
    }
    for (size_t i = 0; i < b; i++) extra_bar[i] += below[i] * n.sequence[t * b + i];
  }
  return bars;
}

Workload lstm(bool small) {
  const size_t layers = 2, times = small ? 5 : 4096, b = small ? 3 : 14;
  Random random{8};
  const Net n{layers, times, b, random.numbers(8 * layers * b), random.numbers(3 * b), random.numbers(2 * layers * b),
              random.numbers((times + 1) * b)};
  return {
      [=] { return primal(n.main.data(), n.extra.data(), n.start.data(), n.sequence.data(), layers, times, b); },
      [=] {
        Vec bars(n.main.size() + n.extra.size());
        __enzyme_autodiff(primal, enzyme_dup, n.main.data(), bars.data(), enzyme_dup, n.extra.data(),
                          &bars[n.main.size()], enzyme_const, n.start.data(), enzyme_const, n.sequence.data(), layers,
                          times, b);
        return bars;
      },
      [=] { return by_hand(n); },
      double(times * layers * b) * 110.0,
      8.0 * double(2 * times * b),
  };
}
