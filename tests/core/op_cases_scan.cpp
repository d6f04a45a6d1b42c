// Running results and order along a dim.
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/scan.hpp>
#include <braid/core/ops/sort.hpp>

#include "op_case_makers.hpp"
#include "reference/reduce.hpp"
#include "reference/scan.hpp"

namespace braid::test {
namespace {

OpCase& one_input(std::vector<OpCase>& list, const char* op, const std::string& variant,
                  const Sizes& shape, Kind kind, std::function<Tensor(T)> call,
                  std::function<Array(A)> expected, const std::string& torch,
                  const Types& dtypes = kAll) {
  OpCase& c = push(list, op, variant, torch, {{shape, kind}}, dtypes);
  c.call = function_of(std::move(call));
  c.expected = expecting(std::move(expected));
  return c;
}

Array halved(A a) { return times(a, 0.5); }
/// So many roundings as there are factors.
Array of_products(A products, A a) {
  return times(reference::abs(products), static_cast<double>(a.size()) + 2);
}

/// Three dims that are wrong, and x that has not the dim.
void refuse_dims(std::vector<OpCase>& list, const char* op, const std::function<void(T, I)>& f,
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

void add_scans(std::vector<OpCase>& list) {
  for (const Line& l : kLines) {
    const I dim = l.dim;
    OpCase& c = one_input(
        list, "cumsum", l.variant, l.shape, Kind::value, [dim](T x) { return cumsum(x, dim); },
        [dim](A a) { return reference::cumsum(a, dim); }, str("torch.cumsum(x0, ", dim, ")"));
    c.result = widened;
    c.accuracy = Accuracy::bound;
    c.bound = expecting([dim](A a) {
      return times(reference::cumsum(reference::abs(a), dim),
                   40 + static_cast<double>(a.size()) / 1000);
    });
    OpCase& p = one_input(  // below 1: no size overflows
        list, "cumprod", l.variant, l.shape, Kind::value,
        [dim](T x) { return cumprod(mul(x, 0.5), dim); },
        [dim](A a) { return reference::cumprod(halved(a), dim); },
        str("torch.cumprod(x0 * 0.5, ", dim, ")"), kFloats);
    p.accuracy = Accuracy::bound;
    p.bound = expecting([dim](A a) { return of_products(reference::cumprod(halved(a), dim), a); });
  }
  OpCase& c = one_input(
      list, "cumprod", "integers", {6, 7}, Kind::value, [](T x) { return cumprod(x, 1); },
      [](A a) { return reference::cumprod(a, 1); }, "torch.cumprod(x0, 1)",
      {DType::bool_, DType::uint8, DType::int32, DType::int64, DType::float64});
  c.result = widened;
  c.accuracy = Accuracy::tolerance;
  refuse_dims(list, "cumsum", [](T x, I d) { (void)cumsum(x, d); });
  refuse_dims(list, "cumprod", [](T x, I d) { (void)cumprod(x, d); });
}

void add_products(std::vector<OpCase>& list) {
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
    OpCase& c = one_input(
        list, "prod", d.variant, d.shape, Kind::value,
        [=](T x) { return prod(is_floating(x.dtype()) ? mul(x, 0.5) : x, d.dims, d.keepdim); },
        product, d.torch, whole ? kWhole : kFloats);
    c.accuracy = Accuracy::bound;
    c.bound = expecting([=](A a) { return of_products(product(a), a); });
    c.result = widened;
  }
  refuse_dims(list, "prod", [](T x, I dim) { (void)prod(x, {dim}); }, "dims");
  refuse(
      list, "prod",
      {{"dims", kShape, "each dim once", [] { return prod(on_device::zeros({2, 3}), {0, -2}); }}});
}

void add_sorts(std::vector<OpCase>& list) {
  for (const Line& l : kLines)
    for (const bool descending : {false, true}) {
      const I dim = l.dim;
      const std::string variant = str(l.variant, descending ? ", descending" : ""),
                        words =
                            str("sort(x0, dim=", dim,
                                ", descending=", descending ? "True" : "False", ", stable=True)");
      one_input(
          list, "sort", variant, l.shape, Kind::distinct,
          [=](T x) { return sort(x, dim, descending).values; },
          [=](A a) { return reference::sorted(a, dim, descending, false); },
          "torch." + words + "[0]")
          .kinks = true;
      OpCase& c = one_input(
          list, "argsort", variant, l.shape, Kind::value,
          [=](T x) { return argsort(x, dim, descending); },
          [=](A a) { return reference::sorted(a, dim, descending, true); }, "torch.arg" + words);
      c.differentiable = false;
      c.result = as_int64;
    }
  for (const Line& l : std::vector<Line>{
           {"last dim", {3, 4}, -1}, {"first dim", {4, 3}, 0}, {"longer rows", {2, 60}, 1}})
    for (const bool largest : {true, false})
      for (const bool indices : {false, true}) {
        const I dim = l.dim;
        OpCase& c = one_input(
            list, "topk", str(l.variant, largest ? "" : ", smallest", indices ? ", indices" : ""),
            l.shape, indices ? Kind::value : Kind::distinct,
            [=](T x) {
              const ValuesIndices y = topk(x, 2, dim, largest);
              return indices ? y.indices : y.values;
            },
            [=](A a) { return reference::sorted(a, dim, largest, indices, 2); },
            // PyTorch's own topk does not say which of equal elements it takes.
            str("torch.sort(x0, dim=", dim, ", descending=", largest ? "True" : "False",
                ", stable=True)[", indices ? 1 : 0, "].narrow(", dim, ", 0, 2)"));
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

void add_chosen(std::vector<OpCase>& list) {
  for (const bool largest : {true, false}) {
    const char* op = largest ? "max_with_index" : "min_with_index";
    const auto choose = [largest](T x, I dim, bool keep) {
      return largest ? max_with_index(x, dim, keep) : min_with_index(x, dim, keep);
    };
    for (const Line& l : kLines)
      for (const bool indices : {false, true}) {
        const I dim = l.dim;
        const bool keep = dim == 0;
        OpCase& c = one_input(
            list, op, str(l.variant, indices ? ", indices" : ""), l.shape,
            indices ? Kind::value : Kind::distinct,
            [=](T x) {
              const ValuesIndices y = choose(x, dim, keep);
              return indices ? y.indices : y.values;
            },
            [=](A a) {
              if (indices)
                return largest ? reference::argmax(a, dim, keep) : reference::argmin(a, dim, keep);
              return largest ? reference::max(a, {dim}, keep) : reference::min(a, {dim}, keep);
            },
            str("torch.", largest ? "max" : "min", "(x0, ", dim, keep ? ", keepdim=True)[" : ")[",
                indices ? 1 : 0, "]"));
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

void add_scan_cases(std::vector<OpCase>& list) {
  add_scans(list);
  add_products(list);
  add_sorts(list);
  add_chosen(list);
}

}  // namespace braid::test
