// Shape: an expression tree with visitors and clones, shared nodes that know their parents.
// Hard: one byte of an object is copied that another class has a pointer at.
#include "check.h"
#include <memory>
#include <vector>
#include <string>
struct Num; struct Var; struct Bin;
struct Visitor { virtual ~Visitor() = default; virtual void visit(const Num &) = 0; virtual void visit(const Var &) = 0; virtual void visit(const Bin &) = 0; };
struct Node { virtual ~Node() = default; virtual void accept(Visitor &v) const = 0; virtual std::unique_ptr<Node> clone() const = 0; };
struct Num : Node { double v; Num(double v) : v(v) {} void accept(Visitor &w) const override { w.visit(*this); } std::unique_ptr<Node> clone() const override { return std::make_unique<Num>(v); } };
struct Var : Node { int i; std::string name; Var(int i) : i(i), name(30, 'x') {} void accept(Visitor &w) const override { w.visit(*this); } std::unique_ptr<Node> clone() const override { return std::make_unique<Var>(i); } };
struct Bin : Node { char op; std::unique_ptr<Node> a, b; Bin(char op, std::unique_ptr<Node> a, std::unique_ptr<Node> b) : op(op), a(std::move(a)), b(std::move(b)) {} void accept(Visitor &w) const override { w.visit(*this); } std::unique_ptr<Node> clone() const override { return std::make_unique<Bin>(op, a->clone(), b->clone()); } };
struct Eval : Visitor { const double *x; double r = 0; int depth = 0; Eval(const double *x) : x(x) {} void visit(const Num &n) override { r = n.v; } void visit(const Var &v) override { r = x[v.i] * (v.name.size() == 30); } void visit(const Bin &b) override { depth++; b.a->accept(*this); double l = r; b.b->accept(*this); r = b.op == '+' ? l + r : b.op == '*' ? l * r : std::pow(l, r); } };
struct Tree { double v; std::vector<std::shared_ptr<Tree>> kids; std::weak_ptr<Tree> up; };
static double sum(const Tree &t) { double s = t.v * t.v; for (auto &k : t.kids) s += .5 * sum(*k); if (auto p = t.up.lock()) s += p->v * t.v; return s; }
static double f(double *x, int n) {
  auto e = std::make_unique<Bin>('+', std::make_unique<Bin>('*', std::make_unique<Var>(0), std::make_unique<Num>(x[1] * 3)), std::make_unique<Bin>('^', std::make_unique<Var>(2), std::make_unique<Var>(0)));
  auto c = std::make_unique<Bin>('*', e->clone(), std::move(e)); Eval v(x); c->accept(v);
  auto root = std::make_shared<Tree>(); root->v = x[0]; for (int i = 1; i < n; i++) { auto k = std::make_shared<Tree>(); k->v = x[i]; k->up = root; root->kids.push_back(k); if (i > 1) k->kids.push_back(root->kids[0]); }
  return v.r + v.depth + sum(*root);
}
int main() { VECTOR(f, 3, 0.53, .27, 0.76); return bad; }
