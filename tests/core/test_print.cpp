// Tests of printed tensors: by explicit texts, and against PyTorch's text (goldens/print.txt).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <locale>
#include <string>
#include <thread>

#include "shorthand.hpp"
#include "support/golden.hpp"

namespace braid::test {
namespace {

template <class N> Tensor of(const std::vector<N>& numbers, const Shape& shape) {
  Tensor t = make_tensor(shape, dtype_of<N>, Device());
  std::copy(numbers.begin(), numbers.end(), t.data<N>());
  return t;
}
Tensor floats(const std::vector<float>& numbers) {
  return of(numbers, {static_cast<std::int64_t>(numbers.size())});
}
Tensor counting(const Shape& shape) { return arange(shape.numel()).reshape(shape); }
Tensor empty_of(const Shape& shape, DType dtype) { return make_tensor(shape, dtype, Device()); }

struct Printed {
  Tensor tensor;
  std::string text;
};
void check_printed(const std::vector<Printed>& rows) {
  for (const Printed& row : rows) CHECK(str(row.tensor) == row.text);
}

constexpr float kInff = std::numeric_limits<float>::infinity();
constexpr float kNanf = std::numeric_limits<float>::quiet_NaN();

}  // namespace

// Cases that the goldens at the end do not cover. The expected texts are PyTorch's, with true for
// True, [0, 3] for (0, 3), dtype=float64 for dtype=torch.float64.

TEST_CASE("print: four digits, one column width; whole floats end in a point", "[print]") {
  check_printed({{of<float>({1.5f, 2, 3, 4, 5, 6}, {2, 3}),
                  "tensor([[1.5000, 2.0000, 3.0000],\n        [4.0000, 5.0000, 6.0000]])"},
                 {of<float>({1, -2, 0.5f}, {1, 3}), "tensor([[ 1.0000, -2.0000,  0.5000]])"},
                 {floats({0.00005f, 0}), "tensor([5.0000e-05, 0.0000e+00])"},
                 {floats({1, 2, 3}), "tensor([1., 2., 3.])"},
                 {floats({100, -1, 0}), "tensor([100.,  -1.,   0.])"},
                 {floats({0, 0}), "tensor([0., 0.])"},
                 {floats({-0.0f}), "tensor([-0.])"}});
}

TEST_CASE("print: scientific where magnitudes differ by more than 1000, above 1e8, or below 1e-4",
          "[print]") {
  check_printed({{floats({1000, 1}), "tensor([1000.,    1.])"},
                 {floats({1001, 1}), "tensor([1.0010e+03, 1.0000e+00])"},
                 {floats({100000000}), "tensor([100000000.])"},
                 {floats({100000008}), "tensor([1.0000e+08])"},
                 // the float nearest to 1e-4 is less than 1e-4
                 {floats({0.0001f, 0.05f}), "tensor([1.0000e-04, 5.0000e-02])"},
                 {floats({0.00011f, 0.05f}), "tensor([0.0001, 0.0500])"},
                 {floats({4.0046e-11f, 1.0f}), "tensor([4.0046e-11, 1.0000e+00])"},
                 {floats({1.5f, 2000}), "tensor([1.5000e+00, 2.0000e+03])"}});
}

TEST_CASE("print: NaN and infinity take the column's width and do not choose it", "[print]") {
  check_printed({{floats({kNanf, 1}), "tensor([nan, 1.])"},
                 {floats({kInff, -kInff, 1}), "tensor([inf, -inf, 1.])"},
                 {floats({kNanf, kInff, 1.5f}), "tensor([   nan,    inf, 1.5000])"},
                 {floats({kNanf, 1, 5000}), "tensor([       nan, 1.0000e+00, 5.0000e+03])"},
                 {floats({-kNanf}), "tensor([nan])"},
                 {floats({kInff, 10}), "tensor([inf, 10.])"}});
}

TEST_CASE("print: integers, bools, 16-bit floats, one element, no element", "[print]") {
  check_printed({{tensor({kMin, kMax}), "tensor([-9223372036854775808,  9223372036854775807])"},
                 {of<std::int32_t>({1, 2}, {2}), "tensor([1, 2], dtype=int32)"},
                 {of<std::uint8_t>({1, 255}, {2}), "tensor([  1, 255], dtype=uint8)"},
                 {of<float16>({float16(1.5f), float16(0.1f)}, {2}),
                  "tensor([1.5000, 0.1000], dtype=float16)"},
                 {of<bfloat16>({bfloat16(1.0f), bfloat16(0.1f)}, {2}),
                  "tensor([1.0000, 0.1001], dtype=bfloat16)"},
                 {of<float>({3.14159f}, {}), "tensor(3.1416)"},
                 {of<double>({0.5}, {}), "tensor(0.5000, dtype=float64)"},
                 {empty_of({2, 0}, DType::bool_), "tensor([], size=[2, 0], dtype=bool)"},
                 {Tensor(), "undefined"}});
}

TEST_CASE("print: blocks are parted by blank lines, lines break at 80 columns", "[print]") {
  check_printed(
      {{counting({2, 2, 2}),
        "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])"},
       {counting({2, 1, 1, 2}), "tensor([[[[0, 1]]],\n\n\n        [[[2, 3]]]])"},
       // 80 - 7 columns for elements of 2 + 2 columns: 18 per line
       {counting({20}),
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19])"},
       {counting({1, 19}),
        "tensor([[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "         18]])"}});
}

