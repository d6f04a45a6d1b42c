// Every op of the table against PyTorch's float64 values and gradients (tests/goldens/ops), in
// every type, layout and on every device.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include <braid/core/autograd.hpp>

#include "op_samples.hpp"
#include "support/errors.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

/// The largest error so far, in units of what is allowed, and where.
struct Worst {
  double units = 0;
  std::string where;
  /// at(): the place, asked for only where it is needed.
  template <class At> void take(double error, const At& at) {
    if (error > units) units = error, where = at();
  }
};

/// A run over the whole table.
struct Comparison {
  Worst values, gradients;
  std::int64_t cells = 0, gradient_checks = 0;
  /// of a case: what an entry finds, and whether it differs
  std::map<std::string, std::map<const Difference*, std::map<std::string, bool>>> declared;
  /// what declared_difference() said: the same is asked in every layout
  std::map<std::pair<const OpCase*, std::string>, const Difference*> asked;
  /// each shown once, not for every type and layout
  std::set<std::string> failed;

  void fail(const std::string& what, const std::string& text) {
    if (failed.insert(what).second) FAIL_CHECK(text);
  }

  /// `error` in units of what is allowed: counted, declared in the case, or a failure.
  template <class Where, class Text>
  void judge(const OpCase& c, const std::string& what, const Where& where, double error,
             Worst& worst, const Text& text) {
    const bool differs = !(error <= 1);
    if (!differs) worst.take(error, where);
    const Difference* d = nullptr;
    if (!c.differs.empty()) {
      auto known = asked.find({&c, what});
      if (known == asked.end())
        known = asked.emplace(std::pair(&c, what), declared_difference(c, what)).first;
      d = known->second;
    }
    if (d != nullptr) declared[c.name()][d][what] |= differs;
    else if (differs)
      fail(c.name() + what, str(where(), ": ", error, " of what is allowed: ", text()));
  }

