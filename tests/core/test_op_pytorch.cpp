// Compares every op of the table with PyTorch's float64 values and gradients (tests/goldens/ops),
// in every dtype and layout and on every device.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include <braid/core/autograd.hpp>
#include <braid/core/ops/softmax.hpp>

#include "op_samples.hpp"
#include "reference/softmax.hpp"
#include "support/errors.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

/// The largest error so far, in units of the tolerance, and its location.
struct Worst {
  double units = 0;
  std::string where;
};
std::ostream& operator<<(std::ostream& out, const Worst& w) {
  return out << w.units << " of the bound (" << w.where << ")";
}

/// One call of a case, and its results.
struct Call {
  const OpCase& c;
  const Sample& s;
  DType dtype;
  Device device;
  const std::vector<Layout>& layout;
  std::vector<Tensor> inputs = {}, outputs = {};
  bool refused = false;

  void run(bool with_gradient) {
    for (std::size_t i = 0; i < s.inputs.size(); ++i) {
      inputs.push_back(laid_out(s.inputs[i], layout[i], type_of(c.inputs[i], dtype), device));
      if (with_gradient && is_floating(inputs.back().dtype())) inputs.back().requires_grad_();
    }
    try {
      outputs = c.call(inputs);
      synchronize(device);
    } catch (const Error&) {
      refused = true;
    }
  }
  [[nodiscard]] std::string where(const std::string& what) const {
    return describe(str(c.name(), ", ", s.kind), dtype, device, layout) + ", " + what;
  }
};

std::string both(const Array& want, const Tensor& got) {
  std::ostringstream out;
  out << "expected " << Shape(want.shape);
  for (const double x : want.data) out << ' ' << x;
  out << ", got " << got.shape();
  for (const double x : array_of(got).data) out << ' ' << x;
  return out.str();
}

/// Error of a gradient in units of four times tolerance(dtype).
double gradient_units(const Tensor& got, const Array& want) {
  if (sizes_of(got.shape()) != want.shape) return INFINITY;
  const Array y = array_of(got);
  const Tolerance t = tolerance(got.dtype());
  double largest = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    if (y[i] == want[i] || (std::isnan(y[i]) && std::isnan(want[i]))) continue;
    const double error = std::fabs(y[i] - want[i]) / (4 * (t.atol + t.rtol * std::fabs(want[i])));
    largest = std::isnan(error) ? INFINITY : std::max(largest, error);
  }
  return largest;
}

/// The state of a run over the whole table.
struct Comparison {
  Worst values, gradients, in_float32, theirs_in_float32;
  std::int64_t cells = 0, gradient_checks = 0;
  /// for each case: the matches of each entry, and whether they differ
  std::map<std::string, std::map<const Difference*, std::map<std::string, bool>>> declared;
  /// cached results of declared_difference(): every layout needs the same ones
  std::map<std::pair<const OpCase*, std::string>, const Difference*> asked;
  /// each failure is shown once, not for every dtype and layout
  std::set<std::string> failed;

  void fail(const std::string& what, const std::string& text) {
    if (failed.insert(what).second) FAIL_CHECK(text);
  }

  const Difference* difference(const OpCase& c, const std::string& what) {
    if (c.differs.empty()) return nullptr;
    const auto known = asked.find({&c, what});
    if (known != asked.end()) return known->second;
    return asked[{&c, what}] = declared_difference(c, what);
  }

  /// Evaluates `error`, in units of the tolerance: counts it, matches a declared difference, or
  /// fails.
  template <class Text>
  void judge(const Call& r, const std::string& what, double error, Worst& worst, const Text& text) {
    const bool differs = !(error <= 1);
    if (!differs && error > worst.units) worst = {error, r.where(what)};
    const std::string of_sample = r.s.kind + ": " + what;
    if (const Difference* d = difference(r.c, of_sample))
      declared[r.c.name()][d][of_sample] |= differs;
    else if (differs)
      fail(r.c.name() + of_sample,
           str(r.where(what), ": ", error, " of what is allowed: ", text()));
  }

  /// Every entry of the case must match something, and all its matches must differ.
  void check_declared(const OpCase& c) {
    for (const Difference& d : c.differs) {
      const auto& found = declared[c.name()][&d];
      if (found.empty())
        fail(c.name() + d.where,
             str(c.name(), ": nothing is like the declared difference ", d.where));
      for (const auto& [what, differs] : found)
        if (d.always && !differs)
          fail(c.name() + what,
               str(c.name(), ": declared to differ (", d.where, "), but it does not: ", what));
    }
  }

