// Shape: most containers of the library beside each other.
// Hard: nodes of many kinds, with keys beside floats.
#include "check.h"
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <unordered_map>
#include <vector>
#include <bitset>
static double f(double *x, int n) {
  std::map<std::pair<int, int>, double> grid; for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) if ((i + j) % 2) grid[{i, j}] += x[i] * x[j]; double s = 0; for (auto &[k, v] : grid) s += v * (k.first + 2 * k.second);
  std::unordered_map<int, std::vector<double>> adj; for (int i = 0; i < n; i++) { adj[i].push_back(x[i]); adj[(i + 1) % n].push_back(x[i] * .5); } for (int i = 0; i < n; i++) for (double w : adj[i]) s += w * w;
  using QE = std::pair<double, int>; std::priority_queue<QE, std::vector<QE>, std::greater<QE>> pq; std::vector<double> dist(n, 1e9); dist[0] = 0; pq.push({0, 0}); std::bitset<16> done; while (!pq.empty()) { auto [d, u] = pq.top(); pq.pop(); if (done[u]) continue; done.set(u); for (int v = 0; v < n; v++) if (v != u) { double nd = d + std::fabs(x[u] - x[v]) + .1 * x[v] * x[v]; if (nd < dist[v]) { dist[v] = nd; pq.push({nd, v}); } } } for (int i = 0; i < n; i++) s += dist[i] * (i + 1);
  std::list<double> l(x, x + n); l.splice(l.begin(), l, std::prev(l.end())); l.sort(); l.remove_if([](double v) { return v < 0; }); l.reverse(); std::list<double> l2{x[0], x[1]}; l2.sort(); s += l2.front(); for (auto it = l.begin(); it != l.end();) { s = s * .9 + *it; it = *it > 1 ? l.erase(it) : std::next(it); }
  std::deque<double> dq; for (int i = 0; i < 2 * n; i++) { i & 1 ? dq.push_back(x[i % n]) : dq.push_front(x[i % n] * .3); if (dq.size() > 3) dq.pop_back(); } for (double v : dq) s += v; std::multimap<int, double> mm; for (int i = 0; i < n; i++) mm.emplace(i % 2, x[i]); auto [b, e] = mm.equal_range(1); for (; b != e; ++b) s += b->second * b->second; std::set<double> st(x, x + n); s += *st.begin() * *std::next(st.begin()); std::stack<double> sk; for (int i = 0; i < n; i++) { sk.push(x[i]); if (i % 3 == 2) { double a = sk.top(); sk.pop(); sk.top() *= a; } } while (!sk.empty()) { s += sk.top(); sk.pop(); } std::forward_list<double> fl; for (int i = 0; i < n; i++) fl.push_front(x[i]); int i = 1; for (double v : fl) s += v * i++; std::vector<bool> vb(n); vb[1] = true; for (int j = 0; j < n; j++) if (vb[j]) s += x[j]; std::vector<std::vector<std::vector<double>>> t3(2, std::vector<std::vector<double>>(2, std::vector<double>(2, x[0]))); t3[1][0][1] *= x[1]; for (auto &p : t3) for (auto &q : p) for (double v : q) s += v * v; return s;
}
int main() { VECTOR(f, 5, 0.53, .47, 0.76, -.4, 1.2); return bad; }
