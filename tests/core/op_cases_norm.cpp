#include <algorithm>

#include <braid/core/ops/norm.hpp>

#include "op_case_makers.hpp"
#include "reference/norm.hpp"

namespace braid::test {
namespace {

Shape last(T x, int dims) {
  Shape s;
  for (int d = x.dim() - dims; d < x.dim(); ++d) s.push_back(x.shape()[d]);
  return s;
}
I groups_of(I channels) { return channels > 0 && channels % 2 == 0 ? 2 : 1; }

/// Adds bad inputs: weight and bias of a wrong shape, dtype or device, a negative eps, and an x
/// that no normalisation accepts. `call` is an op on (x, weight, bias, eps).
void add_errors(Cases& list, const std::string& op,
                const std::function<Tensor(T x, T weight, T bias, double eps)>& call,
                const Sizes& x, I fits, const Sizes& low_rank) {
  BadInputs bad(list, op);
  for (const char* name : {"weight", "bias"}) {
    if (op == "rms_norm" && name[0] == 'b') continue;
    const auto with = [=, weight = name[0] == 'w'](T t) {
      return weight ? call(ones_of(x), t, {}, 1e-5) : call(ones_of(x), ones_of({fits}), t, 1e-5);
    };
    bad.of(name).shapes(with, {{fits + 1}, {}}, name);
    bad.types(with, {fits}, {DType::float64}, "one dtype, got float32 and float64");
  }
  bad.numbers("eps", {-1e-5, -1.0, kNan}, kArgument, "eps >= 0, got ",
              [=](double eps) { return call(ones_of(x), {}, {}, eps); });
  const auto alone = [=](T t) { return call(t, {}, {}, 1e-5); };
  bad.of("x").types(alone, {4, 4}, {DType::int64, DType::bool_}).shapes(alone, {low_rank}, "x");
}

/// Adds a case of (x), (x, weight) or (x, weight, bias). For absent ones f receives undefined
/// tensors and r receives nullptr.
template <class F, class R>
OpCase& add(Cases& list, const char* op, const char* variant, std::vector<Input> inputs, F f, R r,
            const std::string& torch) {
  for (std::size_t i = 1; i < inputs.size(); ++i) inputs[i].optional = true;
  OpCase& c = push(list, op, variant, torch, std::move(inputs), kFloats, Accuracy::tolerance);
  c.call = [f](Tensors in) {
    return std::vector<Tensor>{
        f(in[0], in.size() > 1 ? in[1] : Tensor(), in.size() > 2 ? in[2] : Tensor())};
  };
  c.expected = [r](Arrays in) {
    return std::vector<Array>{
        r(in[0], in.size() > 1 ? &in[1] : nullptr, in.size() > 2 ? &in[2] : nullptr)};
  };
  return c;
}
/// Returns PyTorch's name of weight or bias.
const char* name_of(int which, int affine) {
  return affine < which ? "None" : which == 1 ? "x1" : "x2";
}

void add_last_dims(Cases& list, bool center) {
  const char* op = center ? "layer_norm" : "rms_norm";
  const auto call = [center](T x, const Shape& over, T w, T b, double eps) {
    return center ? layer_norm(x, over, w, b, eps) : rms_norm(x, over, w, eps);
  };
  struct Shapes {
    const char* variant;
    Sizes x;
    int dims, affine;  // affine: 0 for neither, 1 for weight, 2 for weight and bias
  };
  for (const Shapes& s : std::vector<Shapes>{{"last dim", {3, 5}, 1, 2},
                                             {"two dims", {2, 3, 4}, 2, 2},
                                             {"all dims", {3, 4}, 2, 1},
                                             {"vector", {5}, 1, 0},
                                             {"batch", {2, 2, 5}, 1, 1},
                                             {"one element a row", {3, 1}, 1, 2}}) {
    const int affine = center ? s.affine : std::min(s.affine, 1), dims = s.dims;
    std::vector<Input> inputs{{s.x}};
    inputs.resize(static_cast<std::size_t>(affine) + 1, {Sizes(s.x.end() - dims, s.x.end())});
    const std::string words =
        str("torch.nn.functional.", op, "(x0, x0.shape[", -dims, ":], ", name_of(1, affine), ", ",
            center ? str(name_of(2, affine), ", ") : "", "0.5)");
    add(
        list, op, s.variant, inputs,
        [=](T x, T w, T b) { return call(x, last(x, dims), w, b, 0.5); },
        [=](A x, const Array* w, const Array* b) {
          return reference::layer_norm(x, dims, w, b, center, 0.5);
        },
        words);
  }
  add_errors(list, op, [=](T x, T w, T b, double eps) { return call(x, {4}, w, b, eps); }, {2, 4},
             4, {2, 3});
  BadInputs(list, op).lists("normalized_shape", {Shape{}, Shape{3}, Shape{2, 2, 4}, Shape{4, 2}},
                            kShape, "(x that ends in|a) normalized_shape",
                            [=](const Shape& s) { return call(ones_of({2, 4}), s, {}, {}, 1e-5); });
}

void add_group_norm(Cases& list) {
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
    inputs.resize(static_cast<std::size_t>(s.affine) + 1, {Sizes{s.x[1]}});
    add(
        list, "group_norm", s.variant, inputs,
        [](T x, T w, T b) { return group_norm(x, groups_of(x.shape()[1]), w, b, 0.5); },
        [](A x, const Array* w, const Array* b) {
          return reference::group_norm(x, groups_of(x.shape[1]), w, b, 0.5);
        },
        str("torch.nn.functional.group_norm(x0, 2 if x0.shape[1] > 0 and x0.shape[1] % 2 == 0 "
            "else 1, ",
            name_of(1, s.affine), ", ", name_of(2, s.affine), ", 0.5)"));
  }
  add_errors(
      list, "group_norm",
      [](T x, T w, T b, double eps) { return group_norm(x, x.dim() > 1 ? 2 : 1, w, b, eps); },
      {2, 4, 3}, 4, {4});
  const auto grouped = [](I groups) { return group_norm(ones_of({2, 4, 3}), groups); };
  BadInputs(list, "group_norm")
      .integers("num_groups", {0, -1}, kArgument, "num_groups >= 1", grouped)
      .integers("num_groups", {3, 8}, kShape, "channels that num_groups", grouped)
      .of("x")
      .is(kArgument, "more than one value a group", [] { return group_norm(ones_of({1, 4}), 4); });
}

Tensor filled_like_channels(T x, double value) {
  return full({x.shape()[1]}, value).to(x.device(), x.dtype());
}

void add_batch_norm_errors(Cases& list) {
  const auto x = [] { return ones_of({5, 3}); };
  const auto numbers = [] { return ones_of({3}); };
  add_errors(list, "batch_norm",
             [](T t, T w, T b, double eps) {
               return batch_norm(t, Tensor(), Tensor(), w, b, true, 0.1, eps);
             },
             {5, 3}, 3, {4});
  const auto track = [x](const RunningStatistics& running) {
    return batch_norm(x(), running, {}, {}, true);
  };
  for (const bool mean : {true, false}) {
    const std::string name = mean ? "running_mean" : "running_var";
    const auto with = [=](T t) {
      return mean ? batch_norm(x(), t, numbers()) : batch_norm(x(), numbers(), t);
    };
    const auto tracked = [=](T t) {
      return track(mean ? RunningStatistics{t, {}} : RunningStatistics{{}, t});
    };
    BadInputs(list, "batch_norm", name.c_str())
        .is(kArgument, "running_mean and running_var in evaluation, got no " + name,
            [=] { return with(Tensor()); })
        .shapes(with, {{4}}, name)
        .types(with, {3}, {DType::int64}, name + " of floating point")
        .of(mean ? "mean" : "var")
        .shapes(tracked, {{4}, {1, 3}}, name)
        .types(tracked, {3}, {DType::bool_}, name);
  }
  const auto counting = [=](T count) { return track({numbers(), numbers(), count}); };
  const auto moving = [=](double momentum) {
    return batch_norm(x(), numbers(), numbers(), {}, {}, true, momentum);
  };
  BadInputs(list, "batch_norm", "num_batches_tracked")
      .types(counting, {}, {DType::float32}, "num_batches_tracked of int64, got ")
      .shapes(counting, {{2}}, "num_batches_tracked of one element, got \\[2\\]", kShape,
              DType::int64)
      .is(kArgument, "num_batches_tracked where there is no momentum, got none",
          [=] { return track({numbers(), numbers(), {}, std::nullopt}); })
      .numbers("momentum", {-0.1, 1.5, kNan}, kArgument, "0 <= momentum <= 1, got ", moving)
      .of("x")
      .is(kArgument, "more than 1 value per channel when training, got input size",
          [] { return batch_norm(ones_of({1, 3}), Tensor(), Tensor(), {}, {}, true); });
}

void add_batch_norm(Cases& list) {
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
    std::vector<Input> inputs{{s.x, Kind::distinct}};
    inputs.resize(static_cast<std::size_t>(s.affine) + 1, {Sizes{s.x[1]}});
    const bool training = s.training;
    const std::string channels = "(x0.shape[1],), ", type = ", dtype=x0.dtype), ";
    add(
        list, "batch_norm", s.variant, inputs,
        [training](T x, T w, T b) {
          if (x.dim() < 2) return batch_norm(x, Tensor(), Tensor(), w, b, training, 0.1, 0.5);
          return batch_norm(x, filled_like_channels(x, 0.25), filled_like_channels(x, 1.5), w, b,
                            training, 0.1, 0.5);
        },
        [training](A x, const Array* w, const Array* b) {
          if (training) return reference::batch_norm(x, w, b, 0.5);
          return reference::generate(x.shape, [&](const Sizes& i) {
            return (reference::value(x, i) - 0.25) / std::sqrt(1.5 + 0.5) * (w ? (*w)[i[1]] : 1) +
                   (b ? (*b)[i[1]] : 0);
          });
        },
        str("torch.nn.functional.batch_norm(x0, torch.full(", channels, "0.25", type, "torch.full(",
            channels, "1.5", type, name_of(1, s.affine), ", ", name_of(2, s.affine), ", ",
            training ? "True" : "False", ", 0.1, 0.5)"));
  }
  add_batch_norm_errors(list);
}

}  // namespace

void add_norm_cases(Cases& list) {
  add_last_dims(list, true);
  add_last_dims(list, false);
  add_group_norm(list);
  add_batch_norm(list);
  parameters(
      list,
      "batch_norm(x running weight bias training eps) "
      "batch_norm(x running_mean running_var weight bias training momentum eps) "
      "group_norm(x num_groups weight bias eps) layer_norm(x normalized_shape weight bias eps) "
      "rms_norm(x normalized_shape weight eps)");
}

}  // namespace braid::test