  void compare_gradients(const Call& r, const Answer& answer) {
    std::vector<Tensor> leaves, roots, incoming;
    for (const Tensor& t : r.inputs)
      if (t.requires_grad()) leaves.push_back(t);
    for (std::size_t k = 0; k < r.outputs.size(); ++k)
      if (r.outputs[k].requires_grad()) {
        roots.push_back(r.outputs[k]);
        incoming.push_back(incoming_like(r.outputs[k], k));
      }
    std::vector<Tensor> got(leaves.size());
    if (!roots.empty()) got = grad(roots, leaves, incoming, false, false, true);
    if (got.size() != answer.gradients.size())
      return fail(r.c.name(), str(r.where(""), "PyTorch has ", answer.gradients.size(),
                                  " gradients, we ", got.size()));
    for (std::size_t i = 0, input = 0; i < got.size(); ++i, ++input) {
      while (!is_floating(r.inputs[input].dtype())) ++input;
      // An undefined gradient and zeros are equal.
      const Array none(sizes_of(leaves[i].shape()));
      const Tensor mine = got[i].defined() ? got[i] : tensor_of(none, leaves[i].dtype());
      const Array theirs = answer.gradients[i].value_or(none);
      if (theirs.size() > 0 || sizes_of(mine.shape()) != theirs.shape)
        judge(r, str("gradient of x", input), gradient_units(mine, theirs), gradients,
              [&] { return both(theirs, mine); });
      ++gradient_checks;
    }
  }

  /// Measures PyTorch's float32 errors and Braid's.
  void compare_float32(const Call& r, const Answer& answer) {
    REQUIRE(answer.float32.size() == answer.outputs.size());
    for (std::size_t k = 0; k < r.outputs.size(); ++k) {
      if (difference(r.c, str(r.s.kind, ": output ", k)) != nullptr) continue;
      const auto take = [&](Worst& worst, const Tensor& y) {
        const double error = error_units(r.c, k, y, answer.outputs[k], r.s.inputs);
        if (error > worst.units) worst = {error, str(r.c.name(), ", ", r.s.kind)};
      };
      take(in_float32, r.outputs[k]);
      take(theirs_in_float32, tensor_of(answer.float32[k], DType::float32));
    }
  }

  void compare(Call r, const Answer& answer, bool with_gradient, bool with_float32) {
    r.run(with_gradient);
    ++cells;
    judge(r, "refused", r.refused == answer.refused ? 0 : INFINITY, values,
          [&] { return r.refused ? "refused here alone" : "refused by PyTorch alone"; });
    if (r.refused || answer.refused) return;
    if (r.outputs.size() != answer.outputs.size())
      return fail(r.c.name(), str(r.where(""), "PyTorch has ", answer.outputs.size(),
                                  " outputs, we ", r.outputs.size()));
    for (std::size_t k = 0; k < r.outputs.size(); ++k)
      if (answer.outputs[k].size() > 0 || sizes_of(r.outputs[k].shape()) != answer.outputs[k].shape)
        judge(r, str("output ", k),
              error_units(r.c, k, r.outputs[k], answer.outputs[k], r.s.inputs), values,
              [&] { return both(answer.outputs[k], r.outputs[k]); });
    if (with_gradient) compare_gradients(r, answer);
    if (with_float32) compare_float32(r, answer);
  }
};

/// For samples that do not run in every layout: the contiguous one, and one with steps.
std::vector<std::vector<Layout>> two_layouts(const OpCase& c, const Sample& s) {
  std::vector<std::vector<Layout>> both(2);
  for (const Array& a : s.inputs) {
    const std::vector<Layout> of = layouts(a.shape);
    for (std::vector<Layout>& list : both) list.push_back(of.front());
    for (const Layout& l : of)
      if (l.name == (a.shape.size() > 1 ? "transposed, offset 3" : "step 2")) both[1].back() = l;
  }
  return s.every_layout ? layout_combinations(c) : both;
}

}  // namespace

