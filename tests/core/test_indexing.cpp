// Tests of x.index, index_put_, x.at, x(i, j), assignment to views, and rows. The results of index
// are PyTorch's (of negative steps: NumPy's); those of index_put_ and the gradients follow from
// them.
#include "shorthand.hpp"
#include "support/gradcheck.hpp"

namespace braid::test::on_device {
namespace {

using indexing::Ellipsis;
using indexing::None;
using indexing::Slice;
using indexing::TensorIndex;

using Indices = std::vector<TensorIndex>;

struct Row {
  Shape shape;
  Indices indices;
  Shape result;
  Whole elements;  // of arange(numel).reshape(shape): also their places in it
};

std::vector<Row> table() {
  return {
      {{5}, {0}, {}, {0}},
      {{5}, {-1}, {}, {4}},
      {{5}, {Slice()}, {5}, {0, 1, 2, 3, 4}},
      {{5}, {Slice(1, None, 2)}, {2}, {1, 3}},
      {{5}, {Slice(None, -1)}, {4}, {0, 1, 2, 3}},
      {{5}, {Slice(-3)}, {3}, {2, 3, 4}},
      {{5}, {Slice(4, 2)}, {0}, {}},
      {{5}, {Slice(-100, 100, 3)}, {2}, {0, 3}},
      {{5}, {Slice(None, None, -1)}, {5}, {4, 3, 2, 1, 0}},
      {{5}, {Slice(3, None, -2)}, {2}, {3, 1}},
      {{5}, {Slice(None, 1, -1)}, {3}, {4, 3, 2}},
      {{5}, {Slice(1, 3, -1)}, {0}, {}},
      {{5}, {Slice(-2, -5, -2)}, {2}, {3, 1}},
      {{5}, {Slice(100, None, -2)}, {3}, {4, 2, 0}},
      {{5}, {Slice(None, -100, -3)}, {2}, {4, 1}},
      {{5}, {tensor({2, 0, 2})}, {3}, {2, 0, 2}},
      {{5}, {tensor({-1, -5})}, {2}, {4, 0}},
      {{5}, {tensor({{0, 1}, {4, -2}})}, {2, 2}, {0, 1, 4, 3}},
      {{5}, {zeros({0}, {.dtype = DType::int64})}, {0}, {}},
      {{5}, {full({}, 3, {.dtype = DType::int64})}, {}, {3}},
      {{5}, {tensor({1, 1}, {.dtype = DType::int32})}, {2}, {1, 1}},
      {{5}, {tensor({true, false, true, true, false})}, {3}, {0, 2, 3}},
      {{5}, {tensor({false, false, false, false, false})}, {0}, {}},
      {{5}, {true}, {1, 5}, {0, 1, 2, 3, 4}},
      {{5}, {false}, {0, 5}, {}},
      {{5}, {None}, {1, 5}, {0, 1, 2, 3, 4}},
      {{5}, {None, Slice(1, 3), None}, {1, 2, 1}, {1, 2}},
      {{5}, {"..."}, {5}, {0, 1, 2, 3, 4}},
      {{5}, {"...", -2}, {}, {3}},
      {{5}, {None, 2}, {1}, {2}},
      {{}, {"..."}, {}, {0}},
      {{}, {None}, {1}, {0}},
      {{}, {true}, {1}, {0}},
      {{}, {false}, {0}, {}},
      {{}, {full({}, true, {.dtype = DType::bool_})}, {1}, {0}},
      {{}, {None, "...", None}, {1, 1}, {0}},
      {{2, 3}, {1}, {3}, {3, 4, 5}},
      {{2, 3}, {1, -1}, {}, {5}},
      {{2, 3}, {Slice(), 1}, {2}, {1, 4}},
      {{2, 3}, {"...", 1}, {2}, {1, 4}},
      {{2, 3}, {1, "..."}, {3}, {3, 4, 5}},
      {{2, 3}, {Slice(1), Slice(None, None, 2)}, {1, 2}, {3, 5}},
      {{2, 3}, {Slice(None, None, -1), Slice(None, None, -1)}, {2, 3}, {5, 4, 3, 2, 1, 0}},
      {{2, 3}, {Slice(), None, 0}, {2, 1}, {0, 3}},
      {{2, 3}, {tensor({{true, false, true}, {false, true, false}})}, {3}, {0, 2, 4}},
      {{2, 3}, {tensor({{false, false, false}, {false, false, false}})}, {0}, {}},
      {{2, 3}, {tensor({true, false})}, {1, 3}, {0, 1, 2}},
      {{2, 3}, {Slice(), tensor({true, false, true})}, {2, 2}, {0, 2, 3, 5}},
      {{2, 3}, {tensor({false, true}), tensor({2, 0})}, {2}, {5, 3}},
      {{2, 3}, {tensor({1, 0, 1}), tensor({0, 2, 2})}, {3}, {3, 2, 5}},
      {{2, 3}, {tensor({{1}, {0}}), tensor({0, 2})}, {2, 2}, {3, 5, 0, 2}},
      {{2, 3}, {tensor({1}), Slice(None, None, -1)}, {1, 3}, {5, 4, 3}},
      {{2, 3},
       {Slice(None, None, -1), tensor({{0, 1}, {2, 2}})},
       {2, 2, 2},
       {3, 4, 5, 5, 0, 1, 2, 2}},
      {{2, 3, 4},
       {Slice(None, None, -1), tensor({{true, false, false, true},
                                       {false, false, false, false},
                                       {false, true, false, false}})},
       {2, 3},
       {12, 15, 21, 0, 3, 9}},
      {{2, 3}, {tensor({1, 0}), None}, {2, 1, 3}, {3, 4, 5, 0, 1, 2}},
      {{2, 3}, {tensor({1, 0}), None, tensor({2, 1})}, {2, 1}, {5, 1}},
      {{2, 3}, {0, tensor({1, 1})}, {2}, {1, 1}},
      {{2, 3}, {full({}, 1, {.dtype = DType::int64}), tensor({2, 0})}, {2}, {5, 3}},
      {{2, 3}, {true, 1}, {1, 3}, {3, 4, 5}},
      {{2, 3}, {None, tensor({{true, false, true}, {false, true, false}})}, {1, 3}, {0, 2, 4}},
      {{2, 3}, {full({}, true, {.dtype = DType::bool_})}, {1, 2, 3}, {0, 1, 2, 3, 4, 5}},
      {{2, 3}, {full({}, false, {.dtype = DType::bool_}), "..."}, {0, 2, 3}, {}},
      {{2, 3, 4},
       {Slice(), tensor({2, 0})},
       {2, 2, 4},
       {8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15}},
      {{2, 3, 4},
       {"...", tensor({3, 0, 1})},
       {2, 3, 3},
       {3, 0, 1, 7, 4, 5, 11, 8, 9, 15, 12, 13, 19, 16, 17, 23, 20, 21}},
      {{2, 3, 4}, {tensor({1, 0}), Slice(), tensor({3, 2})}, {2, 3}, {15, 19, 23, 2, 6, 10}},
      {{2, 3, 4}, {Slice(), tensor({1, 2}), tensor({0, 3})}, {2, 2}, {4, 11, 16, 23}},
      {{2, 3, 4}, {0, Slice(), tensor({3, 2})}, {3, 2}, {3, 2, 7, 6, 11, 10}},
      {{2, 3, 4},
       {tensor({{true, false, true}, {false, true, false}})},
       {3, 4},
       {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19}},
      {{2, 3, 4},
       {tensor({{true, false, true}, {false, true, false}}), Slice(1, 3)},
       {3, 2},
       {1, 2, 9, 10, 17, 18}},
      {{2, 3, 4}, {tensor({{true, false, true}, {false, true, false}}), 2}, {3}, {2, 10, 18}},
      {{2, 3, 4},
       {tensor({{true, false, true}, {false, true, false}}), tensor({0, 1, 3})},
       {3},
       {0, 9, 19}},
      {{2, 3, 4},
       {Slice(), Slice(None, None, -2), tensor({0, -1})},
       {2, 2, 2},
       {8, 11, 0, 3, 20, 23, 12, 15}},
      {{2, 3, 4}, {tensor({{0, 1}}), Slice(1), None, 1}, {1, 2, 2, 1}, {5, 9, 17, 21}},
      {{2, 3, 4}, {1, "...", Slice(None, None, 2)}, {3, 2}, {12, 14, 16, 18, 20, 22}},
      {{2, 3, 4}, {Slice(0, 0), "...", 1}, {0, 3}, {}},
      {{2, 3, 4},
       {zeros({0}, {.dtype = DType::int64}), zeros({0}, {.dtype = DType::int64})},
       {0, 4},
       {}},
      {{2, 3, 4}, {tensor({0, 1}), zeros({0, 1}, {.dtype = DType::int64})}, {0, 2, 4}, {}},
      {{2, 3, 2, 2},
       {Slice(), tensor({2, 1}), Slice(), tensor({0, 1})},
       {2, 2, 2},
       {8, 10, 20, 22, 5, 7, 17, 19}},
      {{2, 3, 2, 2},
       {tensor({{1}, {0}}), Slice(1), tensor({0, 1}), 1},
       {2, 2, 2},
       {17, 21, 19, 23, 5, 9, 7, 11}},
      {{2, 3, 2, 2},
       {Slice(), tensor({0, 2}), tensor({1, 1}), Slice(None, None, -1)},
       {2, 2, 2},
       {3, 2, 11, 10, 15, 14, 23, 22}},
      {{2, 3, 2, 2},
       {"...", tensor({{0, 1}, {1, 1}})},
       {2, 3, 2, 2, 2},
       {0,  1,  1,  1,  2,  3,  3,  3,  4,  5,  5,  5,  6,  7,  7,  7,
        8,  9,  9,  9,  10, 11, 11, 11, 12, 13, 13, 13, 14, 15, 15, 15,
        16, 17, 17, 17, 18, 19, 19, 19, 20, 21, 21, 21, 22, 23, 23, 23}},
      {{2, 3, 2, 2},
       {tensor({{true, false, true}, {false, true, false}}), "...", 0},
       {3, 2},
       {0, 2, 8, 10, 16, 18}},
      {{2, 3, 2, 2}, {0, tensor({2}), "..."}, {1, 2, 2}, {8, 9, 10, 11}},
      {{2, 3, 2, 2},
       {Slice(), tensor({{true, true}, {false, false}, {true, true}}), 1},
       {2, 4},
       {1, 3, 9, 11, 13, 15, 21, 23}},
      {{2, 3, 2, 2}, {1, 2, 1, 0}, {}, {22}},
      {{2, 3, 2, 2},
       {Slice(None, None, 2), Slice(None, None, 2), Slice(None, 1), Slice(1)},
       {1, 2, 1, 1},
       {1, 9}},
      {{0, 3}, {zeros({0}, {.dtype = DType::int64})}, {0, 3}, {}},
      {{0, 3}, {Slice(), tensor({1, 1})}, {0, 2}, {}},
      {{0, 3}, {"...", Slice(None, None, -1)}, {0, 3}, {}},
      {{3, 0}, {tensor({2, 0})}, {2, 0}, {}},
      {{3, 0}, {tensor({true, false, true})}, {2, 0}, {}},
      {{1, 3}, {tensor({0, 0, 0})}, {3, 3}, {0, 1, 2, 0, 1, 2, 0, 1, 2}},
  };
}

/// Returns numbers that differ from each other.
Tensor distinct(const Shape& shape) {
  return arange(shape.numel(), {.dtype = DType::float64}).reshape(shape) * 0.5 + 1;
}

}  // namespace

TEST_CASE("indexing: PyTorch's results, for every kind of index", "[indexing]") {
  std::size_t number = 0;
  for (const Row& row : table()) {
    INFO("row " << number++ << ", shape " << row.shape);
    const Tensor x = arange(row.shape.numel()).reshape(row.shape), y = x.index(row.indices);
    CHECK(y.shape() == row.result);
    CHECK(whole(y) == row.elements);
    // the same elements of another layout, and with every dtype of them
    const int rank = row.shape.rank();
    Shape order;
    for (int d = rank; d-- > 0;) order.push_back(d);
    const Tensor turned = x.permute(order).contiguous().permute(order);
    CHECK(whole(turned.index(row.indices)) == row.elements);
    for (const DType dtype : {DType::uint8, DType::float16, DType::float64})
      CHECK(whole(x.to(dtype).index(row.indices)) == row.elements);
  }
}

TEST_CASE("indexing: the gradient is added up at the place of each element",
          "[indexing][gradients]") {
  std::size_t number = 0;
  for (const Row& row : table()) {
    INFO("row " << number++ << ", shape " << row.shape);
    const Tensor x = distinct(row.shape).requires_grad_(), y = x.index(row.indices);
    const Tensor dy = distinct(row.result);
    List want(static_cast<std::size_t>(row.shape.numel()));
    const List incoming = list(dy);
    for (std::size_t i = 0; i < row.elements.size(); ++i)
      want[static_cast<std::size_t>(row.elements[i])] += incoming[i];
    CHECK(list(pulled(y, {x}, dy)[0]) == want);
    const Tensor part = distinct(row.shape).requires_grad_();
    if (mine(number))
      CHECK(second_gradient_difference(function_of([&](T t) { return (t * t).index(row.indices); }),
                                       {part}) == "");
  }
}

TEST_CASE("indexing: index_put_ writes and adds what a loop does, in order", "[indexing]") {
  std::size_t number = 0;
  for (const Row& row : table())
    for (const bool add : {false, true})
      for (const bool one : {false, true})
        for (const bool recorded : {false, true})
          for (const bool turned : {false, true}) {
            INFO("row " << number++ / 16 << ", shape " << row.shape << ", add " << add << ", one "
                        << one << ", recorded " << recorded << ", transposed " << turned);
            const int rank = row.shape.rank();
            Shape order;
            for (int d = rank; d-- > 0;) order.push_back(d);
            Tensor start = distinct(row.shape),
                   value =
                       one ? tensor({7.0}, {.dtype = DType::float64}) : distinct(row.result) * 10;
            start.requires_grad_(recorded), value.requires_grad_(recorded);
            const Tensor x =
                turned ? (start * 1).permute(order).contiguous().permute(order) : start * 1;
            List want = list(x);
            const List from = list(value);
            std::vector<std::size_t> last(want.size(), SIZE_MAX);  // which value is there
            for (std::size_t i = 0; i < row.elements.size(); ++i) {
              const std::size_t at = static_cast<std::size_t>(row.elements[i]);
              const double v = from[one ? 0 : i];
              want[at] = add ? want[at] + v : v;
              last[at] = i;
            }
            const std::uint64_t version = x.version();
            x.index_put_(row.indices, value, add);
            CHECK(list(x) == want);
            CHECK((x.version() > version || row.elements.empty()));
            if (one && !recorded) {
              const Tensor again = distinct(row.shape);
              again.index_put_(row.indices, 7, add);
              CHECK(list(again) == want);
            }
            if (!recorded) continue;
            const Tensor dy = distinct(row.shape);
            const List incoming = list(dy);
            List dx = incoming, dvalue(from.size());
            for (std::size_t i = 0; i < row.elements.size(); ++i) {
              const std::size_t at = static_cast<std::size_t>(row.elements[i]);
              if (!add) dx[at] = 0;
              if (add || last[at] == i) dvalue[one ? 0 : i] += incoming[at];
            }
            const std::vector<Tensor> got = grad(std::span(&x, 1), std::vector{start, value},
                                                 std::span(&dy, 1), false, false, true);
            CHECK((list(got[0]) == dx || (!got[0].defined() && dx == List(dx.size()))));
            CHECK((list(got[1]) == dvalue || (!got[1].defined() && dvalue == List(dvalue.size()))));
          }
}

TEST_CASE("indexing: what does not fit is refused and changes nothing", "[indexing][errors]") {
  const Tensor x = arange(6).reshape({2, 3});
  bool by_kernel = false;  // on a GPU: what is in range may have been written
  const auto refused = [&](const Indices& indices, const auto& check) {
    check([&] { (void)awaited(x.index(indices)); });
    check([&] { (void)awaited(x.index_put_(indices, 9)); });
    if (by_kernel) x.copy_(arange(6).reshape({2, 3}));
    CHECK(whole(x) == Whole{0, 1, 2, 3, 4, 5});
  };
  const auto throws = [&]<class E>(const Indices& indices, const std::string& text) {
    refused(indices, [&](const auto& call) { CHECK_THROWS_TEXT(E, text, call()); });
  };
  throws.template operator()<IndexError>({2},
                                         "expected an index in [-2, 1] for dim 0 of [2, 3], got 2");
  throws.template operator()<IndexError>(
      {0, -4}, "expected an index in [-3, 2] for dim 1 of [2, 3], got -4");
  throws.template operator()<IndexError>({0, 0, 0}, "expected at most 2 indices for [2, 3], got 3");
  throws.template operator()<IndexError>({"...", 0, Ellipsis},
                                         "expected at most one ellipsis, got 2");
  throws.template operator()<ArgumentError>({}, "expected at least one index, got none");
  throws.template operator()<ArgumentError>({Slice(0, 2, 0)},
                                            "expected a step other than 0 for dim 0, got 0");
  throws.template operator()<IndexError>(
      {tensor({true, true, true})}, "expected a mask of shape [2] for dim 0 of [2, 3], got [3]");
  throws.template operator()<IndexError>(
      {0, tensor({true, false})}, "expected a mask of shape [3] for dim 1 of [2, 3], got [2]");
  throws.template operator()<IndexError>(
      {ones({3, 2}, {.dtype = DType::bool_})},
      "expected a mask of shape [2, 3] for dim 0 to 1 of [2, 3], got [3, 2]");
  throws.template operator()<IndexError>({ones({2, 3, 1}, {.dtype = DType::bool_})},
                                         "expected at most 2 indices for [2, 3], got 3");
  throws.template operator()<DTypeError>({tensor({0.0, 1.0})},
                                         "expected an int64, int32 or bool index, got float32");
  throws.template operator()<DTypeError>({tensor({0, 1}, {.dtype = DType::uint8})},
                                         "expected an int64, int32 or bool index, got uint8");
  throws.template operator()<ShapeError>({tensor({0, 1}), tensor({0, 1, 2})}, "[2] and [3]");
  CHECK_THROWS_TEXT(ArgumentError, "index: expected \"...\" for an ellipsis, got \"..\"",
                    x.index({".."}));
  CHECK_THROWS_TEXT(IndexError, "expected an index in [-1, 0] for dim 0", zeros({1, 2}).index({1}));
  // index tensors: the kernels of a GPU check them
  by_kernel = !on_cpu();
  for (const auto& [indices, dim, size, got] : std::vector<std::tuple<Indices, int, int, int>>{
           {{tensor({0, 2})}, 0, 2, 2},
           {{tensor({0, -3})}, 0, 2, -3},
           {{Slice(), tensor({0, 3})}, 1, 3, 3},
           {{tensor({0, 1}), tensor({-4, 0})}, 1, 3, -4},
           {{1, tensor({3})}, 1, 3, 3}}) {
    const std::string text =
        on_cpu() ? str("expected an index in [", -size, ", ", size - 1, "] for dim ", dim,
                       " of [2, 3], got ", got)
                 : str("index: dim ", dim, ": expected indices in [0, ", size, "), got ", got);
    throws.template operator()<IndexError>(indices, text);
  }
  CHECK_THROWS_AS(awaited(zeros({0, 3}).index({tensor({0})})), IndexError);
  // values
  CHECK_THROWS_TEXT(ShapeError, "index_put_: ", x.index_put_({0}, tensor({1, 2})));
  CHECK_THROWS_TEXT(ShapeError, "index_put_: expected a value that broadcasts to [3]",
                    x.index_put_({0}, zeros({2, 3}, {.dtype = DType::int64})));
  CHECK_THROWS_TEXT(ShapeError, "index_put_: ", x.index_put_({tensor({0, 1})}, tensor({1, 2})));
  CHECK_THROWS_TEXT(DTypeError, "index_put_: ", x.index_put_({tensor({0, 1})}, tensor({1.5})));
  CHECK_THROWS_TEXT(DTypeError, "index_put_: ", x.index_put_({tensor({0, 1})}, 1.5));
  const Tensor w = zeros({2, 3}).requires_grad_();
  CHECK_THROWS_TEXT(AutogradError, "index_put_: expected a tensor that is not a leaf",
                    w.index_put_({0}, 1));
  CHECK_THROWS_TEXT(LayoutError, "index_put_: ", zeros({3}).expand({2, 3}).index_put_({0}, 1));
  CHECK(whole(x) == Whole{0, 1, 2, 3, 4, 5});
}

TEST_CASE("indexing: index_put_ of a tensor's own elements reads them first", "[indexing]") {
  const Tensor x = arange(5), y = arange(6).reshape({2, 3});
  x.index_put_({tensor({1, 2, 3, 4})}, x.narrow(0, 0, 4));
  y.index_put_({Slice(None, None, -1)}, y);
  // the index may be the memory that is written
  const Tensor own = tensor({1, 2, 0}), half = tensor({1, 2, 0});
  own.index_put_({own}, tensor({7, 8, 9}));
  CHECK(whole(own) == Whole{9, 7, 8});
  half.index_put_({half.slice(0, 0, 2)}, full({2}, std::int64_t{1} << 40));
  CHECK(whole(half) == Whole{1, std::int64_t{1} << 40, std::int64_t{1} << 40});
  check_whole({{x, {0, 0, 1, 2, 3}},
               {y, {3, 4, 5, 0, 1, 2}},
               {x.index_put({gt(x, 0)}, 9), {0, 0, 9, 9, 9}},
               {x.index_put(Indices{0}, x[4], true), {3, 0, 1, 2, 3}},
               {x, {0, 0, 1, 2, 3}}});
}

TEST_CASE("indexing: an index may be on the CPU", "[indexing]") {
  const Device cpu = on_cpu() ? here() : Device();
  const Tensor x = tensor({{1.0, 2, 3}, {4, 5, 6}}, {.dtype = DType::float64}),
               rows = tensor({1, 0, -1}, {.device = cpu}), row = tensor(1, {.device = cpu}),
               mask = (x > 4).to(cpu);
  CHECK(list(x.index({rows})) == List{4, 5, 6, 1, 2, 3, 4, 5, 6});
  CHECK(list(x[rows]) == List{4, 5, 6, 1, 2, 3, 4, 5, 6});
  CHECK(list(x[row]) == List{4, 5, 6});
  CHECK(list(x.index({rows.to(DType::int32), tensor({0, 1, 2})})) == List{4, 2, 6});
  CHECK(list(x.index({mask})) == List{5, 6});
  CHECK(x.index({mask}).device() == here());
  const Tensor y = x.clone();
  y.index_put_({mask}, 0);
  y.index_put_({row, tensor({0}, {.device = cpu})},
               tensor(7.0, {.device = cpu, .dtype = y.dtype()}));
  CHECK(list(y) == List{1, 2, 3, 7, 0, 0});
  if (!on_cpu())
    CHECK_THROWS_TEXT(DeviceError, "expected tensors on one device",
                      y.index_put_({mask}, x.to(cpu)[0].slice(0, 0, 2)));
}

TEST_CASE("indexing: at and x(i, j)", "[indexing]") {
  const Tensor x = arange(24, {.dtype = DType::float64}).reshape({2, 3, 4});
  CHECK(x.at({1, 2, 3}).item<int>() == 23);
  CHECK(x(1, -1, 0).item<int>() == 20);
  check_lists({{x(1, 0), {12, 13, 14, 15}},
               {x.at(std::vector<std::int64_t>{0, 1}), {4, 5, 6, 7}},
               {x.transpose(0, 2)(3, 2), {11, 23}},
               {full({}, 3).at({}), {3}},
               {zeros({2, 0})(1), {}}});
  CHECK(x(1).storage() == x.storage());
  CHECK_THROWS_TEXT(IndexError, "at: expected an index in [-3, 2] for dim 1 of [2, 3, 4], got 3",
                    x(0, 3));
  CHECK_THROWS_TEXT(IndexError, "at: expected an index in [-2, 1] for dim 0", x(-3, 0, 0));
  CHECK_THROWS_TEXT(IndexError, "at: expected at most 3 indices for [2, 3, 4], got 4",
                    x(0, 0, 0, 0));
  CHECK_THROWS_AS(zeros({0})(0), IndexError);
  CHECK_GRAD([](T t) { return t(1) * t(0, 1) + t.at({1, 0, 1}); },
             random_tensor({2, 3, 4}, DType::float64).requires_grad_());
}

TEST_CASE("indexing: assignment to a view writes through it", "[indexing]") {
  Tensor x = zeros({2, 3}), y = arange(6, {.dtype = DType::float32}).reshape({2, 3});
  x[0] = y[1];
  x[1] = 7;
  x(1, 2) = 2.5;
  CHECK(list(x) == List{3, 4, 5, 7, 7, 2.5});
  x[0] = x[1] = tensor({{1, 2, 3}});  // converted; leading dims of size 1 do not count
  CHECK(list(x) == List{1, 2, 3, 1, 2, 3});
  x.index({"...", Slice(None, None, 2)}) = 0;
  x.slice(1, 1, 2) = y.slice(1, 0, 1);
  CHECK(list(x) == List{0, 0, 0, 0, 3, 0});
  x.index({Slice()}) = y;
  x.t()[0] = x.t()[2];
  CHECK(list(x) == List{2, 1, 2, 5, 4, 5});
  x.at({}) = 1;
  CHECK(list(x) == List(6, 1.0));
  x.view({2, 3}) = 2;  // what returns x itself is no temporary
  x.detach() = x + 1;
  CHECK(list(x) == List(6, 3.0));
  Tensor scalar = zeros({});
  scalar.index({"..."}) = 3;
  CHECK(scalar.item<int>() == 3);
}

TEST_CASE("indexing: assignment to what is no view is refused", "[indexing][errors]") {
  const Tensor x = zeros({3, 2}), y = ones({2}), index = tensor({0, 2}), mask = gt(x, 0);
  const std::string copy =
                        "=: expected a view on the left, * the copy that x[index], a mask, a "
                        "negative step or a reshape makes; use index_put_",
                    own = "=: expected a view on the left, *temporary that is no view";
  CHECK_THROWS_TEXT(LayoutError, copy, x[index] = y);
  CHECK_THROWS_TEXT(LayoutError, copy, x[mask] = 0);
  CHECK_THROWS_TEXT(LayoutError, copy, x.index({Slice(), tensor({1})}) = 0);
  CHECK_THROWS_TEXT(LayoutError, copy, x.index({Slice(None, None, -1)}) = y);
  CHECK_THROWS_TEXT(LayoutError, copy, x.t().reshape({6}) = 1);
  CHECK_THROWS_TEXT(LayoutError, own, x + 1 = y);
  CHECK_THROWS_TEXT(LayoutError, own, x.clone() = y);
  CHECK_THROWS_TEXT(LayoutError, own, exp(ones({2}).requires_grad_()) = y);
  CHECK_THROWS_TEXT(ShapeError, "copy_: ", x[0] = zeros({3}));
  CHECK_THROWS_TEXT(ArgumentError, "tensor: expected a defined tensor", x[0] = Tensor());
  CHECK_THROWS_TEXT(ArgumentError, "tensor: expected a defined tensor", Tensor() = y);
  CHECK_THROWS_TEXT(DTypeError, "fill_: ", zeros({2}, {.dtype = DType::int64})[0] = 0.5);
  CHECK_THROWS_TEXT(AutogradError, "copy_: expected a view of a tensor that is not a leaf",
                    zeros({3, 2}).requires_grad_()[0] = y);
  CHECK_THROWS_TEXT(LayoutError, "index_put_: ", x[index].index_put_({0}, 1));
  CHECK(list(x) == List(6));
  // a named tensor is renamed, as ever
  Tensor row = x[0];
  row = y;
  CHECK(row.id() == y.id());
  CHECK(list(x) == List(6));
}

TEST_CASE("indexing: assignments are recorded", "[indexing][gradients]") {
  const auto assigned = [](T w, T u) {
    Tensor out = zeros({2, 3}, {.dtype = DType::float64});
    out[0] = u * u;
    out[1] = w[0];
    out(1, 2) = u[0] * w(1, 1);
    out.index({Slice(), 1}) = 4;
    out.index_put_({tensor({1, 0, 1}), tensor({0, 2, 0})}, u, true);
    out.index_put_({Slice(), Slice(None, None, -2)}, w.narrow(1, 0, 2), true);
    return out * w;
  };
  CHECK_GRAD(assigned, random_tensor({2, 3}, DType::float64, {}, 1).requires_grad_(),
             random_tensor({3}, DType::float64, {}, 2).requires_grad_());
  const auto masked = [](T w, T u) {
    Tensor out = w * 2;
    const Tensor mask = tensor({{true, false, true}, {false, false, true}});
    out.index_put_({mask}, u);
    out.index_put_({tensor({false, true}), 1}, 3);
    return out[1] * out;
  };
  CHECK_GRAD(masked, random_tensor({2, 3}, DType::float64, {}, 3).requires_grad_(),
             random_tensor({3}, DType::float64, {}, 4).requires_grad_());
}

TEST_CASE("indexing: rows as a range", "[indexing]") {
  const Tensor x = arange(6, {.dtype = DType::float64}).reshape({3, 2});
  List sums;
  for (auto row : x) {
    CHECK(row.storage() == x.storage());
    sums.push_back(row.sum().item<double>());
  }
  CHECK(sums == List{1, 5, 9});
  for (const Tensor& row : x) row.fill_(sums[0]);
  CHECK(list(x) == List(6, 1.0));
  CHECK(std::vector<Tensor>(x.begin(), x.end()).size() == 3);
  CHECK(len(x) == 3);
  for ([[maybe_unused]] const Tensor& row : zeros({0, 2})) FAIL_CHECK("no rows expected");
  CHECK_THROWS_TEXT(IndexError, "size: expected a tensor with dimensions, got a scalar",
                    full({}, 1).begin());
  CHECK_THROWS_AS(len(full({}, 1)), IndexError);
  CHECK_GRAD(
      [](T t) {
        Tensor sum = zeros({2}, {.dtype = DType::float64});
        for (const Tensor& row : t) sum = sum * row + row;
        return sum;
      },
      random_tensor({3, 2}, DType::float64).requires_grad_());
}

}  // namespace braid::test::on_device