TEST_CASE("print: above 1000 elements three items stay at each end; any strides", "[print]") {
  CHECK(str(counting({1000})).find("...") == std::string::npos);
  // Only the shown elements decide the format: the large number in the middle is not shown.
  const Tensor large = ones({2000}), x = counting({2, 3});
  large[1000].fill_(1e9);
  check_printed(
      {{counting({2, 501}),
        "tensor([[   0,    1,    2,  ...,  498,  499,  500],\n        [ 501,  502,  503,  ...,  "
        "999, 1000, 1001]])"},
       {counting({501, 2}),
        "tensor([[   0,    1],\n        [   2,    3],\n        [   4,    5],\n        ...,\n"
        "        [ 996,  997],\n        [ 998,  999],\n        [1000, 1001]])"},
       {large, "tensor([1., 1., 1.,  ..., 1., 1., 1.])"},
       {make_view(x, {3, 2}, {1, 3}, 0), "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])"},
       {make_view(x, {2, 2}, {0, 1}, 4), "tensor([[4, 5],\n        [4, 5]])"},
       {make_view(counting({2002}), {1001}, {2}, 1),
        "tensor([   1,    3,    5,  ..., 1997, 1999, 2001])"}});
}

TEST_CASE("print: suffixes in PyTorch's order", "[print]") {
  const Tensor leaf = of<float>({1, -2, 0.5f}, {1, 3}).requires_grad_(),
               wide = of<double>({1}, {1}).requires_grad_(),
               row = (arange(7, {.dtype = DType::float64}) + 0.5).requires_grad_(),
               made = record("double", {leaf}, of<float>({2, -4, 1}, {1, 3}),
                             [](T dy) -> Grads { return Grads{dy}; });
  check_printed(
      {{leaf, "tensor([[ 1.0000, -2.0000,  0.5000]], requires_grad=true)"},
       {wide, "tensor([1.], dtype=float64, requires_grad=true)"},
       {made, "tensor([[ 2., -4.,  1.]], grad_fn=<double>)"},
       // A suffix that would exceed column 80 goes on a separate line.
       {row,
        "tensor([0.5000, 1.5000, 2.5000, 3.5000, 4.5000, 5.5000, 6.5000], dtype=float64,\n       "
        "requires_grad=true)"}});
}

TEST_CASE("print: numbers on any device, of every type and layout, are those on the CPU",
          "[print]") {
  for (const Device device : test_devices())
    for (const DType dtype : all_dtypes()) {
      const Tensor x = random_tensor({3, 5}, dtype);
      std::string text = str(x.t());
      if (device != Device()) {
        const std::size_t end = text.find("], dtype=");
        text.insert(end == std::string::npos ? text.size() - 1 : end + 1,
                    str(", device='", device, "'"));
      }
      INFO(device << " " << dtype);
      CHECK(str(x.to(device).t()) == text);
    }
}

