// Running results and order along a dim.
#include <limits>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/scan.hpp>
#include <braid/core/ops/sort.hpp>

#include "op_cases.hpp"
#include "reference/elementwise.hpp"
#include "reference/reduce.hpp"
#include "reference/scan.hpp"
#include "support/on_device.hpp"

namespace braid::test {
namespace {

using Kind = Input::Kind;
using T = const Tensor&;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max(),
                       kSmallest = std::numeric_limits<std::int64_t>::min();

DType as_int64(DType) { return DType::int64; }
DType widened(DType t) { return is_floating(t) ? t : DType::int64; }

OpCase one_input(const char* op, std::string variant, Sizes shape, Kind kind, Function call,
                 std::function<Array(const Array&)> expected, std::string torch) {
  OpCase c;
  c.op = op;
  c.variant = std::move(variant);
  c.inputs = {{std::move(shape), kind}};
  c.call = std::move(call);
  c.expected = expecting([expected](const Array& a) { return Array(expected(a)); });
  c.dtypes = floating_dtypes();
  c.torch = std::move(torch);
  return c;
}

Array halved(const Array& a) {
  return reference::map(a, [](double x) { return x / 2; });
}

/// Three dims that are wrong.
template <class F> void refuse_dims(OpCase& c, const std::string& op, F f) {
  for (const std::int64_t dim : {std::int64_t{2}, std::int64_t{-3}, kLargest})
    c.errors.push_back({"dim", [=] { (void)f(on_device::zeros({2, 3}), dim); }, "IndexError",
                        op + ": expected .*got " + std::to_string(dim)});
  c.errors.push_back({"x", [=] { (void)f(Tensor(), 0); }, "ArgumentError", "undefined"});
  c.errors.push_back(
      {"x", [=] { (void)f(on_device::zeros({}), 1); }, "IndexError", op + ": expected .*got 1"});
  c.errors.push_back(
      {"x", [=] { (void)f(on_device::zeros({2}), -2); }, "IndexError", op + ": expected .*got -2"});
}

struct Line {
  const char* variant;
  Sizes shape;
  std::int64_t dim;
};
const std::vector<Line>& lines() {
  static const std::vector<Line> list{{"last dim", {3, 4}, -1},     {"first dim", {3, 4}, 0},
                                      {"middle dim", {2, 3, 2}, 1}, {"vector", {5}, 0},
                                      {"rank 0", {}, -1},           {"dim of size 1", {3, 1}, 1}};
  return list;
}

void add_scans(std::vector<OpCase>& list) {
  for (const Line& l : lines()) {
    const std::int64_t dim = l.dim;
    OpCase c = one_input(
        "cumsum", l.variant, l.shape, Kind::value,
        function_of([dim](T x) { return cumsum(x, dim); }),
        [dim](const Array& a) { return reference::cumsum(a, dim); },
        str("torch.cumsum(x0, ", dim, ")"));
    c.dtypes = all_dtypes();
    c.result = widened;
    c.accuracy = Accuracy::bound;
    c.bound = expecting([dim](const Array& a) {
      const double n = static_cast<double>(a.size());
      return reference::map(reference::cumsum(reference::abs(a), dim),
                            [n](double s) { return (40 + n / 1000) * s; });
    });
    if (c.variant == "last dim")
      refuse_dims(c, "cumsum", [](T x, std::int64_t d) { return cumsum(x, d); });
    list.push_back(c);
    OpCase p = one_input(
        // below 1: no size overflows
        "cumprod", l.variant, l.shape, Kind::value,
        function_of([dim](T x) { return cumprod(mul(x, 0.5), dim); }),
        [dim](const Array& a) { return reference::cumprod(halved(a), dim); },
        str("torch.cumprod(x0 * 0.5, ", dim, ")"));
    p.accuracy = Accuracy::bound;
    p.bound = expecting([dim](const Array& a) {
      const double n = static_cast<double>(a.size());
      return reference::map(reference::cumprod(halved(a), dim),
                            [n](double y) { return (n + 2) * std::fabs(y); });
    });
    if (p.variant == "last dim")
      refuse_dims(p, "cumprod", [](T x, std::int64_t d) { return cumprod(x, d); });
    list.push_back(p);
  }
  OpCase integers = one_input(
      "cumprod", "integers", {6, 7}, Kind::value, function_of([](T x) { return cumprod(x, 1); }),
      [](const Array& a) { return reference::cumprod(a, 1); }, "torch.cumprod(x0, 1)");
  integers.dtypes = {DType::bool_, DType::uint8, DType::int32, DType::int64, DType::float64};
  integers.result = widened;
  integers.accuracy = Accuracy::tolerance;
  list.push_back(integers);
}

void add_products(std::vector<OpCase>& list) {
  struct Dims {
    const char* variant;
    Sizes shape, dims;
    bool keepdim;
    const char* torch;
  };
  for (const Dims& d : std::vector<Dims>{
           {"all", {2, 3}, {}, false, "torch.prod(x0 * 0.5)"},
           {"last dim", {3, 4}, {-1}, false, "torch.prod(x0 * 0.5, -1)"},
           {"first dim, keepdim", {3, 4}, {0}, true, "torch.prod(x0 * 0.5, 0, keepdim=True)"},
           {"two dims", {2, 3, 2}, {0, 2}, false, "torch.prod(torch.prod(x0 * 0.5, 2), 0)"},
           {"all, keepdim", {2, 3}, {}, true, "torch.prod(x0 * 0.5).reshape(1, 1)"},
           {"rank 0", {}, {}, false, "torch.prod(x0 * 0.5)"},
           {"integers", {6, 7}, {1}, false, "torch.prod(x0, 1)"}}) {
    const Shape dims(d.dims);
    const bool keep = d.keepdim;
    OpCase c = one_input(
        "prod", d.variant, d.shape, Kind::value, function_of([dims, keep](T x) {
          return prod(is_floating(x.dtype()) ? mul(x, 0.5) : x, dims, keep);
        }),
        [d](const Array& a) {
          return reference::reduce(d.variant == std::string("integers") ? a : halved(a), d.dims,
                                   d.keepdim, [](const std::vector<double>& v) {
                                     return v.empty() ? 1 : reference::running_products(v).back();
                                   });
        },
        d.torch);
    c.accuracy = Accuracy::bound;
    c.bound = [expected = c.expected](const std::vector<Array>& a) {
      const double n = static_cast<double>(a[0].size());
      return std::vector<Array>{
          reference::map(expected(a)[0], [n](double y) { return (n + 2) * std::fabs(y); })};
    };
    if (c.variant == "integers")
      c.dtypes = {DType::bool_, DType::uint8, DType::int32, DType::int64};
    c.result = widened;
    if (c.variant == "all") {
      refuse_dims(c, "prod", [](T x, std::int64_t dim) { return prod(x, {dim}); });
      for (BadInput& e : c.errors)
        if (e.argument == "dim") e.argument = "dims";
      c.errors.push_back({"dims", [] { (void)prod(on_device::zeros({2, 3}), {0, -2}); },
                          "ShapeError", "prod: expected each dim once"});
    }
    list.push_back(c);
  }
}

void add_sorts(std::vector<OpCase>& list) {
  for (const Line& l : lines())
    for (const bool descending : {false, true}) {
      const std::int64_t dim = l.dim;
      const std::string variant = str(l.variant, descending ? ", descending" : ""),
                        words = str("dim=", dim, ", descending=", descending ? "True" : "False");
      OpCase c = one_input(
          "sort", variant, l.shape, Kind::distinct,
          function_of([=](T x) { return sort(x, dim, descending).values; }),
          [=](const Array& a) { return reference::sorted(a, dim, descending, false); },
          str("torch.sort(x0, ", words, ", stable=True)[0]"));
      c.dtypes = all_dtypes();
      c.kinks = true;
      if (variant == "last dim")
        refuse_dims(c, "sort", [](T x, std::int64_t d) { return sort(x, d).values; });
      list.push_back(c);
      c = one_input(
          "argsort", variant, l.shape, Kind::value,
          function_of([=](T x) { return argsort(x, dim, descending); }),
          [=](const Array& a) { return reference::sorted(a, dim, descending, true); },
          str("torch.argsort(x0, ", words, ", stable=True)"));
      c.dtypes = all_dtypes();
      c.differentiable = false;
      c.result = as_int64;
      if (variant == "last dim")
        refuse_dims(c, "argsort", [](T x, std::int64_t d) { return argsort(x, d); });
      list.push_back(c);
    }
  for (const Line& l : std::vector<Line>{
           {"last dim", {3, 4}, -1}, {"first dim", {4, 3}, 0}, {"longer rows", {2, 60}, 1}})
    for (const bool largest : {true, false})
      for (const bool indices : {false, true}) {
        const std::int64_t dim = l.dim;
        OpCase c = one_input(
            "topk", str(l.variant, largest ? "" : ", smallest", indices ? ", indices" : ""),
            l.shape, indices ? Kind::value : Kind::distinct, function_of([=](T x) {
              const ValuesIndices y = topk(x, 2, dim, largest);
              return indices ? y.indices : y.values;
            }),
            [=](const Array& a) { return reference::sorted(a, dim, largest, indices, 2); },
            // PyTorch's own topk does not say which of equal elements it takes.
            str("torch.sort(x0, dim=", dim, ", descending=", largest ? "True" : "False",
                ", stable=True)[", indices ? 1 : 0, "].narrow(", dim, ", 0, 2)"));
        c.dtypes = all_dtypes();
        if (indices) c.differentiable = false, c.result = as_int64;
        else c.kinks = true;
        if (c.variant == "last dim") {
          refuse_dims(c, "topk", [](T x, std::int64_t d) { return topk(x, 1, d).values; });
          for (const std::int64_t k : {std::int64_t{-1}, std::int64_t{4}, kSmallest})
            c.errors.push_back({"k", [=] { (void)topk(on_device::zeros({2, 3}), k); },
                                "ArgumentError",
                                str("topk: expected k in .0, 3. for dim 1 of .*got ", k)});
        }
        list.push_back(c);
      }
}

void add_chosen(std::vector<OpCase>& list) {
  for (const Line& l : lines())
    for (const bool largest : {true, false})
      for (const bool indices : {false, true}) {
        const std::int64_t dim = l.dim;
        const bool keep = dim == 0;
        OpCase c = one_input(
            largest ? "max_with_index" : "min_with_index",
            str(l.variant, indices ? ", indices" : ""), l.shape,
            indices ? Kind::value : Kind::distinct, function_of([=](T x) {
              const ValuesIndices y =
                  largest ? max_with_index(x, dim, keep) : min_with_index(x, dim, keep);
              return indices ? y.indices : y.values;
            }),
            [=](const Array& a) {
              if (indices)
                return largest ? reference::argmax(a, dim, keep) : reference::argmin(a, dim, keep);
              return largest ? reference::max(a, {dim}, keep) : reference::min(a, {dim}, keep);
            },
            str("torch.", largest ? "max" : "min", "(x0, ", dim, keep ? ", keepdim=True)[" : ")[",
                indices ? 1 : 0, "]"));
        c.dtypes = all_dtypes();
        if (indices) c.differentiable = false, c.result = as_int64;
        else c.kinks = true;
        if (c.variant == "last dim") {
          const auto f = [largest](T x, std::int64_t d) {
            return largest ? max_with_index(x, d) : min_with_index(x, d);
          };
          refuse_dims(c, c.op, f);
          c.errors.push_back({"x", [f] { (void)f(on_device::zeros({2, 0}), 1); }, "ShapeError",
                              c.op + ": expected at least one element"});
        }
        list.push_back(c);
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
