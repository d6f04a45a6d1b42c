#include "draw.hpp"

#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <sstream>

#include <braid/core/autograd.hpp>
#include <braid/core/max_rank.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

namespace braid::fuzz {
namespace {

bool shown = false;

constexpr I kMost = std::numeric_limits<I>::max(), kLeast = std::numeric_limits<I>::min();
constexpr I kEnds[] = {
    kLeast,     kLeast + 1,       -(I{1} << 62), -(I{1} << 32),    -(I{1} << 31), -1000,
    4096,       (I{1} << 31) - 1, I{1} << 31,    (I{1} << 32) + 1, I{1} << 40,    (I{1} << 61) + 1,
    I{1} << 62, kMost - 1,        kMost};

template <class... T> void tell(const T&... parts) {
  if (!shown) return;
  std::ostringstream line;
  (line << ... << parts);
  std::fprintf(stderr, "%s\n", line.str().c_str());
}

}  // namespace

Draw::Draw(std::span<const std::uint8_t> bytes) noexcept : state_(0xcbf29ce484222325u) {
  for (const std::uint8_t b : bytes) state_ = (state_ ^ b) * 0x100000001b3u;
}

void Draw::show() { shown = true; }
void Draw::begin(std::string_view op) { tell("call ", op); }
void Draw::say(std::string_view line) { tell("  ", line); }

Tensor Draw::told(Tensor t) {
  if (!t.defined()) tell("  an undefined tensor");
  else
    tell("  ", t.shape(), " ", t.dtype(), ", strides ", t.strides(), ", offset ",
         t.storage_offset(), t.requires_grad() ? ", requires_grad" : "");
  return t;
}
template <class T> T Draw::told(T value, const char* what) {
  tell("  ", what, " ", value);
  return value;
}

std::uint64_t Draw::bits() noexcept {  // splitmix64
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

I Draw::integer() {
  return told(one_in(5) ? kEnds[below(std::ssize(kEnds))] : below(9) - 3, "integer");
}
I Draw::count() { return one_in(10) ? integer() : told(1 + below(4), "count"); }
I Draw::dim() { return one_in(16) ? integer() : told(below(6) - 3, "dim"); }
bool Draw::flag() { return told(one_in(2), "flag"); }

double Draw::real() {
  constexpr double kSpecial[] = {0,
                                 -0.0,
                                 1,
                                 -1,
                                 1e-45,
                                 1e-310,
                                 1e30,
                                 -1e300,
                                 9007199254740993.0,
                                 std::numeric_limits<double>::max(),
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()};
  const double small = static_cast<double>(below(2001) - 1000) / 250;
  return told(one_in(3) ? kSpecial[below(std::ssize(kSpecial))] : small, "real");
}

DType Draw::dtype() {
  constexpr DType kAll[] = {DType::bool_,   DType::uint8,    DType::int32,   DType::int64,
                            DType::float16, DType::bfloat16, DType::float32, DType::float64};
  return told(kAll[below(std::ssize(kAll))], "dtype");
}

Shape Draw::shape() {
  Shape s;
  const I rank = one_in(20) ? kMaxRank : below(5);
  for (I i = 0; i < rank; ++i)
    s.push_back(one_in(10) ? kEnds[below(std::ssize(kEnds))] : one_in(10) ? -1 : below(5));
  return told(s, "shape");
}

Shape Draw::dims() {
  Shape s;
  for (I n = below(4); n > 0; --n)
    s.push_back(one_in(16) ? kEnds[below(std::ssize(kEnds))] : below(6) - 3);
  return told(s, "dims");
}

Shape Draw::small_shape(I rank) {
  Shape s;
  for (I i = 0; i < rank; ++i)
    s.push_back(one_in(8) ? 0 : one_in(4) ? 1 : 1 + below(rank > 3 ? 4 : 7));
  if (rank > 0 && one_in(24)) {  // no elements, however large one size is
    s[static_cast<int>(below(rank))] = I{1} << (31 + below(20));
    s[static_cast<int>(below(rank))] = 0;
  }
  return s;
}

/// Fills with numbers from -2 to 2 and a few special values. Integers are -2 to 4, uint8 0 to 6.
Tensor Draw::filled(const Shape& shape, DType dtype) {
  const NoGrad guard;
  Tensor t = make_tensor(shape, DType::float32, Device());
  auto* numbers = t.data<float>();
  for (I i = 0; i < t.numel(); ++i)
    numbers[i] = one_in(40) ? static_cast<float>(kEnds[below(std::ssize(kEnds))])
                            : static_cast<float>(below(17) - 8) / 4;
  if (is_floating(dtype) && t.numel() > 0 && one_in(12))
    numbers[below(t.numel())] = one_in(2) ? std::numeric_limits<float>::quiet_NaN()
                                          : std::numeric_limits<float>::infinity();
  if (!is_floating(dtype) && dtype != DType::bool_)
    // converting a float outside the range of an int is undefined behaviour
    for (I i = 0; i < t.numel(); ++i)
      numbers[i] = static_cast<float>(below(7) - (dtype == DType::uint8 ? 0 : 2));
  return t.to(dtype);
}

Tensor Draw::of_shape(const Shape& shape, DType dtype) {
  const int rank = shape.rank();
  Tensor t;
  const I layout = below(rank == 0 ? 2 : 6);
  if (layout <= 1) {
    t = filled(shape, dtype);
  } else if (layout == 2) {  // all dims reversed
    Shape order, turned;
    for (int i = rank; i-- > 0;) order.push_back(i), turned.push_back(shape[i]);
    t = filled(turned, dtype).permute(order);
  } else {
    const int d = static_cast<int>(below(rank));
    Shape larger = shape;
    if (shape[d] > 4096) {
      t = filled(shape, dtype);
    } else if (layout == 3) {  // a slice of a larger tensor, with an offset
      larger[d] = shape[d] + 3;
      t = filled(larger, dtype).narrow(d, 1 + below(2), shape[d]);
    } else if (layout == 4) {  // every second element
      larger[d] = shape[d] * 2;
      t = filled(larger, dtype).slice(d, 0, larger[d], 2);
    } else {  // one element repeated
      larger[d] = 1;
      t = filled(larger, dtype).expand(shape);
    }
  }
  if (is_floating(dtype) && one_in(3)) t = t.detach().requires_grad_();
  last_ = shape;
  last_dtype_ = dtype;
  return told(t);
}

Tensor Draw::tensor() { return of_rank(below(5)); }

Tensor Draw::of_rank(I rank) {
  if (one_in(60)) return told(Tensor());
  if (one_in(12)) rank = below(6);
  // float32 and float64 make up half of the dtypes
  const DType type = one_in(2) ? (one_in(3) ? DType::float64 : DType::float32) : dtype();
  return of_shape(small_shape(rank), type);
}

Tensor Draw::maybe(const Shape& shape) {
  if (one_in(2)) return told(Tensor());
  return of_shape(shape, one_in(10) ? dtype() : last_dtype_);
}

Tensor Draw::like() {
  if (one_in(10)) return tensor();
  Shape shape = last_;
  if (one_in(3)) {
    for (int i = 0; i < shape.rank(); ++i)
      if (one_in(2)) shape[i] = 1;
    if (shape.rank() > 0 && one_in(3)) shape = Shape(std::span(shape.begin() + 1, shape.end()));
  }
  const Shape before = last_;
  const DType type = one_in(6) ? dtype() : last_dtype_;
  const Tensor t = of_shape(shape, type);
  last_ = before;
  return t;
}

Tensor Draw::index(const Shape& shape) {
  const NoGrad guard;
  const Tensor t = make_tensor(shape, DType::int64, Device());
  auto* numbers = t.data<I>();
  for (I i = 0; i < t.numel(); ++i)
    numbers[i] = one_in(100) ? kEnds[below(std::ssize(kEnds))] : below(one_in(4) ? 5 : 2);
  return told(one_in(16) ? t.to(DType::int32) : t);
}
Tensor Draw::index() {
  if (one_in(16)) return tensor();
  return index(one_in(2) ? last_ : small_shape(below(3)));
}
Tensor Draw::signs() {
  const NoGrad guard;
  const Tensor t = make_tensor({last_.empty() ? 1 : last_[0]}, DType::int64, Device());
  for (I i = 0; i < t.numel(); ++i) t.data<I>()[i] = one_in(50) ? 0 : one_in(2) ? 1 : -1;
  return told(t);
}
Tensor Draw::mask() {
  const Shape before = last_;
  const Tensor t =
      of_shape(one_in(8) ? small_shape(below(4)) : last_, one_in(10) ? dtype() : DType::bool_);
  last_ = before;
  return t;
}

std::vector<Tensor> Draw::tensors() {
  std::vector<Tensor> list;
  const I n = one_in(10) ? 0 : 1 + below(3);
  for (I i = 0; i < n; ++i) list.push_back(i == 0 ? tensor() : like());
  return list;
}

Tensor Draw::huge_view() {
  if (!one_in(4)) return tensor();
  Shape shape = small_shape(below(3));
  shape.push_back(1);
  const Tensor one = filled(shape, dtype());
  shape[shape.rank() - 1] = I{1} << (16 + below(40));
  return told(one.expand(shape));
}

}  // namespace braid::fuzz
