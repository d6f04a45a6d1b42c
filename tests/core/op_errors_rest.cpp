// Bad inputs of products, reductions and joins.
#include <limits>

#include <braid/core/ops/join.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>

#include "op_errors.hpp"

namespace braid::test::on_device {

using T = const Tensor&;
using I = std::int64_t;

void add_reduction_errors(std::vector<OpCase>& list) {
  using Reduce = Tensor (*)(T, const Shape&, bool);
  for (const auto& [op, reduce] : std::vector<std::pair<const char*, Reduce>>{
           {"sum", sum}, {"mean", mean}, {"max", max}, {"min", min}}) {
    const Reduce f = reduce;  // clang 14 captures no structured binding
    const auto over_first = [f](T x) { return f(x, {0}, false); };
    BadInputs bad(list, op);
    bad.of("x").undefined(over_first).no_room(over_first, {op[0] == 's' || op[1] == 'e' ? 0 : 1});
    if (op == std::string("sum")) bad.too_large(over_first, {0});
    if (op == std::string("mean"))
      bad.types(over_first, {3}, {DType::int64, DType::bool_},
                "expected a floating point tensor, got ");
    if (op[0] == 'm' && op[1] != 'e')
      bad.shapes([f](T x) { return f(x, {}, false); }, {{0}, {2, 0}},
                 "expected at least one element to choose from, got shape ");
    const auto over = [f](const Shape& dims) { return f(random_tensor({2, 3}), dims, false); };
    bad.of("dims")
        .values<Shape>(over, {{2}, {-3}, {0, 2}}, "IndexError",
                       "expected a dim in \\[-2, 1\\], got ")
        .values<Shape>(over, {{0, 0}, {1, -1}}, "ShapeError", "expected each dim once, got ");
  }
  using Choose = Tensor (*)(T, I, bool);
  for (const auto& [op, choose] :
       std::vector<std::pair<const char*, Choose>>{{"argmax", argmax}, {"argmin", argmin}}) {
    const Choose f = choose;
    const auto over_last = [f](T x) { return f(x, -1, false); };
    BadInputs(list, op)
        .of("x")
        .undefined(over_last)
        .shapes(over_last, {{0}, {2, 0}},
                "expected at least one element to choose from, got shape ")
        .no_room([f](T x) { return f(x, 0, false); }, {1});
    BadInputs(list, op).of("dim").dims([f](I dim) { return f(random_tensor({2, 3}), dim, false); },
                                       2);
  }
  using Soft = Tensor (*)(T, I);
  for (const auto& [op, soft] : std::vector<std::pair<const char*, Soft>>{
           {"softmax", softmax}, {"log_softmax", log_softmax}}) {
    const Soft f = soft;
    const auto over_last = [f](T x) { return f(x, -1); };
    BadInputs(list, op)
        .of("x")
        .undefined(over_last)
        .types(over_last, {3}, {DType::int64, DType::bool_},
               "expected a floating point tensor, got ")
        .shapes(over_last, {{}}, "expected rank >= 1, got rank 0");
    BadInputs(list, op).of("dim").dims([f](I dim) { return f(random_tensor({2, 3}), dim); }, 2);
  }
  for (const char* which : {"a", "b"}) {
    const bool left = which[0] == 'a';
    const auto f = [left](T x) {
      return left ? mse_loss(x, random_tensor({2, 3})) : mse_loss(random_tensor({2, 3}), x);
    };
    BadInputs bad(list, "mse_loss");
    bad.of(which)
        .undefined(f)
        .elsewhere(f, {2, 3})
        .shapes(f, {{3}, {3, 2}}, "expected equal shapes, got ")
        .types(f, {2, 3}, {DType::float64}, "expected one dtype, got ");
    if (left) bad.types(f, {2, 3}, {DType::int64}, "expected a floating point tensor, got ");
  }
  BadInputs(list, "mse_loss").free("reduction", "an enumeration");
}

void add_product_errors(std::vector<OpCase>& list) {
  for (const char* which : {"a", "b"}) {
    const bool left = which[0] == 'a';
    const auto f = [left](T x) {
      return left ? matmul(x, random_tensor({3, 2})) : matmul(random_tensor({2, 3}), x);
    };
    BadInputs(list, "matmul")
        .of(which)
        .undefined(f)
        .elsewhere(f, {3, 3})
        .types(f, {3, 3}, {DType::float64, DType::int32}, "expected one dtype, got ")
        .shapes(f, {{}}, "expected tensors of rank >= 1, got ")
        .shapes(f, {{2}, {2, 4}}, "inner dimensions differ: expected b\\.shape\\[0\\] == ");
  }
  using Layer = Tensor (*)(T, T, T);
  for (const auto& [op, layer] : std::vector<std::pair<const char*, Layer>>{
           {"linear", linear}, {"linear_relu", linear_relu}}) {
    const Layer f = layer;
    const auto of_x = [f](T x) { return f(x, random_tensor({2, 3}), random_tensor({2})); };
    const auto of_weight = [f](T w) { return f(random_tensor({4, 3}), w, {}); };
    const auto of_bias = [f](T b) { return f(random_tensor({4, 3}), random_tensor({2, 3}), b); };
    BadInputs(list, op)
        .of("x")
        .undefined(of_x)
        .elsewhere(of_x, {4, 3})
        .types(of_x, {4, 3}, {DType::float64, DType::int64}, "expected one dtype, got ")
        .shapes(of_x, {{}, {2}, {3, 2}}, "expected x \\[\\.\\., 3\\] for weight \\[2, 3\\], got ");
    BadInputs(list, op)
        .of("weight")
        .undefined(of_weight)
        .elsewhere(of_weight, {2, 3})
        .types(of_weight, {2, 3}, {DType::float16}, "expected one dtype, got ")
        .shapes(of_weight, {{3}, {1, 2, 3}}, "expected weight \\[out, in\\], got ");
    BadInputs(list, op)
        .of("bias")
        .elsewhere(of_bias, {2})
        .types(of_bias, {2}, {DType::float64, DType::bool_}, "expected one dtype, got ")
        .shapes(of_bias, {{3}, {1, 2}, {}}, "expected bias \\[2\\] for weight \\[2, 3\\], got ");
  }
}

void add_join_errors(std::vector<OpCase>& list) {
  const auto cat_with = [](T x) { return cat({random_tensor({2, 3}), x}); };
  BadInputs(list, "cat")
      .of("tensors")
      .undefined(cat_with)
      .elsewhere(cat_with, {2, 3})
      .types(cat_with, {2, 3}, {DType::float64, DType::int64}, "expected one dtype, got ")
      .shapes(cat_with, {{2, 4}, {3}, {1, 2, 3}},
              "expected sizes equal to \\[2, 3\\] except in dim 0, got ")
      .refused("ArgumentError", "cat: expected at least one tensor, got none",
               [] { return cat(std::vector<Tensor>{}); })
      .refused("ShapeError", "cat: expected tensors with dimensions, got a scalar",
               [] { return cat({random_tensor({})}); })
      .of("dim")
      .dims([](I dim) { return cat({random_tensor({2, 3}), random_tensor({2, 3})}, dim); }, 2);
  const auto stack_with = [](T x) { return stack({random_tensor({2, 3}), x}); };
  BadInputs(list, "stack")
      .of("tensors")
      .undefined(stack_with)
      .elsewhere(stack_with, {2, 3})
      .types(stack_with, {2, 3}, {DType::float64, DType::int64}, "expected one dtype, got ")
      .shapes(stack_with, {{2, 4}, {3}, {1, 2, 3}},
              "expected tensors of one shape, got \\[2, 3\\] and ")
      .refused("ArgumentError", "stack: expected at least one tensor, got none",
               [] { return stack(std::vector<Tensor>{}); })
      .of("dim")
      .dims([](I dim) { return stack({random_tensor({2, 3}), random_tensor({2, 3})}, dim); }, 3);
  using Parts = std::vector<I>;
  const auto parts = [](const Parts& sizes) { return split(random_tensor({2, 3}), sizes, 1); };
  BadInputs(list, "split")
      .of("x")
      .undefined([](T x) { return split(x, Parts{1, 2}, 0); })
      .shapes([](T x) { return split(x, Parts{1, 2}, 0); }, {{}},
              "expected a tensor with dimensions, got a scalar")
      .shapes([](T x) { return split(x, Parts{1, 2}, 0); }, {{4}, {2, 3}},
              "expected sizes that sum to ")
      .of("sizes")
      .values<Parts>(parts, {{1, 1}, {}, {2, 2}}, "ShapeError",
                     "expected sizes that sum to 3 \\(dim 1 of \\[2, 3\\]\\), got ")
      .values<Parts>(parts, {{4, -1}, {std::numeric_limits<I>::max(), 1}}, "ShapeError",
                     "expected sizes >= 0, got ")
      .of("dim")
      .dims([](I dim) { return split(random_tensor({2, 3}), Parts{1, 2}, dim); }, 2);

  const auto select_of = [](T x) { return index_select(x, 0, tensor({0, 1})); };
  const auto select_by = [](T index) {
    return awaited(index_select(random_tensor({4, 3}), 0, index));
  };
  BadInputs(list, "index_select")
      .of("x")
      .undefined(select_of)
      .elsewhere(select_of, {4, 3})
      .shapes(select_of, {{}}, "expected a tensor with dimensions, got a scalar")
      .of("dim")
      .dims([](I dim) { return index_select(random_tensor({4, 3}), dim, tensor({0, 1})); }, 2)
      .of("index")
      .undefined(select_by)
      .elsewhere(select_by, {2}, DType::int64)
      .types(select_by, {2}, {DType::int32, DType::bool_}, "expected an int64 index, got ")
      .shapes(select_by, {{}, {2, 2}}, "expected an index of rank 1, got ", "ShapeError",
              DType::int64)
      .refused("IndexError", "index_select: expected indices in \\[0, 4\\), got 4",
               [select_by] { return select_by(tensor({0, 4})); })
      .refused("IndexError", "index_select: expected indices in \\[0, 4\\), got -1",
               [select_by] { return select_by(tensor({-1})); });
  const auto rows_of = [](T weight) { return embedding(weight, tensor({0, 1})); };
  const auto rows_by = [](T index) { return awaited(embedding(random_tensor({4, 3}), index)); };
  BadInputs(list, "embedding")
      .of("weight")
      .undefined(rows_of)
      .elsewhere(rows_of, {4, 3})
      .shapes(rows_of, {{}, {4}, {4, 3, 2}}, "expected weight \\[rows, width\\], got ")
      .of("index")
      .undefined(rows_by)
      .elsewhere(rows_by, {2}, DType::int64)
      .types(rows_by, {2}, {DType::int32, DType::float32}, "expected an int64 index, got ")
      .refused("IndexError", "embedding: expected indices in \\[0, 4\\), got 4",
               [rows_by] { return rows_by(tensor({0, 4})); })
      .refused("IndexError", "embedding: expected indices in \\[0, 4\\), got -1",
               [rows_by] { return rows_by(tensor({-1})); })
      .of("padding_idx")
      .values<std::int64_t>(
          [](std::int64_t i) { return embedding(random_tensor({4, 3}), tensor({0, 1}), i); },
          {4, -5, std::int64_t{1} << 62}, "IndexError",
          "expected padding_idx in \\[-4, 4\\), got ");
  const auto at = [](T index) { return awaited(random_tensor({4, 3})[index]); };
  BadInputs(list, "operator[]")
      .of("index")
      .undefined(at)
      .elsewhere(at, {2}, DType::int64)
      .refused("DTypeError", "index: expected an int64 index, got int32",
               [at] { return at(random_tensor({2}, DType::int32)); })
      .refused("IndexError", "index: expected indices in \\[-4, 4\\), got 4",
               [at] { return at(tensor({0, 4})); })
      .refused("IndexError", "index: expected indices in \\[-4, 4\\), got -5",
               [at] { return at(tensor({-5})); })
      .refused("IndexError", "select: expected an index in \\[-4, 3\\]",
               [] { return random_tensor({4, 3})[4]; });
}

}  // namespace braid::test::on_device
