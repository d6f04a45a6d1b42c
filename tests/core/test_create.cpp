// Tests of the factories and of element access: tensor(), zeros(), arange(), from_blob(), data(),
// item(), to_vector().
#include "shorthand.hpp"

namespace braid::test {

TEST_CASE("create: tensor() takes nested braces", "[create]") {
  const Tensor a = tensor({{1.5, 2, 3}, {4, 5, 6}});
  CHECK(a.dtype() == DType::float32);
  CHECK_EXACT(a, Array({2, 3}, List{1.5, 2, 3, 4, 5, 6}));
  CHECK(a.is_contiguous());
  CHECK(a.device() == Device("cpu:0"));
  check_shapes({{tensor({{1.0}, {2.0}}), {2, 1}},
                {tensor({{{1.0, 2.0}}, {{3.0, 4.0}}}), {2, 1, 2}},
                {tensor(3.5), {}},
                {tensor({{}, {}}), {2, 0}}});
  CHECK(tensor({1, 2, 3}).dtype() == DType::int64);
  CHECK(tensor({true, false}).dtype() == DType::bool_);
  CHECK(tensor({true, 2}).dtype() == DType::int64);
  CHECK(tensor({true, 2, 0.5}).dtype() == DType::float32);
  const Tensor d =
      tensor({1, 2}, {.device = Device("cpu:1"), .dtype = DType::float64, .requires_grad = true});
  CHECK(d.dtype() == DType::float64);
  CHECK(d.device() == Device("cpu:1"));
  CHECK(d.requires_grad());
  constexpr std::int64_t kBig = (std::int64_t{1} << 60) + 1;  // not representable as a double
  CHECK(whole(tensor({kBig, -kBig})) == Whole{kBig, -kBig});
  check_lists({{tensor({true, 2, 0.5}), {1, 2, 0.5}},
               {tensor(3.5), {3.5}},
               {tensor(7), {7}},
               {tensor({300, -1}, {.dtype = DType::int32}), {300, -1}},
               {tensor({0.0, 2.5}, {.dtype = DType::bool_}), {0, 1}}});
}

TEST_CASE("create: ragged braces are refused", "[create][errors]") {
  CHECK_THROWS_TEXT(ShapeError, "tensor: expected *got ", tensor({{1, 2}, {3}}));
  CHECK_THROWS_TEXT(ShapeError, "tensor: ", tensor({{1, 2}, 3}));
  CHECK_THROWS_TEXT(ShapeError, "tensor: ", tensor({1, {2, 3}}));
  CHECK_THROWS_TEXT(ShapeError, "tensor: ", tensor({{{1}, {2}}, {{1}, {2, 3}}}));
  CHECK_THROWS_TEXT(ShapeError, "tensor: ", tensor({{}, {1}}));
}

TEST_CASE("create: tensor() takes a vector of every element type", "[create]") {
  CHECK(tensor(std::vector<float>{1}).dtype() == DType::float32);
  CHECK(tensor(List{1}).dtype() == DType::float64);
  CHECK(tensor(std::vector<std::int32_t>{1}).dtype() == DType::int32);
  CHECK(tensor(std::vector<std::uint8_t>{200}).dtype() == DType::uint8);
  CHECK(tensor(Bools{true}).dtype() == DType::bool_);
  CHECK(tensor(std::vector<float16>{float16(1.5f)}).dtype() == DType::float16);
  CHECK(tensor(List{}).shape() == Shape{0});
  CHECK(whole(tensor(Whole{kMin})) == Whole{kMin});
  check_lists({{tensor(std::vector<float>{1.5f, -2}), {1.5, -2}},
               {tensor(Bools{true, false, true}), {1, 0, 1}},
               {tensor(List{1.5}, {.dtype = DType::int64}), {1}}});
}

TEST_CASE("create: constant tensors of every type on every device", "[create]") {
  for (const Device device : test_devices())
    for (const DType dtype : all_dtypes())
      for (const Sizes& shape :
           std::vector<Sizes>{{}, {1}, {7}, {0}, {3, 0, 2}, {2, 3, 4}, {1025}}) {
        INFO(dtype << " " << Shape(shape) << " on " << device);
        const FactoryOptions o{.device = device, .dtype = dtype};
        CHECK_EXACT(zeros(Shape(shape), o), Array(shape, 0.0));
        CHECK_EXACT(ones(Shape(shape), o), Array(shape, 1.0));
        const double value = dtype == DType::bool_ ? 1 : 7;
        const Tensor f = full(Shape(shape), value, o);
        CHECK_EXACT(f, Array(shape, value));
        CHECK(f.dtype() == dtype);
        CHECK(f.device() == device);
        CHECK(f.is_contiguous());
        CHECK(f.strides() == contiguous_strides(Shape(shape)));
        CHECK_FALSE(f.requires_grad());
        const Tensor e = empty(Shape(shape), o);
        CHECK(e.shape() == Shape(shape));
        CHECK(e.dtype() == dtype);
        CHECK(e.numel() == reference::count(shape));
      }
  CHECK(zeros({2}).dtype() == DType::float32);
  check_lists({{full({2}, -2.75, {.dtype = DType::float64}), {-2.75, -2.75}},
               {full({1}, 2.0, {.dtype = DType::bool_}), {1}}});
}

TEST_CASE("create: a value that the type cannot hold is refused", "[create][errors]") {
  const auto of = [](DType t, double v) { return full({1}, v, {.dtype = t}); };
  struct Wrong {
    DType t;
    double v;
    const char* text;
  };
  for (const Wrong& w : std::vector<Wrong>{{DType::uint8, 300, "uint8 can hold, got 300"},
                                           {DType::uint8, 255.9, "uint8 can hold, got 255.9"},
                                           {DType::int32, 1.7, "int32 can hold, got 1.7"},
                                           {DType::int32, 3e9, "int32 can hold, got 3e+09"},
                                           {DType::int64, 1e30, "int64 can hold, got 1e+30"},
                                           {DType::int64, kNan, "int64 can hold, got nan"},
                                           {DType::float32, 1e300, "float32 can hold, got 1e+300"}})
    CHECK_THROWS_TEXT(DTypeError, str("full: expected a number that ", w.text), of(w.t, w.v));
  check_lists({{of(DType::uint8, -1), {255}},
               {of(DType::int32, -2147483648.0), {-2147483648.0}},
               {of(DType::float16, 1e6), {kInf}},
               {of(DType::float32, -kInf), {-kInf}}});
  const Tensor t = zeros({2}, {.dtype = DType::uint8});
  CHECK_THROWS_TEXT(DTypeError, "fill_: expected a number that uint8 can hold, got 300",
                    t.fill_(300));
  CHECK(t.version() == 0);
  CHECK(t.sum().item<int>() == 0);
  CHECK(t.fill_(-1).sum().item<int>() == 510);
}

TEST_CASE("create: a number out of the range of an integer type is refused", "[create][errors]") {
  const FactoryOptions uint8{.dtype = DType::uint8}, int32{.dtype = DType::int32},
      int64{.dtype = DType::int64};
  const char* const text = "tensor: expected a number that ";
  CHECK_THROWS_TEXT(DTypeError, str(text, "uint8 can hold, got 300"), tensor({1, 300}, uint8));
  CHECK_THROWS_TEXT(DTypeError, str(text, "uint8 can hold, got -256"), tensor(-256.0, uint8));
  CHECK_THROWS_TEXT(DTypeError, str(text, "int32 can hold, got nan"), tensor({1, kNan}, int32));
  CHECK_THROWS_TEXT(DTypeError, str(text, "int32 can hold"), tensor(std::int64_t{1} << 31, int32));
  CHECK_THROWS_TEXT(DTypeError, str(text, "int64 can hold, got inf"), tensor({kInf}, int64));
  CHECK_THROWS_TEXT(DTypeError, str(text, "int64 can hold"), tensor({0x1p63}, int64));
  CHECK_THROWS_TEXT(DTypeError, str(text, "uint8 can hold, got 300"),
                    tensor(std::vector<std::int32_t>{300}, uint8));
  CHECK_THROWS_TEXT(DTypeError, str(text, "int32 can hold, got inf"),
                    tensor(std::vector<float16>{float16(1e6f)}, int32));
  check_whole({{tensor({2.75, -2.75}, int32), {2, -2}},
               {tensor({-1, 255, 255.9}, uint8), {255, 255, 255}},
               {tensor({-0x1p63}, int64), {INT64_MIN}},
               {tensor(std::vector<double>{-0x1p31 - 0.5}, int32), {INT32_MIN}}});
}

TEST_CASE("create: _like takes shape, type and device, unless told otherwise", "[create]") {
  const Tensor t = random_tensor({2, 3}, DType::float64, Device("cpu:1"));
  for (const Tensor& like : {empty_like(t), zeros_like(t), ones_like(t)}) {
    CHECK(like.shape() == t.shape());
    CHECK(like.dtype() == DType::float64);
    CHECK(like.device() == Device("cpu:1"));
  }
  CHECK_EXACT(ones_like(t), Array({2, 3}, 1.0));
  CHECK_EXACT(zeros_like(t), Array({2, 3}, 0.0));
  const Tensor other = ones_like(t, {.device = Device("cpu:0"), .dtype = DType::int64});
  CHECK(other.device() == Device("cpu:0"));
  CHECK(other.dtype() == DType::int64);
  CHECK(zeros_like(t.t()).is_contiguous());
  CHECK(zeros_like(t, {.requires_grad = true}).requires_grad());
}

TEST_CASE("create: arange and eye", "[create]") {
  check_whole({{arange(4), {0, 1, 2, 3}},
               {arange(2, 9, 3), {2, 5, 8}},
               {arange(2, 8, 3), {2, 5}},
               {arange(5, 0, -2), {5, 3, 1}},
               {arange(0), {}},
               {arange(3, 3), {}},
               {arange(3, {.dtype = DType::float32}), {0, 1, 2}},
               {arange(0, kMax, kMax - 1), {0, kMax - 1}},
               {arange(kMin, kMax, kMax), {kMin, -1, kMax - 1}},
               {arange(kMax, kMin, kMin), {kMax, -1}},
               {eye(3), {1, 0, 0, 0, 1, 0, 0, 0, 1}},
               {eye(2, {.dtype = DType::int64}), {1, 0, 0, 1}}});
  CHECK(arange(4).dtype() == DType::int64);
  CHECK(arange(3, {.dtype = DType::float32}).dtype() == DType::float32);
  CHECK(arange(3, {.device = Device("cpu:1")}).device() == Device("cpu:1"));
  check_shapes({{arange(0), {0}}, {eye(3), {3, 3}}, {eye(0), {0, 0}}});
  CHECK_THROWS_TEXT(ArgumentError, "arange: expected *step*got 0", arange(0, 3, 0));
  CHECK_THROWS_TEXT(ArgumentError, "arange: expected *got ", arange(3, 0, 1));
  CHECK_THROWS_TEXT(ArgumentError, "arange: expected *got ", arange(0, 3, -1));
  CHECK_THROWS_AS(arange(kMin, kMax, 1), Error);
  CHECK_THROWS_AS(arange(-1), Error);
  CHECK_THROWS_TEXT(ShapeError, "tensor: expected *got [", eye(-1));
}

TEST_CASE("create: impossible shapes are refused before anything is allocated",
          "[create][errors]") {
  const std::int64_t hostile[] = {kMin, -1, kMax, (std::int64_t{1} << 62) + 1};
  const std::uint64_t before = memory_stats(Device("cpu")).allocations;
  for (const std::int64_t a : hostile) {
    INFO(a);
    const char* const text = "tensor: expected *got [";
    CHECK_THROWS_TEXT(ShapeError, text, empty({a}));
    CHECK_THROWS_TEXT(ShapeError, text, zeros({2, a}));
    CHECK_THROWS_TEXT(ShapeError, text, ones({a, 2}));
    CHECK_THROWS_TEXT(ShapeError, text, full({a, 1}, 3));
    for (const std::int64_t b : hostile) CHECK_THROWS_AS(empty({a, b}), ShapeError);
    if (a < 0) CHECK_THROWS_AS(zeros({0, a}), ShapeError);
  }
  CHECK(memory_stats(Device("cpu")).allocations == before);
  // 2^31 and 2^32 + 1 elements could fit into memory, so the test uses a device with a capacity.
  const Device device("cpu:1");
  set_memory_capacity(device, memory_stats(device).in_use + (std::size_t{1} << 20));
  CHECK_THROWS_AS(empty({std::int64_t{1} << 31}, {.device = device}), OutOfMemoryError);
  CHECK_THROWS_AS(empty({(std::int64_t{1} << 32) + 1}, {.device = device, .dtype = DType::uint8}),
                  OutOfMemoryError);
  CHECK_NOTHROW(empty({16}, {.device = device}));
  set_memory_capacity(device, 0);
}

TEST_CASE("create: only floating point can require a gradient", "[create][errors]") {
  for (const DType t : all_dtypes()) {
    if (is_floating(t)) CHECK(zeros({2}, {.dtype = t, .requires_grad = true}).requires_grad());
    else
      CHECK_THROWS_TEXT(DTypeError, "requires_grad*expected *got ",
                        zeros({2}, {.dtype = t, .requires_grad = true}));
  }
  CHECK_THROWS_AS(tensor({1, 2}, {.requires_grad = true}), DTypeError);
  CHECK_THROWS_AS(arange(3, {.requires_grad = true}), DTypeError);
}

TEST_CASE("create: from_blob uses the caller's memory and gives it back at the end", "[create]") {
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  int freed = 0;
  {
    Tensor t = from_blob(memory.data(), {2, 3}, [&] { ++freed; });
    CHECK(t.data<float>() == memory.data());
    CHECK(t.dtype() == DType::float32);
    CHECK_EXACT(t, Array({2, 3}, List{1, 2, 3, 4, 5, 6}));
    memory[5] = 60;
    CHECK(t[1][2].item<float>() == 60);
    t.mul_(2);
    CHECK(memory[0] == 2);
    const Tensor column = t.select(1, 0);
    t = Tensor();
    CHECK(freed == 0);  // a view holds the storage
    CHECK(list(column) == List{2, 8});
  }
  CHECK(freed == 1);
  CHECK(from_blob(memory.data(), {6}).numel() == 6);
  CHECK(from_blob(memory.data(), {2}, {}, Device("cpu:1")).device() == Device("cpu:1"));
  Whole integers{1, 2};
  CHECK(from_blob(integers.data(), {2}).dtype() == DType::int64);
  CHECK(whole(from_blob(static_cast<void*>(integers.data()), {4}, DType::int32)) ==
        Whole{1, 0, 2, 0});
}

TEST_CASE("create: from_blob without memory is refused, unless there are no elements",
          "[create][errors]") {
  float* none = nullptr;
  int freed = 0;
  CHECK_THROWS_TEXT(ArgumentError, "from_blob: expected memory for 2 elements, got a null pointer",
                    from_blob(none, {2}, [&] { ++freed; }));
  CHECK(from_blob(none, {0}).numel() == 0);
  CHECK(from_blob(none, {3, 0}).shape() == Shape{3, 0});
  float x = 1;
  CHECK_THROWS_TEXT(ShapeError, "from_blob: ", from_blob(&x, {-1}));
  CHECK_THROWS_TEXT(ShapeError, "from_blob: ", from_blob(&x, {kMax}));
  CHECK_THROWS_TEXT(DeviceError, "got cpu:60", from_blob(&x, {1}, {}, Device("cpu:60")));
  alignas(8) char bytes[16] = {};
  CHECK_THROWS_TEXT(ArgumentError,
                    "from_blob: expected a pointer aligned for float32, a multiple of 4, got one "
                    "that is 3 too far",
                    from_blob(bytes + 3, {1}, DType::float32, [&] { ++freed; }));
  CHECK(freed == 0);  // the call failed, so the caller still owns the memory
}

TEST_CASE("create: item()", "[create][errors]") {
  CHECK(tensor({{2.75}}).item<float>() == 2.75f);
  CHECK(tensor(2.75).item<int>() == 2);
  CHECK(tensor(-2.75).item<std::int64_t>() == -2);
  CHECK(tensor({true}).item<double>() == 1);
  CHECK(random_tensor({3, 4}).t().select(0, 1).select(0, 2).item<double>() ==
        list(random_tensor({3, 4}))[9]);
  for (const Device d : test_devices())
    CHECK(full({}, 5, {.device = d, .dtype = DType::bfloat16}).item<float>() == 5);
  constexpr std::int64_t kBig = (std::int64_t{1} << 60) + 1;
  CHECK(tensor(kBig).item<std::int64_t>() == kBig);
  CHECK(static_cast<float>(tensor({0.5}).item<float16>()) == 0.5f);
  CHECK(static_cast<float>(tensor({0.5}).item<bfloat16>()) == 0.5f);
  CHECK((tensor({0.5}).item<bool>() && !tensor({0.0}).item<bool>() && tensor(kBig).item<bool>()));
  for (const DType t : all_dtypes())
    CHECK((ones({}, {.dtype = t}).item<double>() == 1 && ones({}, {.dtype = t}).item<int>() == 1));
  CHECK_THROWS_TEXT(ShapeError, "item: expected *one element*got *[2]",
                    tensor({1.0, 2.0}).item<float>());
  CHECK_THROWS_TEXT(ShapeError, "item: ", zeros({0}).item<float>());
}

TEST_CASE("create: to_vector() converts and orders by rows; data() checks the type",
          "[create][errors]") {
  const Array a({2, 3}, List{1, 2, 3, 4, 5, 6});
  for (const Device d : test_devices())
    for (const DType t : all_dtypes()) {
      if (t == DType::bool_) continue;
      INFO(t << " on " << d);
      const Tensor x = tensor_of(a, t, d);
      CHECK(list(x) == a.data);
      CHECK(x.t().to_vector<float>() == std::vector<float>{1, 4, 2, 5, 3, 6});
      CHECK(whole(x.slice(1, 0, 3, 2)) == Whole{1, 3, 4, 6});
      CHECK(x.to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6});
    }
  CHECK(list(zeros({0, 3})).empty());
  CHECK(tensor(4.0).to_vector<int>() == std::vector<int>{4});
  CHECK(bools(tensor({0.0, 3.0})) == Bools{false, true});
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  CHECK(x.data<float>()[3] == 4);
  CHECK(x.data<const float>()[0] == 1);
  CHECK(x.t().select(0, 1).data<float>() == x.data<float>() + 1);
  CHECK_THROWS_TEXT(DTypeError, "data: expected *float32*got *float64", x.data<double>());
  CHECK_THROWS_TEXT(DTypeError, "data: ", arange(3).data<std::int32_t>());
}

}  // namespace braid::test
