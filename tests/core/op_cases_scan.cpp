// Cases of cumulative sums and products.
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/scan.hpp>

#include "op_case_makers.hpp"
#include "reference/reduce.hpp"
#include "reference/scan.hpp"

namespace braid::test {
namespace {

Array halved(A a) { return times(a, 0.5); }
/// As many roundings as there are factors.
double of_factors(Arrays a, A) { return static_cast<double>(a[0].size()) + 2; }

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
  refuse_lines(list, "cumsum", [](T x, I d) { (void)cumsum(x, d); });
  refuse_lines(list, "cumprod", [](T x, I d) { (void)cumprod(x, d); });
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
  refuse_lines(list, "prod", [](T x, I dim) { (void)prod(x, {dim}); }, "dims");
  refuse(
      list, "prod",
      {{"dims", kShape, "each dim once", [] { return prod(on_device::zeros({2, 3}), {0, -2}); }}});
}

}  // namespace

void add_scan_cases(Cases& list) {
  add_scans(list);
  add_products(list);
  parameters(list, "cumprod(x dim) cumsum(x dim) prod(x dims keepdim)");
}

}  // namespace braid::test
