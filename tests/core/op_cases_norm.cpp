#include <braid/core/ops/norm.hpp>

#include <braid/core/ops/create.hpp>

#include "op_cases.hpp"
#include "reference/norm.hpp"
#include "support/on_device.hpp"

namespace braid::test {
namespace {

using T = const Tensor&;

Tensor ones_here(const Shape& shape, DType dtype = DType::float32) {
  return on_device::ones(shape, {.dtype = dtype});
}
Shape last(T x, int dims) {
  Shape s;
  for (int d = x.dim() - dims; d < x.dim(); ++d) s.push_back(x.shape()[d]);
  return s;
}
std::int64_t groups_of(std::int64_t channels) { return channels > 0 && channels % 2 == 0 ? 2 : 1; }

Input optional(const Sizes& shape) {
  Input input{shape};
  input.optional = true;
  return input;
}

/// Weight and bias of a wrong shape, dtype, device and a negative eps, for an op that takes (x,
/// weight, bias, eps).
std::vector<BadInput> bad_affine(
    const std::string& op, const std::function<Tensor(T x, T weight, T bias, double eps)>& call,
    const Shape& x, const Shape& fits) {
  std::vector<BadInput> list;
  for (const bool weight : {true, false}) {
    const std::string name = weight ? "weight" : "bias";
    const auto with = [=](const std::function<Tensor()>& bad) {
      return [=] {
        (void)(weight ? call(ones_here(x), bad(), {}, 1e-5)
                      : call(ones_here(x), ones_here(fits), bad(), 1e-5));
      };
    };
    Shape longer = fits;
    longer[0] += 1;
    list.push_back(
        {name, with([=] { return ones_here(longer); }), "ShapeError", op + ": expected " + name});
    list.push_back(
        {name, with([=] { return ones_here({}); }), "ShapeError", op + ": expected " + name});
    list.push_back({name, with([=] { return ones_here(fits, DType::float64); }), "DTypeError",
                    op + ": expected one dtype, got float32 and float64"});
  }
  for (const double eps : {-1e-5, -1.0, std::nan("")})
    list.push_back({"eps", [=] { (void)call(ones_here(x), {}, {}, eps); }, "ArgumentError",
                    op + ": expected eps >= 0, got "});
  return list;
}
/// x that no normalisation takes.
void add_bad_x(std::vector<BadInput>& list, const std::string& op,
               const std::function<Tensor(T x)>& call, const Shape& low_rank) {
  list.push_back({"x", [=] { (void)call(ones_here({4, 4}, DType::int64)); }, "DTypeError",
                  op + ": expected a floating point tensor, got int64"});
  list.push_back({"x", [=] { (void)call(ones_here({4, 4}, DType::bool_)); }, "DTypeError",
                  op + ": expected a floating point tensor, got bool"});
  list.push_back(
      {"x", [=] { (void)call(ones_here(low_rank)); }, "ShapeError", op + ": expected x"});
}

OpCase norm_case(const char* op, const std::string& variant, std::vector<Input> inputs) {
  OpCase c;
  c.op = op;
  c.variant = variant;
  c.inputs = std::move(inputs);
  c.dtypes = floating_dtypes();
  c.accuracy = Accuracy::tolerance;
  return c;
}

/// (x), (x, weight) or (x, weight, bias) to the three of them, undefined where absent.
template <class F> Function with_affine(F f) {
  return [f](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    return {f(in[0], in.size() > 1 ? in[1] : Tensor(), in.size() > 2 ? in[2] : Tensor())};
  };
}
template <class F> auto expecting_affine(F f) {
  return [f](const std::vector<Array>& in) -> std::vector<Array> {
    return {f(in[0], in.size() > 1 ? &in[1] : nullptr, in.size() > 2 ? &in[2] : nullptr)};
  };
}

void add_last_dims(std::vector<OpCase>& list, bool center) {
  const char* op = center ? "layer_norm" : "rms_norm";
  const auto call = [center](T x, T w, T b, int dims) {
    return center ? layer_norm(x, last(x, dims), w, b, 0.5) : rms_norm(x, last(x, dims), w, 0.5);
  };
  struct Shapes {
    const char* variant;
    Sizes x;
    int dims, affine;  // affine: how many of weight and bias
  };
  for (const Shapes& s : std::vector<Shapes>{{"last dim", {3, 5}, 1, 2},
                                             {"two dims", {2, 3, 4}, 2, 2},
                                             {"all dims", {3, 4}, 2, 1},
                                             {"vector", {5}, 1, 0},
                                             {"batch", {2, 2, 5}, 1, 1},
                                             {"one element a row", {3, 1}, 1, 2}}) {
    std::vector<Input> inputs{{s.x}};
    for (int k = 0; k < (center ? s.affine : std::min(s.affine, 1)); ++k)
      inputs.push_back(optional(Sizes(s.x.end() - s.dims, s.x.end())));
    OpCase c = norm_case(op, s.variant, inputs);
    c.call = with_affine([=](T x, T w, T b) { return call(x, w, b, s.dims); });
    c.expected = expecting_affine([=](const Array& x, const Array* w, const Array* b) {
      return reference::layer_norm(x, s.dims, w, b, center, 0.5);
    });
    const std::string over = str("x0.shape[", -s.dims, ":]"),
                      weight = inputs.size() > 1 ? "x1" : "None",
                      bias = inputs.size() > 2 ? "x2" : "None";
    c.torch = center ? str("torch.nn.functional.layer_norm(x0, ", over, ", ", weight, ", ", bias,
                           ", 0.5)")
                     : str("torch.nn.functional.rms_norm(x0, ", over, ", ", weight, ", 0.5)");
    if (s.variant == std::string("last dim")) {
      const auto direct = [center](T x, const Shape& over_dims, T w, T b, double eps) {
        return center ? layer_norm(x, over_dims, w, b, eps) : rms_norm(x, over_dims, w, eps);
      };
      c.errors = bad_affine(
          op, [=](T x, T w, T b, double eps) { return direct(x, {4}, w, b, eps); }, {2, 4}, {4});
      if (!center) std::erase_if(c.errors, [](const BadInput& e) { return e.argument == "bias"; });
      add_bad_x(c.errors, op, [=](T x) { return direct(x, {4}, {}, {}, 1e-5); }, {2, 3});
      for (const Shape& bad : {Shape{}, Shape{3}, Shape{2, 2, 4}, Shape{4, 2}})
        c.errors.push_back(
            {"normalized_shape", [=] { (void)direct(ones_here({2, 4}), bad, {}, {}, 1e-5); },
             "ShapeError", std::string(op) + ": expected (x that ends in|a) normalized_shape"});
    }
    list.push_back(c);
  }
}

void add_group_norm(std::vector<OpCase>& list) {
  struct Shapes {
    const char* variant;
    Sizes x;
    int affine;
  };
  for (const Shapes& s : std::vector<Shapes>{{"sequence", {2, 4, 3}, 2},
                                             {"image", {2, 4, 3, 2}, 1},
                                             {"channels alone", {3, 4}, 2},
                                             {"no weights", {2, 4, 5}, 0}}) {
    std::vector<Input> inputs{{s.x}};
    for (int k = 0; k < s.affine; ++k) inputs.push_back(optional({s.x[1]}));
    OpCase c = norm_case("group_norm", s.variant, inputs);
    c.call = with_affine(
        [](T x, T w, T b) { return group_norm(x, groups_of(x.shape()[1]), w, b, 0.5); });
    c.expected = expecting_affine([](const Array& x, const Array* w, const Array* b) {
      return reference::group_norm(x, groups_of(x.shape[1]), w, b, 0.5);
    });
    c.torch = str(
        "torch.nn.functional.group_norm(x0, 2 if x0.shape[1] > 0 and x0.shape[1] % 2 == 0 else 1, ",
        s.affine > 0 ? "x1" : "None", ", ", s.affine > 1 ? "x2" : "None", ", 0.5)");
    if (s.variant == std::string("sequence")) {
      c.errors = bad_affine("group_norm",
                            [](T x, T w, T b, double eps) { return group_norm(x, 2, w, b, eps); },
                            {2, 4, 3}, {4});
      add_bad_x(c.errors, "group_norm", [](T x) { return group_norm(x, 1); }, {4});
      for (const std::int64_t groups : {0, -1, 3, 8})
        c.errors.push_back({"num_groups", [=] { (void)group_norm(ones_here({2, 4, 3}), groups); },
                            groups < 1 ? "ArgumentError" : "ShapeError",
                            "group_norm: expected (num_groups >= 1|channels that num_groups)"});
      c.errors.push_back({"x", [] { (void)group_norm(ones_here({1, 4}), 4); }, "ArgumentError",
                          "group_norm: expected more than one value a group"});
    }
    list.push_back(c);
  }
}

Tensor filled_like_channels(T x, double value) {
  return full({x.shape()[1]}, value, {.device = x.device(), .dtype = x.dtype()});
}

void add_batch_norm(std::vector<OpCase>& list) {
  struct Shapes {
    const char* variant;
    Sizes x;
    int affine;
    bool training;
  };
  for (const Shapes& s : std::vector<Shapes>{{"training, rows", {5, 3}, 2, true},
                                             {"training, image", {2, 3, 4, 2}, 1, true},
                                             {"training, sequence, no weights", {4, 3, 2}, 0, true},
                                             {"evaluation, rows", {5, 3}, 2, false},
                                             {"evaluation, image", {2, 3, 2, 2}, 1, false},
                                             {"evaluation, no weights", {4, 3}, 0, false}}) {
    std::vector<Input> inputs{{s.x, Input::Kind::distinct}};
    for (int k = 0; k < s.affine; ++k) inputs.push_back(optional({s.x[1]}));
    OpCase c = norm_case("batch_norm", s.variant, inputs);
    c.call = with_affine([training = s.training](T x, T w, T b) {
      if (x.dim() < 2) return batch_norm(x, Tensor(), Tensor(), w, b, training, 0.1, 0.5);
      return batch_norm(x, filled_like_channels(x, 0.25), filled_like_channels(x, 1.5), w, b,
                        training, 0.1, 0.5);
    });
    c.expected =
        expecting_affine([training = s.training](const Array& x, const Array* w, const Array* b) {
          if (training) return reference::batch_norm(x, w, b, 0.5);
          return reference::generate(x.shape, [&](const Sizes& i) {
            return (reference::value(x, i) - 0.25) / std::sqrt(1.5 + 0.5) * (w ? (*w)[i[1]] : 1) +
                   (b ? (*b)[i[1]] : 0);
          });
        });
    const std::string channels = "(x0.shape[1],), ", type = ", dtype=x0.dtype)";
    c.torch = str("torch.nn.functional.batch_norm(x0, torch.full(", channels, "0.25", type,
                  ", torch.full(", channels, "1.5", type, ", ", s.affine > 0 ? "x1" : "None", ", ",
                  s.affine > 1 ? "x2" : "None", ", ", s.training ? "True" : "False", ", 0.1, 0.5)");
    if (s.variant == std::string("training, rows")) {
      c.errors = bad_affine("batch_norm",
                            [](T x, T w, T b, double eps) {
                              return batch_norm(x, Tensor(), Tensor(), w, b, true, 0.1, eps);
                            },
                            {5, 3}, {3});
      add_bad_x(c.errors, "batch_norm",
                [](T x) { return batch_norm(x, Tensor(), Tensor(), {}, {}, true); }, {4});
      for (const bool first : {true, false}) {
        const std::string name = first ? "running_mean" : "running_var";
        const auto with = [=](const std::function<Tensor()>& bad) {
          return [=] {
            (void)(first ? batch_norm(ones_here({5, 3}), bad(), ones_here({3}))
                         : batch_norm(ones_here({5, 3}), ones_here({3}), bad()));
          };
        };
        c.errors.push_back(
            {name, with([] { return Tensor(); }), "ArgumentError",
             "batch_norm: expected running_mean and running_var in evaluation, got no " + name});
        c.errors.push_back({name, with([] { return ones_here({4}); }), "ShapeError",
                            "batch_norm: expected " + name});
        c.errors.push_back({name, with([] { return ones_here({3}, DType::int64); }), "DTypeError",
                            "batch_norm: expected " + name + " of floating point"});
      }
      const auto track = [](const RunningStatistics& running) {
        (void)batch_norm(ones_here({5, 3}), running, {}, {}, true);
      };
      for (const bool first : {true, false}) {
        const std::string name = first ? "mean" : "var";
        const auto with = [=](const std::function<Tensor()>& bad) {
          return
              [=] { track(first ? RunningStatistics{bad(), {}} : RunningStatistics{{}, bad()}); };
        };
        c.errors.push_back({name, with([] { return ones_here({4}); }), "ShapeError",
                            "batch_norm: expected running_" + name});
        c.errors.push_back({name, with([] { return ones_here({1, 3}); }), "ShapeError",
                            "batch_norm: expected running_" + name});
        c.errors.push_back({name, with([] { return ones_here({3}, DType::bool_); }), "DTypeError",
                            "batch_norm: expected running_" + name});
      }
      const auto counting = [=](const std::function<Tensor()>& count) {
        return [=] { track({ones_here({3}), ones_here({3}), count()}); };
      };
      c.errors.push_back({"num_batches_tracked", counting([] { return ones_here({}); }),
                          "DTypeError", "expected num_batches_tracked of int64, got float32"});
      c.errors.push_back({"num_batches_tracked",
                          counting([] { return ones_here({2}, DType::int64); }), "ShapeError",
                          "expected num_batches_tracked of one element, got \\[2\\]"});
      c.errors.push_back({"num_batches_tracked",
                          [=] { track({ones_here({3}), ones_here({3}), {}, std::nullopt}); },
                          "ArgumentError",
                          "expected num_batches_tracked where there is no momentum, got none"});
      for (const double momentum : {-0.1, 1.5, std::nan("")})
        c.errors.push_back({"momentum",
                            [=] {
                              (void)batch_norm(ones_here({5, 3}), ones_here({3}), ones_here({3}),
                                               {}, {}, true, momentum);
                            },
                            "ArgumentError", "batch_norm: expected 0 <= momentum <= 1, got "});
      c.errors.push_back(
          {"x", [] { (void)batch_norm(ones_here({1, 3}), Tensor(), Tensor(), {}, {}, true); },
           "ArgumentError",
           "batch_norm: expected more than 1 value per channel when training, got input size"});
    }
    list.push_back(c);
  }
}

}  // namespace

void add_norm_cases(std::vector<OpCase>& list) {
  add_last_dims(list, true);
  add_last_dims(list, false);
  add_group_norm(list);
  add_batch_norm(list);
}

}  // namespace braid::test
