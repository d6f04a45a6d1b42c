// Compares every op of the table on the CPU and on a CUDA device, with float64 as the reference, in
// several layouts and dtypes, at sizes that are not multiples of blocks and vectors. If the CPU
// throws, CUDA must throw with the same text.
#include <iostream>
#include <map>
#include <set>

#include "op_cases.hpp"
#include "reference/elementwise.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

/// The new sizes of inputs that have size 2, 3, 4 or 5 in the table.
const std::vector<Resize> kResizes{
    {{2, 3}, {3, 33}, {4, 31}, {5, 17}}, {{2, 129}, {3, 3}, {4, 5}, {5, 7}},
    {{2, 1}, {3, 1025}, {4, 1}, {5, 3}}, {{2, 31}, {3, 127}, {4, 3}, {5, 2}},
    {{2, 0}, {3, 3}, {4, 4}, {5, 5}},    {{2, 2}, {3, 0}, {4, 4}, {5, 5}}};
/// The most elements of a case's inputs and outputs; larger cases are left out.
constexpr std::int64_t kMost = 5000;

const std::vector<std::string> kLayouts{"contiguous",
                                        "offset 1",
                                        "step 2",
                                        "transposed",
                                        "rows with a gap",
                                        "expanded in the first dim",
                                        "expanded in the last dim"};

/// Returns the layout of that name for each input, or the contiguous one if the input cannot have
/// it.
std::vector<Layout> all_in(const OpCase& c, const std::string& name) {
  std::vector<Layout> list = dense(c);
  for (std::size_t i = 0; i < list.size(); ++i)
    for (const Layout& l : layouts(c.inputs[i].shape))
      if (l.name == name) list[i] = l;
  return list;
}

/// The results of an op on a device, or its error.
struct Outcome {
  std::vector<Array> values;
  std::vector<Tensor> outputs;
  std::string refused;
};

Outcome run(const OpCase& c, DType t, const std::vector<Layout>& layout, Device device) {
  Outcome o;
  const std::vector<Tensor> inputs = inputs_of(c, t, layout, device);
  for (const Tensor& x : inputs) o.values.push_back(array_of(x));
  try {
    o.outputs = c.call(inputs);
    synchronize(device);
  } catch (const Error& e) {
    o.refused = str(exception_type(std::current_exception()), ": ", e.what());
  }
  return o;
}

/// Removes the index from the text: of several invalid indices, a GPU reports the first that it
/// finds.
std::string what_is_said(const std::string& refused) {
  return refused.starts_with("IndexError") ? refused.substr(0, refused.find(", got ")) : refused;
}

/// Runs the case on the CPU in float64 with the same numbers.
std::vector<Array> in_float64(const OpCase& c, const std::vector<Array>& values) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i)  // an index keeps its dtype
    inputs.push_back(test::tensor_of(values[i], type_of(c.inputs[i], DType::float64)));
  std::vector<Array> want;
  for (const Tensor& y : c.call(inputs)) want.push_back(array_of(y));
  return want;
}

/// Sets the accuracy for other sizes. A sum of products (x, weights, …) may have one rounding per
/// term of the sum of magnitudes, which the op itself computes in float64. Other cases get a
/// tolerance.
void measure_again(OpCase& c) {
  if (c.inputs.size() == 1) {
    c.accuracy = Accuracy::tolerance;
    return;
  }
  c.bound = [op = c](const std::vector<Array>& a) {
    std::vector<Array> sizes;
    for (const Array& v : a) sizes.push_back(reference::abs(v));
    std::vector<Array> bounds = in_float64(op, sizes);
    for (Array& b : bounds)
      b = reference::map(b, [&](double s) { return (static_cast<double>(a[1].size()) + 3) * s; });
    return bounds;
  };
}

/// Computes the expected values by the reference. If the reference has fixed sizes, as for
/// reshape({3, 4}), uses the CPU: in float64, or in the case's dtype if the results are exact.
std::vector<Array> expected(const OpCase& c, const Outcome& cpu) {
  std::vector<Array> of_cpu, want;
  for (const Tensor& y : cpu.outputs) of_cpu.push_back(array_of(y));
  try {
    if (!c.own_sizes) want = c.expected(cpu.values);
  } catch (const std::logic_error&) {}
  bool same_shapes = want.size() == of_cpu.size();
  for (std::size_t k = 0; same_shapes && k < want.size(); ++k)
    same_shapes = want[k].shape == of_cpu[k].shape;
  if (same_shapes) return want;
  return c.accuracy == Accuracy::exact ? of_cpu : in_float64(c, cpu.values);
}

}  // namespace