  /// Every entry of the case finds something, and all of that differs.
  std::int64_t check_declared(const OpCase& c) {
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
    return static_cast<std::int64_t>(c.differs.size());
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

/// Of a gradient: four times what sums of some hundred terms may differ by.
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

/// No layout in which elements repeat: those hold fewer numbers than the golden has.
bool holds_all(const std::vector<Layout>& layout) {
  return std::none_of(layout.begin(), layout.end(), [](const Layout& l) { return l.repeats; });
}

struct Call {
  std::vector<Tensor> inputs, outputs;
  bool refused = false;
};

Call call(const OpCase& c, const Sample& s, DType dtype, Device device,
          const std::vector<Layout>& layout, bool with_gradient) {
  Call r;
  for (std::size_t i = 0; i < s.inputs.size(); ++i) {
    r.inputs.push_back(laid_out(s.inputs[i], layout[i], type_of(c.inputs[i], dtype), device));
    if (with_gradient && is_floating(r.inputs.back().dtype())) r.inputs.back().requires_grad_();
  }
  try {
    r.outputs = c.call(r.inputs);
    synchronize(device);
  } catch (const Error&) {
    r.refused = true;
  }
  return r;
}

template <class Where>
void compare_gradients(Comparison& all, const OpCase& c, const Sample& s, const Answer& answer,
                       const Call& r, const Where& where) {
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
    return all.fail(c.name(), str(where(), ": PyTorch has ", answer.gradients.size(),
                                  " gradients, we ", got.size()));
  for (std::size_t i = 0, input = 0; i < got.size(); ++i, ++input) {
    while (!is_floating(r.inputs[input].dtype())) ++input;
    const std::optional<Array>& want = answer.gradients[i];
    // No gradient and zeros are the same.
    const Tensor mine = got[i].defined()
                            ? got[i]
                            : tensor_of(Array(sizes_of(leaves[i].shape())), leaves[i].dtype());
    const Array theirs = want ? *want : Array(sizes_of(leaves[i].shape()));
    if (theirs.size() > 0 || sizes_of(mine.shape()) != theirs.shape)
      all.judge(
          c, s.kind + ": gradient of x" + std::to_string(input),
          [&] { return str(where(), ", gradient of x", input); }, gradient_units(mine, theirs),
          all.gradients, [&] { return both(theirs, mine); });
    ++all.gradient_checks;
  }
}

void compare(Comparison& all, const OpCase& c, const Sample& s, const Answer& answer, DType dtype,
             Device device, const std::vector<Layout>& layout, bool with_gradient) {
  const auto where = [&] {
    std::string text = str(c.name(), ", ", s.kind, ", ", dtype, " on ", device);
    for (const Layout& l : layout) text += ", " + l.name;
    return text;
  };
  const Call r = call(c, s, dtype, device, layout, with_gradient);
  ++all.cells;
  all.judge(c, s.kind + ": refused", where, r.refused == answer.refused ? 0 : INFINITY, all.values,
            [&] { return r.refused ? "refused here alone" : "refused by PyTorch alone"; });
  if (r.refused || answer.refused) return;
  if (r.outputs.size() != answer.outputs.size())
    return all.fail(c.name(), str(where(), ": PyTorch has ", answer.outputs.size(), " outputs, we ",
                                  r.outputs.size()));
  for (std::size_t k = 0; k < r.outputs.size(); ++k)
    if (answer.outputs[k].size() > 0 || sizes_of(r.outputs[k].shape()) != answer.outputs[k].shape)
      all.judge(
          c, s.kind + ": output " + std::to_string(k), [&] { return str(where(), ", output ", k); },
          error_units(c, k, r.outputs[k], answer.outputs[k], s.inputs), all.values,
          [&] { return both(answer.outputs[k], r.outputs[k]); });
  if (with_gradient) compare_gradients(all, c, s, answer, r, where);
}

/// Where not every layout runs: dense, and one with steps.
std::vector<std::vector<Layout>> two_layouts(const Sample& s) {
  std::vector<Layout> dense, other;
  for (const Array& a : s.inputs) {
    const std::vector<Layout> of = layouts(a.shape);
    dense.push_back(of.front());
    other.push_back(of.front());
    for (const Layout& l : of)
      if (l.name == (a.shape.size() > 1 ? "transposed, offset 3" : "step 2")) other.back() = l;
  }
  return {dense, other};
}

}  // namespace

TEST_CASE("ops: values and gradients agree with PyTorch's float64", "[ops][pytorch]") {
  Comparison all;
  std::set<std::string> without;
  std::int64_t differences = 0;
  std::size_t number = 0;
  for (const OpCase& c : op_cases()) {
    if (!mine_of_table(number++)) continue;
    if (c.torch.empty()) {
      INFO(c.name() << " has no words of PyTorch's, and no reason");
      CHECK((c.differs.size() == 1 && c.differs[0].where.empty() && !c.differs[0].reason.empty()));
      without.insert(c.name());
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
      for (const DType dtype : s.dtypes)
        for (const Device device : test_devices()) {
          const bool differentiable = c.differentiable && s.gradient;
          const std::size_t gradient_every = emulated() ? 6 : 1;
          std::size_t n = 0;
          for (const auto& layout : s.every_layout ? layout_combinations(c) : two_layouts(s))
            if (holds_all(layout))
              compare(all, c, s, answer, dtype, device, layout,
                      differentiable && n++ % gradient_every == 0);
        }
    }
    differences += all.check_declared(c);
  }
  CHECK(all.failed.empty());
  CHECK(all.cells > 10000);
  std::string devices;
  for (const Device d : test_devices()) devices += str(devices.empty() ? "" : ", ", d);
  std::cout << "SHOWS: ops on " << devices << " against PyTorch's float64: " << all.cells
            << " comparisons, largest error " << all.values.units << " of the bound ("
            << all.values.where << "); " << all.gradient_checks << " gradients, largest error "
            << all.gradients.units << " of the bound (" << all.gradients.where << "); "
            << differences << " differences on purpose, " << without.size()
            << " cases without a like" << std::endl;
}

TEST_CASE("ops: float32 is as near to PyTorch's float64 as PyTorch's float32 is allowed to be",
          "[ops][pytorch]") {
  Worst ours, theirs;
  for (const OpCase& c : op_cases()) {
    if (c.torch.empty()) continue;
    for (const Sample& s : samples_of(c)) {
      if (!s.has_float32) continue;
      const Answer answer = answer_of(c, s);
      const Call r = call(c, s, DType::float32, here(), two_layouts(s).front(), false);
      if (r.refused || answer.refused) continue;
      REQUIRE(answer.float32.size() == answer.outputs.size());
      for (std::size_t k = 0; k < r.outputs.size(); ++k) {
        if (declared_difference(c, str(s.kind, ": output ", k)) != nullptr) continue;
        const auto where = [&] { return str(c.name(), ", ", s.kind); };
        ours.take(error_units(c, k, r.outputs[k], answer.outputs[k], s.inputs), where);
        theirs.take(error_units(c, k, tensor_of(answer.float32[k], r.outputs[k].dtype()),
                                answer.outputs[k], s.inputs),
                    where);
      }
    }
  }
  CHECK(ours.units <= 1);
  std::cout << "SHOWS: ops in float32 on " << here() << ": largest error " << ours.units
            << " of the bound (" << ours.where << "), PyTorch's own " << theirs.units << " ("
            << theirs.where << ")" << std::endl;
}

TEST_CASE("ops: a golden of other inputs, or of another call, is refused", "[ops][pytorch]") {
  OpCase c;
  for (const OpCase& other : op_cases())
    if (other.op == "softmax" && c.op.empty()) c = other;
  Sample s = samples_of(c).front();
  CHECK_FALSE(answer_of(c, s).outputs.empty());
  s.inputs[0][0] += 1;
  CHECK(thrown<std::runtime_error>("make_op_goldens.py",
                                   [&] { static_cast<void>(answer_of(c, s)); }) == "");
  s = samples_of(c).front();
  c.torch += " + 0";
  CHECK(thrown<std::runtime_error>("made of other inputs or another call",
                                   [&] { static_cast<void>(answer_of(c, s)); }) == "");
  c.variant = "new";
  CHECK(thrown<std::runtime_error>("no golden of 'softmax, new'",
                                   [&] { static_cast<void>(answer_of(c, s)); }) == "");
  c.family = "nowhere";
  CHECK(thrown<std::runtime_error>("no goldens of the family nowhere",
                                   [&] { static_cast<void>(answer_of(c, s)); }) == "");
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
