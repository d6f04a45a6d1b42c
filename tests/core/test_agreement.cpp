// Every op of the table on the CPU and on a CUDA device at sizes that break blocks and vectors, in layouts and types, with float64 as the arbiter. Where the CPU
// refuses, CUDA refuses with the same text.
#include <iostream>
#include <map>
#include <set>

#include "op_cases.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

/// What the sizes 2, 3, 4 and 5 of the table's inputs become; other sizes stay.
using Resize = std::map<std::int64_t, std::int64_t>;
const std::vector<Resize> kResizes{{{2, 3}, {3, 33}, {4, 31}, {5, 17}}, {{2, 129}, {3, 3}, {4, 5}, {5, 7}}, {{2, 1}, {3, 1025}, {4, 1}, {5, 3}},
                                   {{2, 31}, {3, 127}, {4, 3}, {5, 2}}, {{2, 0}, {3, 3}, {4, 4}, {5, 5}},   {{2, 2}, {3, 0}, {4, 4}, {5, 5}}};
/// Of a case's inputs and outputs; larger ones are not defined.
constexpr std::int64_t kMost = 5000;

OpCase resized(OpCase c, const Resize& to) {
  const auto change = [&](std::int64_t& n) {
    if (const auto found = to.find(n); found != to.end()) n = found->second;
  };
  for (Input& input : c.inputs) {
    for (std::int64_t& n : input.shape) change(n);
    if (input.kind != Input::Kind::index) continue;
    std::int64_t rows = input.below, other = 3;
    change(rows), change(other);
    input.below = std::min(rows, other);
  }
  return c;
}

const std::vector<std::string> kLayouts{
    "contiguous", "offset 1", "step 2", "transposed", "rows with a gap", "expanded in the first dim", "expanded in the last dim"};

/// The layout of that name for each input; contiguous for those that cannot have it.
std::vector<Layout> all_in(const OpCase& c, const std::string& name) {
  std::vector<Layout> list;
  for (const Input& input : c.inputs) {
    const std::vector<Layout> of = layouts(input.shape);
    list.push_back(of.front());
    for (const Layout& l : of)
      if (l.name == name) list.back() = l;
  }
  return list;
}

/// What an op gives on a device, or says.
struct Outcome {
  std::vector<Array> values;
  std::vector<Tensor> outputs;
  std::string refused;
};

Outcome run(const OpCase& c, DType t, const std::vector<Layout>& layout, Device device) {
  Outcome o;
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    inputs.push_back(sample(c.inputs[i], i, t, layout[i], device, 1));
    o.values.push_back(array_of(inputs.back()));
  }
  try {
    o.outputs = c.call(inputs);
    synchronize(device);
  } catch (const Error& e) {
    o.refused = str(exception_type(std::current_exception()), ": ", e.what());
  }
  return o;
}

/// By the reference; where that holds sizes of its own, as reshape({3, 4}) does, by the CPU, whose results are exact there.
std::vector<Array> expected(const OpCase& c, const Outcome& cpu) {
  std::vector<Array> of_cpu, want;
  for (const Tensor& y : cpu.outputs) of_cpu.push_back(array_of(y));
  try {
    want = c.expected(cpu.values);
  } catch (const std::logic_error&) {
  }
  bool same_shapes = want.size() == of_cpu.size();
  for (std::size_t k = 0; same_shapes && k < want.size(); ++k) same_shapes = want[k].shape == of_cpu[k].shape;
  return same_shapes || c.accuracy != Accuracy::exact ? want : of_cpu;
}

/// The largest error in units of what the case allows.
double units(const OpCase& c, std::size_t output, const Tensor& got, const Array& want, const std::vector<Array>& inputs) {
  const Array y = array_of(got);
  const DType t = got.dtype();
  if (sizes_of(got.shape()) != want.shape) return INFINITY;
  if (!is_floating(t)) return exact(got, want).empty() ? 0 : INFINITY;
  const Array bound = c.accuracy == Accuracy::bound ? c.bound(inputs).at(output) : want;
  double largest = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const double w = want[i], ulp = reference::ulp(w, format_of(t));
    if (y[i] == w || (std::isnan(y[i]) && std::isnan(w))) continue;
    double allowed = 0.501 * ulp;
    if (c.accuracy == Accuracy::ulps) allowed = (size_of(t) == 2 ? 1 : 4) * ulp;
    if (c.accuracy == Accuracy::tolerance) allowed = tolerance(t).atol + tolerance(t).rtol * std::fabs(w);
    if (c.accuracy == Accuracy::bound) allowed = bound[i] * (t == DType::float64 ? 0x1p-53 : 0x1p-24) + 0.501 * ulp;
    const double error = std::fabs(y[i] - w) / allowed;
    if (!(error <= largest)) largest = std::isnan(error) ? INFINITY : error;
  }
  return largest;
}

}  // namespace

