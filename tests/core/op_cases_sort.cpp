// Cases of sorting, and of the elements chosen along a dim.
#include <braid/core/ops/sort.hpp>

#include "op_case_makers.hpp"
#include "reference/reduce.hpp"
#include "reference/scan.hpp"

namespace braid::test {
namespace {

void add_sorts(Cases& list) {
  for (const Line& l : kLines)
    for (const bool descending : {false, true}) {
      const I dim = l.dim;
      const std::string variant = str(l.variant, descending ? ", descending" : ""),
                        words =
                            str("sort(x0, dim=", dim,
                                ", descending=", descending ? "True" : "False", ", stable=True)");
      of_one(
          list, "sort", variant, "torch." + words + "[0]", {l.shape, Kind::distinct}, kAll,
          [=](T x) { return sort(x, dim, descending).values; },
          [=](A a) { return reference::sorted(a, dim, descending, false); })
          .kinks = true;
      OpCase& c = of_one(
          list, "argsort", variant, "torch.arg" + words, {l.shape, Kind::value}, kAll,
          [=](T x) { return argsort(x, dim, descending); },
          [=](A a) { return reference::sorted(a, dim, descending, true); });
      c.differentiable = false;
      c.result = as_int64;
    }
  for (const Line& l : std::vector<Line>{
           {"last dim", {3, 4}, -1}, {"first dim", {4, 3}, 0}, {"longer rows", {2, 60}, 1}})
    for (const bool largest : {true, false})
      for (const bool indices : {false, true}) {
        const I dim = l.dim;
        // PyTorch's topk does not define which of several equal elements it takes.
        OpCase& c = of_one(
            list, "topk", str(l.variant, largest ? "" : ", smallest", indices ? ", indices" : ""),
            str("torch.sort(x0, dim=", dim, ", descending=", largest ? "True" : "False",
                ", stable=True)[", indices ? 1 : 0, "].narrow(", dim, ", 0, 2)"),
            {l.shape, indices ? Kind::value : Kind::distinct}, kAll,
            [=](T x) {
              const ValuesIndices y = topk(x, 2, dim, largest);
              return indices ? y.indices : y.values;
            },
            [=](A a) { return reference::sorted(a, dim, largest, indices, 2); });
        c.kinks = !indices;
        if (indices) c.differentiable = false, c.result = as_int64;
      }
  refuse_lines(list, "sort", [](T x, I d) { (void)sort(x, d); });
  refuse_lines(list, "argsort", [](T x, I d) { (void)argsort(x, d); });
  refuse_lines(list, "topk", [](T x, I d) { (void)topk(x, 1, d); });
  BadInputs(list, "topk")
      .integers("k", {-1, 4, kLeast}, kArgument, "k in .0, 3. for dim 1 of .*got ",
                [](I k) { (void)topk(on_device::zeros({2, 3}), k); });
}

/// The number of elements of a sorted line that come before the value.
double place_of(const std::vector<double>& line, double value, bool right) {
  std::size_t begin = 0, end = line.size();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (right ? line[middle] > value : line[middle] >= value) end = middle;
    else begin = middle + 1;
  }
  return static_cast<double>(begin);
}

void add_searches(Cases& list) {
  const struct {
    const char* variant;
    Sizes sequence, values;
  } shapes[] = {{"one sequence", {4}, {2, 3}},
                {"rows", {2, 4}, {2, 3}},
                {"rank 0", {4}, {}},
                {"no elements", {0}, {3}}};
  for (const auto& s : shapes)
    for (const bool right : {false, true}) {
      OpCase& c = push(
          list, "searchsorted", str(s.variant, right ? ", right" : ""),
          str("torch.searchsorted(torch.sort(x0)[0], x1, right=", right ? "True" : "False", ")"),
          {{s.sequence}, {s.values}}, kNumbers);
      c.call = function_of([right](T sequence, T v) {
        return searchsorted(sort(sequence).values, v, false, right);
      });
      c.expected = expecting([right](A sequence, A v) {
        const Array in_order = reference::sorted(sequence, -1, false, false);
        const I n = in_order.shape.back(), m = v.shape.empty() ? 1 : v.shape.back();
        Array y(v.shape);
        for (I i = 0; i < y.size(); ++i) {
          const I first = in_order.shape.size() == 1 ? 0 : i / m * n;
          y[i] = place_of({in_order.data.begin() + first, in_order.data.begin() + first + n}, v[i],
                          right);
        }
        return y;
      });
      c.differentiable = false;
      c.result = as_int64;
    }
  const auto sequence = [](T t) { (void)searchsorted(t, on_device::zeros({2, 3})); };
  const auto values = [](T t) { (void)searchsorted(on_device::zeros({2, 4}), t); };
  const auto side = [](const char* name, bool right) {
    return [=] { (void)searchsorted(zeros_of({2}), zeros_of({3}), false, right, name); };
  };
  BadInputs(list, "searchsorted")
      .tensor("sorted_sequence", sequence, {4})
      .types(sequence, {4}, {DType::bool_}, "numbers, got bool")
      .shapes(sequence, {{}, {3, 4}, {1, 2, 4}}, "a sequence of rank 1, or .*got ")
      .tensor("values", values, {2, 3})
      .types(values, {2, 3}, {DType::int32}, "values of dtype float32, got ")
      .shapes(values, {{}, {3, 3}}, "a sequence of rank 1, or one with .*")
      .of("side")
      .refused(kArgument, "expected the side .*, got \"up\"", side("up", false))
      .refused(kArgument, "expected the side .*, got \"\"", side("", true))
      .refused(kArgument, "expected one side, got \"left\"", side("left", true));
}

void add_chosen(Cases& list) {
  for (const bool largest : {true, false}) {
    const char* op = largest ? "max" : "min";
    const auto choose = [largest](T x, I dim, bool keep) {
      return largest ? max(x, dim, keep) : min(x, dim, keep);
    };
    for (const Line& l : kLines)
      for (const bool indices : {false, true}) {
        const I dim = l.dim;
        const bool keep = dim == 0;
        OpCase& c = of_one(
            list, op, str(l.variant, indices ? ", indices" : ""),
            str("torch.", largest ? "max" : "min", "(x0, ", dim, keep ? ", keepdim=True)[" : ")[",
                indices ? 1 : 0, "]"),
            {l.shape, indices ? Kind::value : Kind::distinct}, kAll,
            [=](T x) {
              const ValuesIndices y = choose(x, dim, keep);
              return indices ? y.indices : y.values;
            },
            [=](A a) {
              if (indices)
                return largest ? reference::argmax(a, dim, keep) : reference::argmin(a, dim, keep);
              return largest ? reference::max(a, {dim}, keep) : reference::min(a, {dim}, keep);
            });
        c.kinks = !indices;
        if (indices) c.differentiable = false, c.result = as_int64;
      }
    refuse_lines(list, op, [choose](T x, I d) { (void)choose(x, d, false); });
    refuse(list, op, {{"x", kShape, "at least one element", [choose] {
                         (void)choose(on_device::zeros({2, 0}), 1, false);
                       }}});
  }
}

}  // namespace

void add_sort_cases(Cases& list) {
  add_sorts(list);
  add_searches(list);
  add_chosen(list);
  parameters(list,
             "argsort(x dim descending) max(x dim keepdim) min(x dim keepdim) "
             "searchsorted(sorted_sequence values out_int32 right side) sort(x dim descending) "
             "topk(x k dim largest sorted)");
}

}  // namespace braid::test