TEST_CASE("print: another device is named", "[print]") {
  if (device_count(DeviceType::cpu) < 2) return;  // tested in the run with BRAID_CPU_DEVICES=2
  CHECK(str(zeros({0}, {.device = Device("cpu:1")})) == "tensor([], device='cpu:1')");
}

TEST_CASE("print: the program's locale does not matter", "[print]") {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  const std::string text = str(of<float>({1234.5f}, {1}));
  const std::string whole = str(counting({1001}));
  std::locale::global(before);
  CHECK(text == "tensor([1234.5000])");
  CHECK(whole == "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
}

TEST_CASE("print: whole lines from any thread", "[print]") {
  std::fflush(stdout);
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int terminal = dup(1);
  dup2(fileno(file), 1);
  constexpr int kThreads = 4, kLines = 200;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < kLines; ++i) print("thread ", t, " line ", i, " shape ", Shape{30, 5});
      });
    }
  }
  dup2(terminal, 1);
  ::close(terminal);
  std::rewind(file);
  std::vector<int> next(kThreads, 0);
  char line[200];
  int lines = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    ++lines;
    int t = -1, i = -1, a = 0, b = 0;
    REQUIRE(std::sscanf(line, "thread %d line %d shape [%d, %d]\n", &t, &i, &a, &b) == 4);
    REQUIRE((t >= 0 && t < kThreads && a == 30 && b == 5));
    CHECK(i == next[static_cast<std::size_t>(t)]++);  // the lines of one thread keep their order
  }
  std::fclose(file);
  CHECK(lines == kThreads * kLines);
}

TEST_CASE("print: every golden tensor, and a strided view of it, prints as PyTorch prints it",
          "[core][print][goldens]") {
  const testing::Goldens goldens("print.txt");
  REQUIRE(goldens.texts().size() >= 50);
  int strided = 0;
  for (const auto& [name, text] : goldens.texts()) {
    INFO(name);
    const Tensor value = goldens.tensor(name + ".value");
    const bool wants_grad = name.rfind("grad.", 0) == 0;
    if (value.dim() >= 2 && value.numel() > 0 && !wants_grad) {
      const Tensor view = value.transpose(0, 1).contiguous().transpose(0, 1);
      CHECK(str(view) == text);
      strided += !view.is_contiguous();  // views of one row or column are contiguous
    }
    if (wants_grad) value.requires_grad_();
    CHECK(str(value) == text);
  }
  CHECK(strided >= 10);
}

TEST_CASE("set_printoptions", "[print]") {
  struct Reset {
    ~Reset() { set_printoptions({}); }
  } reset;
  const Tensor x = floats({1.25f, 100.5f});
  set_printoptions({.precision = 1});
  check_printed({{x, "tensor([  1.2, 100.5])"}});
  set_printoptions({.precision = 2, .sci_mode = true});
  check_printed({{x, "tensor([1.25e+00, 1.00e+02])"}, {counting({2}), "tensor([0, 1])"}});
  set_printoptions({.sci_mode = false});
  check_printed({{floats({1e-5f, 1}), "tensor([0.0000, 1.0000])"}});
  set_printoptions({.threshold = 5, .edgeitems = 1});
  check_printed(
      {{counting({6}), "tensor([0,  ..., 5])"}, {counting({5}), "tensor([0, 1, 2, 3, 4])"}});
  set_printoptions({.linewidth = 20});
  check_printed({{counting({6}), "tensor([0, 1, 2, 3,\n        4, 5])"}});
  CHECK(get_printoptions().linewidth == 20);
  CHECK_THROWS_TEXT(ArgumentError, "set_printoptions: expected 0 <= precision <= 100, got -1",
                    set_printoptions({.precision = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "set_printoptions: expected edgeitems >= 1, got 0",
                    set_printoptions({.edgeitems = 0}));
}

}  // namespace braid::test