TEST_CASE("agreement: every op on the CPU and on CUDA, by float64, at sizes that break tilings",
          "[ops][agreement]") {
  // On the CPU there is nothing to compare with. All CUDA devices run the same kernels, so each
  // runs a part of the cases.
  if (on_cpu()) return;
  std::int64_t defined = 0, ran = 0, refused = 0, ill_conditioned = 0;
  double largest = 0;
  std::string where;
  std::set<std::string> ops, of_other_sizes;
  std::map<std::string, std::size_t> numbers;
  for (const OpCase& original : op_cases()) {
    if (!mine(numbers.try_emplace(original.op, numbers.size()).first->second)) continue;
    ops.insert(original.op);
    for (const Resize& to : kResizes) {
      OpCase c = resized(original, to);
      if (c.own_sizes && c.accuracy == Accuracy::bound) measure_again(c);
      std::int64_t elements = 0;
      for (const Input& input : c.inputs) {
        elements += reference::count(input.shape);
        // an index into an empty dim has no valid value
        if (input.kind == Input::Kind::index && input.below == 0) elements = kMost + 1;
      }
      const Outcome probe =
          elements <= kMost ? run(c, DType::float32, dense(c), Device("cpu")) : Outcome{};
      for (const Tensor& y : probe.outputs) elements += y.numel();
      if (elements > kMost) continue;
      for (std::size_t type = 0; type < c.dtypes.size(); ++type)
        for (std::size_t l = 0; l < kLayouts.size(); ++l) {
          // float32 runs in every layout. The other dtypes run in the contiguous one and in another
          // that depends on the dtype.
          const DType t = c.dtypes[type];
          if (t != DType::float32 && l != 0 && l != 1 + type % 6) continue;
          const std::vector<Layout> layout = all_in(c, kLayouts[l]);
          ++defined;
          const Outcome cpu = run(c, t, layout, Device("cpu")), cuda = run(c, t, layout, here());
          ++ran;
          std::string text = str(c.name(), ", ", t, ", ", kLayouts[l]);
          for (const Input& input : c.inputs) text += str(" ", Shape(input.shape));
          std::string got = cuda.refused;
          for (std::size_t at = got.find(str(here())); at != std::string::npos;
               at = got.find(str(here())))
            got.replace(at, str(here()).size(), "cpu:0");
          if (what_is_said(got) != what_is_said(cpu.refused))
            FAIL_CHECK(text << ": the CPU says '" << cpu.refused << "', CUDA '" << got << "'");
          if (!cpu.refused.empty() || !got.empty()) {
            ++refused;
            continue;
          }
          of_other_sizes.insert(c.op);
          bool empty = true;
          for (std::size_t k = 0; k < cuda.outputs.size(); ++k) {
            if (cuda.outputs[k].shape() != cpu.outputs[k].shape())
              FAIL_CHECK(text << ": another shape than the CPU's");
            empty = empty && cpu.outputs[k].numel() == 0;
          }
          if (empty) continue;
          const std::vector<Array> want = expected(c, cpu);
          for (std::size_t k = 0; k < cuda.outputs.size(); ++k) {
            const double of_cpu = error_units(c, k, cpu.outputs[k], want.at(k), cpu.values),
                         of_cuda = error_units(c, k, cuda.outputs[k], want.at(k), cuda.values);
            // A plain tolerance takes neither the length of a recurrence nor the number of
            // roundings of several ops into account. There the CPU's own error is the measure.
            const bool alike =
                c.accuracy == Accuracy::tolerance && of_cpu > 1 && of_cuda <= 2 * of_cpu;
            if (alike) ++ill_conditioned;
            if (of_cuda > largest && !alike) largest = of_cuda, where = text;
            if ((of_cuda > 1 || of_cpu > 1) && !alike)
              FAIL_CHECK(text << ": error of CUDA " << of_cuda << ", of the CPU " << of_cpu
                              << " of the bound");
          }
        }
    }
  }
  CHECK(ran == defined);
  CHECK(ran > 5000);
  CHECK(ill_conditioned < ran / 500);
  // Every op must have run at sizes other than the table's.
  for (const std::string& op : of_other_sizes) ops.erase(op);
  CHECK(ops == std::set<std::string>{});
  std::cout << "SHOWS: ops, cpu against cuda by float64: the part of " << here() << " of "
            << op_cases().size() << " cases of the table, " << ran << " of " << defined
            << " cells (" << refused << " refused alike, " << ill_conditioned
            << " as inexact as the CPU), largest error " << largest << " of the bound (" << where
            << ")" << std::endl;
}

}  // namespace braid::test::on_device