TEST_CASE("agreement: every op on the CPU and on CUDA, by float64, at sizes that break tilings", "[ops][agreement]") {
  // Nothing to compare with on the CPU; and the other CUDA devices run the same kernels.
  if (on_cpu() || here() != devices().front()) return;
  std::int64_t defined = 0, ran = 0, refused = 0;
  double largest = 0;
  std::string where;
  std::set<std::string> ops, of_other_sizes;
  for (const OpCase& original : op_cases()) {
    ops.insert(original.op);
    for (const Resize& to : kResizes) {
      const OpCase c = resized(original, to);
      std::int64_t elements = 0;
      for (const Input& input : c.inputs) {
        elements += reference::count(input.shape);
        if (input.kind == Input::Kind::index && input.below == 0) elements = kMost + 1;  // no index into nothing
      }
      const Outcome probe = elements <= kMost ? run(c, DType::float32, all_in(c, "contiguous"), Device("cpu")) : Outcome{};
      for (const Tensor& y : probe.outputs) elements += y.numel();
      if (elements > kMost) continue;
      for (std::size_t type = 0; type < c.dtypes.size(); ++type)
        for (std::size_t l = 0; l < kLayouts.size(); ++l) {
          // float32 in every layout, the other types in the dense one and in two that differ from type to type.
          const DType t = c.dtypes[type];
          if (t != DType::float32 && l != 0 && l % 3 != type % 3) continue;
          const std::vector<Layout> layout = all_in(c, kLayouts[l]);
          ++defined;
          const Outcome cpu = run(c, t, layout, Device("cpu")), cuda = run(c, t, layout, here());
          ++ran;
          std::string text = str(c.name(), ", ", t, ", ", kLayouts[l]);
          for (const Input& input : c.inputs) text += str(" ", Shape(input.shape));
          std::string got = cuda.refused;
          for (std::size_t at = got.find(str(here())); at != std::string::npos; at = got.find(str(here()))) got.replace(at, str(here()).size(), "cpu:0");
          if (got != cpu.refused) FAIL_CHECK(text << ": the CPU says '" << cpu.refused << "', CUDA '" << got << "'");
          if (!cpu.refused.empty() || !got.empty()) {
            ++refused;
            continue;
          }
          of_other_sizes.insert(c.op);
          bool empty = true;
          for (std::size_t k = 0; k < cuda.outputs.size(); ++k) {
            if (cuda.outputs[k].shape() != cpu.outputs[k].shape()) FAIL_CHECK(text << ": another shape than the CPU's");
            empty = empty && cpu.outputs[k].numel() == 0;
          }
          if (empty) continue;
          const std::vector<Array> want = expected(c, cpu);
          for (std::size_t k = 0; k < cuda.outputs.size(); ++k) {
            const double of_cpu = units(c, k, cpu.outputs[k], want.at(k), cpu.values), of_cuda = units(c, k, cuda.outputs[k], want.at(k), cuda.values);
            if (of_cuda > largest) largest = of_cuda, where = text;
            if (of_cuda > 1 || of_cpu > 1) FAIL_CHECK(text << ": error of CUDA " << of_cuda << ", of the CPU " << of_cpu << " of the bound");
          }
        }
    }
  }
  CHECK(ran == defined);
  CHECK(ran > 5000);
  // Every op has run at other sizes than the table's.
  for (const std::string& op : of_other_sizes) ops.erase(op);
  CHECK(ops == std::set<std::string>{});
  std::cout << "SHOWS: ops, cpu against cuda by float64: " << op_cases().size() << " cases of the table, " << ran << " of " << defined << " cells (" << refused
            << " refused alike), largest error " << largest << " of the bound (" << where << ")" << std::endl;
}

}  // namespace braid::test::on_device