TEST_CASE("ops: values and gradients agree with PyTorch's float64", "[ops][pytorch]") {
  Comparison all;
  std::size_t differences = 0, number = 0, without = 0;
  for (const OpCase& c : op_cases()) {
    if (!mine_of_table(number++)) continue;
    if (c.torch.empty()) {
      INFO(c.name() << " has no words of PyTorch's, and no reason");
      CHECK((c.differs.size() == 1 && c.differs[0].where.empty() && !c.differs[0].reason.empty()));
      ++without;
      continue;
    }
    for (const Sample& s : samples_of(c)) {
      Answer answer;
      try {
        answer = answer_of(c, s);
      } catch (const std::runtime_error& e) {
        all.fail(c.name(), e.what());
        continue;
      }
      const auto combinations = two_layouts(c, s);
      for (const DType dtype : s.dtypes)
        for (const Device device : test_devices()) {
          const std::size_t gradient_every = emulated() ? 6 : 1;
          std::size_t n = 0;
          for (const auto& layout : combinations) {
            // If elements repeat, a layout holds fewer numbers than the golden.
            if (std::any_of(layout.begin(), layout.end(), [](auto& l) { return l.repeats; }))
              continue;
            const bool with_float32 =
                n == 0 && s.has_float32 && dtype == DType::float32 && device == here();
            all.compare({c, s, dtype, device, layout}, answer,
                        c.differentiable && s.gradient && n++ % gradient_every == 0, with_float32);
          }
        }
    }
    all.check_declared(c);
    differences += c.differs.size();
  }
  CHECK(all.failed.empty());
  CHECK(all.cells > 10000);
  CHECK(all.in_float32.units <= 1);
  std::cout << "SHOWS: ops on " << names_of_devices() << " against PyTorch's float64: " << all.cells
            << " comparisons, largest error " << all.values << "; " << all.gradient_checks
            << " gradients, largest error " << all.gradients << "; " << differences
            << " differences on purpose, " << without << " cases without a like\n"
            << "SHOWS: ops in float32 on " << here() << ": largest error " << all.in_float32
            << ", PyTorch's own " << all.theirs_in_float32 << std::endl;
}

TEST_CASE("ops: softmax and its losses have their values and gradients of extreme logits",
          "[ops][gradients]") {
  const Array x({3, 3}, {1000, 0, -1000, -1000, -1000, -1000, 88, 89, 90}),
      dy({3, 3}, {-0.75, 0.9375, 0.78125, 1.25, -0.53125, 0.90625, 0.15625, 0.46875, -0.75}),
      labels({3}, {1, 0, 2}), p = reference::softmax(x, 1);
  for (const DType t : {DType::float32, DType::float64}) {
    for (const bool soft : {true, false}) {
      const Tensor leaf = tensor_of(x, t).requires_grad_(),
                   y = soft ? softmax(leaf, 1) : log_softmax(leaf, 1);
      y.backward(tensor_of(dy, t));
      // y (dy - Σ y dy), or dy - softmax(x) Σ dy
      const Array first = soft ? reference::zip(p, dy, std::multiplies<>()) : dy;
      const Array sums = reference::zip(p, reference::sum(first, {1}, true), std::multiplies<>());
      CHECK_CLOSE(y.detach(), soft ? p : reference::log_softmax(x, 1), tolerance(t));
      CHECK_CLOSE(leaf.grad(), reference::zip(first, sums, std::minus<>()), tolerance(t));
    }
    const Tensor leaf = tensor_of(x, t).requires_grad_(),
                 y = cross_entropy(leaf, tensor_of(labels, DType::int64));
    y.backward();
    CHECK_CLOSE(y.detach(), reference::cross_entropy(x, labels, true), tolerance(t));
    CHECK_CLOSE(leaf.grad(),
                reference::generate({3, 3},
                                    [&](const Sizes& i) {
                                      return (reference::value(p, i) -
                                              (labels[i[0]] == static_cast<double>(i[1]) ? 1 : 0)) /
                                             3;
                                    }),
                tolerance(t));
  }
}

TEST_CASE("ops: a golden of other inputs, or of another call, is refused", "[ops][pytorch]") {
  OpCase c;
  for (const OpCase& other : op_cases())
    if (other.op == "softmax" && c.op.empty()) c = other;
  Sample s = samples_of(c).front();
  CHECK_FALSE(answer_of(c, s).outputs.empty());
  const auto refused = [&](const char* text) {
    return thrown<std::runtime_error>(text, [&] { static_cast<void>(answer_of(c, s)); });
  };
  s.inputs[0][0] += 1;
  CHECK(refused("make_op_goldens.py") == "");
  s = samples_of(c).front();
  c.torch += " + 0";
  CHECK(refused("made of other inputs or another call") == "");
  c.variant = "new";
  CHECK(refused("no golden of 'softmax, new'") == "");
  c.family = "nowhere";
  CHECK(refused("no goldens of the family nowhere") == "");
}

TEST_CASE("ops: the numbers of the samples are exact in every type", "[ops][pytorch]") {
  for (const OpCase& c : op_cases())
    for (const Sample& s : samples_of(c))
      for (const DType dtype : s.dtypes)
        for (std::size_t i = 0; i < s.inputs.size(); ++i) {
          const DType t = type_of(c.inputs[i], dtype);
          for (const double x : s.inputs[i].data)
            if (is_floating(t) && !std::isnan(x) && reference::round_to(x, format_of(t)) != x)
              FAIL_CHECK(c.name() << ", " << s.kind << ": " << x << " in " << t);
        }
}

TEST_CASE("ops: write the samples for tests/goldens/make_op_goldens.py", "[.][dump-samples]") {
  const char* folder = std::getenv("BRAID_SAMPLES");
  REQUIRE(folder != nullptr);
  write_samples(folder);
}

}  // namespace braid::test::on_device
