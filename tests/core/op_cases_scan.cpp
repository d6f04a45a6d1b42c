// Cases of cumulative ops and sorting along a dim.
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/scan.hpp>
#include <braid/core/ops/sort.hpp>

#include "op_case_makers.hpp"
#include "reference/reduce.hpp"
#include "reference/scan.hpp"

namespace braid::test {
namespace {

Array halved(A a) { return times(a, 0.5); }
/// As many roundings as there are factors.
double of_factors(Arrays a, A) { return static_cast<double>(a[0].size()) + 2; }

/// Adds bad inputs: three invalid dims, and an x without the dim.
void refuse_dims(Cases& list, const char* op, const std::function<void(T, I)>& f,
                 const char* name = "dim") {
  const auto along = [f](I dim) { f(on_device::zeros({2, 3}), dim); };
  BadInputs(list, op)
      .integers(name, {2, -3, kMost}, kIndex, ".*got ", along)
      .tensor("x", [f](T x) { f(x, 0); })
      .is(kIndex, ".*got 1", [f] { f(on_device::zeros({}), 1); })
      .is(kIndex, ".*got -2", [f] { f(on_device::zeros({2}), -2); });
}

struct Line {
  const char* variant;
  Sizes shape;
  I dim;
};
const std::vector<Line> kLines{{"last dim", {3, 4}, -1},     {"first dim", {3, 4}, 0},
                               {"middle dim", {2, 3, 2}, 1}, {"vector", {5}, 0},
                               {"rank 0", {}, -1},           {"dim of size 1", {3, 1}, 1}};

void add_scans(Cases& list) {
  for (const Line& l : kLines) {
    const I dim = l.dim;
    OpCase& c = of_one(
        list, "cumsum", l.variant, str("torch.cumsum(x0, ", dim, ")"), {l.shape, Kind::value}, kAll,
        [dim](T x) { return cumsum(x, dim); }, [dim](A a) { return reference::cumsum(a, dim); });
    c.result = widened;
    bound_by_sizes(c, [](Arrays a, A) { return 40 + static_cast<double>(a[0].size()) / 1000; });
    // factors below 1, so that no product overflows
    OpCase& p = of_one(
        list, "cumprod", l.variant, str("torch.cumprod(x0 * 0.5, ", dim, ")"),
        {l.shape, Kind::value}, kFloats, [dim](T x) { return cumprod(mul(x, 0.5), dim); },
        [dim](A a) { return reference::cumprod(halved(a), dim); });
    bound_by_sizes(p, of_factors);
  }
  OpCase& c = of_one(
      list, "cumprod", "integers", "torch.cumprod(x0, 1)", {{6, 7}, Kind::value},
      {DType::bool_, DType::uint8, DType::int32, DType::int64, DType::float64},
      [](T x) { return cumprod(x, 1); }, [](A a) { return reference::cumprod(a, 1); });
  c.result = widened;
  c.accuracy = Accuracy::tolerance;
  refuse_dims(list, "cumsum", [](T x, I d) { (void)cumsum(x, d); });
  refuse_dims(list, "cumprod", [](T x, I d) { (void)cumprod(x, d); });
}

void add_products(Cases& list) {
  struct Product : Dims {
    const char* torch;
  };
  for (const Product& d : std::vector<Product>{
           {{"all", {2, 3}, {}, false}, "torch.prod(x0 * 0.5)"},
           {{"last dim", {3, 4}, {-1}, false}, "torch.prod(x0 * 0.5, -1)"},
           {{"first dim, keepdim", {3, 4}, {0}, true}, "torch.prod(x0 * 0.5, 0, keepdim=True)"},
           {{"two dims", {2, 3, 2}, {0, 2}, false}, "torch.prod(torch.prod(x0 * 0.5, 2), 0)"},
           {{"all, keepdim", {2, 3}, {}, true}, "torch.prod(x0 * 0.5).reshape(1, 1)"},
           {{"rank 0", {}, {}, false}, "torch.prod(x0 * 0.5)"},
           {{"integers", {6, 7}, {1}, false}, "torch.prod(x0, 1)"}}) {
    const bool whole = d.variant[0] == 'i';
    const auto product = [=](A a) {
      return reference::reduce(whole ? a : halved(a), d.dims, d.keepdim, [](Numbers1 v) {
        return v.empty() ? 1 : reference::running_products(v).back();
      });
    };
    OpCase& c = of_one(
        list, "prod", d.variant, d.torch, {d.shape, Kind::value}, whole ? kWhole : kFloats,
        [=](T x) { return prod(is_floating(x.dtype()) ? mul(x, 0.5) : x, d.dims, d.keepdim); },
        product);
    bound_by_sizes(c, of_factors);
    c.result = widened;
  }
  refuse_dims(list, "prod", [](T x, I dim) { (void)prod(x, {dim}); }, "dims");
  refuse(
      list, "prod",
      {{"dims", kShape, "each dim once", [] { return prod(on_device::zeros({2, 3}), {0, -2}); }}});
}

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
  refuse_dims(list, "sort", [](T x, I d) { (void)sort(x, d); });
  refuse_dims(list, "argsort", [](T x, I d) { (void)argsort(x, d); });
  refuse_dims(list, "topk", [](T x, I d) { (void)topk(x, 1, d); });
  BadInputs(list, "topk")
      .integers("k", {-1, 4, kLeast}, kArgument, "k in .0, 3. for dim 1 of .*got ",
                [](I k) { (void)topk(on_device::zeros({2, 3}), k); });
}

void add_chosen(Cases& list) {
  for (const bool largest : {true, false}) {
    const char* op = largest ? "max_with_index" : "min_with_index";
    const auto choose = [largest](T x, I dim, bool keep) {
      return largest ? max_with_index(x, dim, keep) : min_with_index(x, dim, keep);
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
    refuse_dims(list, op, [choose](T x, I d) { (void)choose(x, d, false); });
    refuse(list, op, {{"x", kShape, "at least one element", [choose] {
                         (void)choose(on_device::zeros({2, 0}), 1, false);
                       }}});
  }
}

}  // namespace

void add_scan_cases(Cases& list) {
  add_scans(list);
  add_products(list);
  add_sorts(list);
  add_chosen(list);
}

}  // namespace braid::test
