// Calls of convolution, pooling and resizing.
#include <braid/core/kernel_args/conv.hpp>
#include <braid/core/kernel_args/image.hpp>

#include "kernels/calls.hpp"

namespace agreement {
namespace {

using braid::Axis;
using braid::ConvShape;
using braid::ImageStrides;
using braid::Span;

std::string text(const char* kernel, const ConvShape& s) {
  return braid::str(kernel, ' ', s.n, 'x', s.in, 'x', s.in_size[0], 'x', s.in_size[1], " by ",
                    s.out, 'x', s.kernel[0], 'x', s.kernel[1], ", stride ", s.stride[0],
                    ", groups ", s.groups);
}

/// The output size follows from the other parameters.
ConvShape shape(std::int64_t n, std::int64_t in, std::int64_t out, std::int64_t groups,
                std::pair<int, int> size, std::pair<int, int> kernel, std::pair<int, int> stride,
                std::pair<int, int> pad, std::pair<int, int> dilation) {
  ConvShape s{n,
              in,
              out,
              groups,
              {size.first, size.second},
              {},
              {kernel.first, kernel.second},
              {stride.first, stride.second},
              {pad.first, pad.second},
              {dilation.first, dilation.second}};
  for (int d = 0; d < 2; ++d)
    s.out_size[d] =
        (s.in_size[d] + 2 * s.pad[d] - s.dilation[d] * (s.kernel[d] - 1) - 1) / s.stride[d] + 1;
  return s;
}
const std::vector<ConvShape>& shapes() {
  static const std::vector<ConvShape> list{
      shape(2, 3, 4, 1, {5, 4}, {3, 2}, {1, 1}, {1, 0}, {1, 1}),
      shape(3, 4, 6, 2, {6, 7}, {3, 3}, {2, 1}, {1, 2}, {1, 2}),
      shape(2, 5, 3, 1, {4, 4}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
      shape(2, 8, 8, 2, {5, 5}, {3, 3}, {2, 2}, {1, 1}, {1, 1}),
      shape(1, 8, 16, 1, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      shape(2, 3, 3, 3, {4, 5}, {2, 2}, {1, 1}, {0, 0}, {1, 1}),
      shape(33, 1, 8, 1, {12, 12}, {3, 3}, {1, 1}, {0, 0}, {1, 1}),
      shape(0, 3, 4, 1, {5, 4}, {3, 2}, {1, 1}, {1, 0}, {1, 1})};
  return list;
}
std::int64_t inputs(const ConvShape& s) { return s.n * s.in * s.in_size[0] * s.in_size[1]; }
std::int64_t outputs(const ConvShape& s) { return s.n * s.out * s.out_size[0] * s.out_size[1]; }
std::int64_t weights(const ConvShape& s) {
  return s.out * (s.in / s.groups) * s.kernel[0] * s.kernel[1];
}

/// f(x, weight, y): the indices of the elements of each product.
using AtProduct = std::function<void(std::int64_t x, std::int64_t weight, std::int64_t y)>;
void for_products(const ConvShape& s, const AtProduct& f) {
  const std::int64_t in = s.in / s.groups, out = s.out / s.groups;
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t h = 0; h < s.out_size[0]; ++h)
      for (std::int64_t w = 0; w < s.out_size[1]; ++w)
        for (std::int64_t i = 0; i < s.kernel[0]; ++i)
          for (std::int64_t j = 0; j < s.kernel[1]; ++j) {
            const std::int64_t y = h * s.stride[0] - s.pad[0] + i * s.dilation[0],
                               x = w * s.stride[1] - s.pad[1] + j * s.dilation[1];
            if (y < 0 || x < 0 || y >= s.in_size[0] || x >= s.in_size[1]) continue;
            for (std::int64_t o = 0; o < s.out; ++o)
              for (std::int64_t c = 0; c < in; ++c)
                f(((n * s.in_size[0] + y) * s.in_size[1] + x) * s.in + o / out * in + c,
                  ((o * in + c) * s.kernel[0] + i) * s.kernel[1] + j,
                  ((n * s.out_size[0] + h) * s.out_size[1] + w) * s.out + o);
          }
}

/// The bound of sums of products: (terms + 3) roundings of Σ |product|.
struct Sums {
  Numbers size, terms;
  explicit Sums(std::int64_t n) : size(n), terms(n) {}
  void add(std::int64_t at, double product) { size[at] += std::fabs(product), terms[at] += 1; }
  [[nodiscard]] Numbers bound(DType t) const {
    Numbers list(size.size());
    for (std::int64_t i = 0; i < list.size(); ++i) list[i] = (terms[i] + 3) * rounding(t) * size[i];
    return list;
  }
};

}  // namespace

std::vector<Call> calls_of_conv(DType) {
  std::vector<Call> list;
  for (const ConvShape& s : shapes())
    for (const bool bias : {false, true})
      list.push_back({text(bias ? "conv with bias" : "conv", s),
                      {out(random(outputs(s), 1)), in(random(inputs(s), 2)),
                       in(random(weights(s), 3)), in(random(s.out, 4))},
                      [=](const Place& p) {
                        p.table.conv({p.t, p[1], p[2], bias ? p[3] : nullptr, p[0], s}, p.stream);
                      },
                      [=](DType t, const Values& v) {
                        Sums sums(v[0].size());
                        for_products(s, [&](std::int64_t x, std::int64_t w, std::int64_t y) {
                          sums.add(y, v[1][x] * v[2][w]);
                        });
                        for (std::int64_t y = 0; bias && y < v[0].size(); ++y)
                          sums.add(y, v[3][y % s.out]);
                        return Values{sums.bound(t)};
                      }});
  return list;
}

std::vector<Call> calls_of_conv_backward_data(DType) {
  std::vector<Call> list;
  for (const ConvShape& s : shapes())
    list.push_back(
        {text("conv_backward_data", s),
         {out(random(inputs(s), 1)), in(random(outputs(s), 2)), in(random(weights(s), 3))},
         [=](const Place& p) { p.table.conv_backward_data({p.t, p[1], p[2], p[0], s}, p.stream); },
         [=](DType t, const Values& v) {
           Sums sums(v[0].size());
           for_products(s, [&](std::int64_t x, std::int64_t w, std::int64_t y) {
             sums.add(x, v[1][y] * v[2][w]);
           });
           return Values{sums.bound(t)};
         }});
  return list;
}

std::vector<Call> calls_of_conv_backward_weight(DType) {
  std::vector<Call> list;
  for (const ConvShape& s : shapes())
    for (const bool bias : {false, true}) {
      if (s.n == 0) continue;  // the op fills with zeros
      std::vector<Operand> operands{out(random(weights(s), 1)), in(random(inputs(s), 2)),
                                    in(random(outputs(s), 3))};
      if (bias) operands.push_back(out(random(s.out, 4)));
      list.push_back({text(bias ? "conv_backward_weight with bias" : "conv_backward_weight", s),
                      operands,
                      [=](const Place& p) {
                        void* const db = bias ? p[3] : nullptr;
                        p.table.conv_backward_weight({p.t, p[1], p[2], p[0], db, s}, p.stream);
                      },
                      [=](DType t, const Values& v) {
                        Sums dw(v[0].size()), db(s.out);
                        for_products(s, [&](std::int64_t x, std::int64_t w, std::int64_t y) {
                          dw.add(w, v[1][x] * v[2][y]);
                        });
                        for (std::int64_t y = 0; y < v[2].size(); ++y) db.add(y % s.out, v[2][y]);
                        Values bounds{dw.bound(t)};
                        if (bias) bounds.push_back(db.bound(t));
                        return bounds;
                      }});
    }
  return list;
}

namespace {

/// Images in one of the two memory orders, with the axis rules of both dims.
struct Images {
  std::string name;
  std::int64_t n, c;
  Axis axis[2];
  bool last;
  [[nodiscard]] ImageStrides in() const { return strides(axis[0].in, axis[1].in); }
  [[nodiscard]] ImageStrides seen() const { return strides(axis[0].out, axis[1].out); }
  [[nodiscard]] std::int64_t all_in() const { return n * c * axis[0].in * axis[1].in; }
  [[nodiscard]] std::int64_t all_out() const { return n * c * axis[0].out * axis[1].out; }

 private:
  [[nodiscard]] ImageStrides strides(std::int64_t h, std::int64_t w) const {
    if (last) return {{h * w * c, 1, w * c, c}};
    return {{c * h * w, h * w, w, 1}};
  }
};

Axis window(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
            std::int64_t dilation, std::int64_t divisor) {
  Axis a;
  a.in = size, a.kernel = kernel, a.stride = stride, a.pad = pad, a.dilation = dilation,
  a.divisor = divisor;
  a.out = (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  return a;
}
Axis of_kind(Axis::Kind kind, std::int64_t in, std::int64_t out, double scale = 0,
             double shift = 0) {
  Axis a;
  a.kind = kind, a.in = in, a.out = out, a.scale = scale, a.shift = shift;
  return a;
}

std::vector<Images> images(
    std::initializer_list<std::tuple<const char*, std::int64_t, std::int64_t, Axis, Axis>> rows) {
  std::vector<Images> list;
  for (const auto& [name, n, c, down, across] : rows) {
    list.push_back({braid::str(name, ", channels last"), n, c, {down, across}, true});
    list.push_back({braid::str(name, ", row-major"), n, c, {down, across}, false});
  }
  return list;
}

const std::vector<Images>& pools() {
  static const std::vector<Images> list = images(
      {{"2x2 windows", 2, 33, window(6, 2, 2, 0, 1, 0), window(5, 2, 2, 0, 1, 0)},
       {"overlapping, padded", 3, 17, window(7, 3, 2, 1, 1, 0), window(6, 3, 1, 1, 1, 0)},
       {"dilated", 1, 5, window(9, 3, 2, 1, 2, 0), window(8, 2, 1, 1, 3, 0)},
       {"adaptive", 2, 3, of_kind(Axis::Kind::adaptive, 7, 3), of_kind(Axis::Kind::adaptive, 5, 7)},
       {"none", 0, 3, window(4, 2, 2, 0, 1, 0), window(4, 2, 2, 0, 1, 0)}});
  return list;
}

/// A valid index of max pooling: an element of each window.
Operand index_of(const Images& p) {
  Numbers list(p.all_out());
  const ImageStrides s = p.seen();
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t c = 0; c < p.c; ++c)
      for (std::int64_t h = 0; h < p.axis[0].out; ++h)
        for (std::int64_t w = 0; w < p.axis[1].out; ++w) {
          const Span down = seen_by(p.axis[0], h), across = seen_by(p.axis[1], w);
          const std::int64_t row =
              (c + h) % 2 == 0 || p.axis[0].dilation > 1 ? down.first : down.last - 1;
          list[n * s.of[0] + c * s.of[1] + h * s.of[2] + w * s.of[3]] =
              static_cast<double>(row * p.axis[1].in + across.first);
        }
  return in(list, 0, always(DType::int32));
}
std::int32_t* index_at(void* data) { return static_cast<std::int32_t*>(data); }
template <class Args> Args pooling(const Place& p, const Images& m) {
  Args args{};
  args.dtype = p.t, args.n = m.n, args.c = m.c;
  args.axis[0] = m.axis[0], args.axis[1] = m.axis[1];
  args.in = m.in(), args.out = m.seen();
  return args;
}

}  // namespace

std::vector<Call> calls_of_max_pool(DType t) {
  std::vector<Call> list;
  for (const Images& m : pools()) {
    Numbers x = random(m.all_in(), 3);
    for (std::int64_t i = 5; i < x.size() && braid::is_floating(t); i += 31)
      x[i] = i % 2 == 0 ? kNaN : -kInf;
    list.push_back({"max_pool " + m.name,
                    {out(random(m.all_out(), 1)),
                     out(random(m.all_out(), 2, 0, 9), 0, always(DType::int32)), in(x)},
                    [=](const Place& p) {
                      auto args = pooling<braid::MaxPoolArgs>(p, m);
                      args.x = p[2], args.y = p[0], args.index = index_at(p[1]);
                      p.table.max_pool(args, p.stream);
                    },
                    // exact, but a conversion changes the bits of a NaN
                    [](DType, const Values& v) {
                      return Values{Numbers(v[0].size()), Numbers(v[1].size())};
                    }});
  }
  return list;
}

std::vector<Call> calls_of_max_pool_backward(DType) {
  std::vector<Call> list;
  for (const Images& m : pools())
    list.push_back({"max_pool_backward " + m.name,
                    {out(random(m.all_in(), 1)), in(random(m.all_out(), 2)), index_of(m)},
                    [=](const Place& p) {
                      auto args = pooling<braid::MaxPoolBackwardArgs>(p, m);
                      args.dy = p[1], args.index = index_at(p[2]), args.dx = p[0];
                      p.table.max_pool_backward(args, p.stream);
                    }});
  return list;
}

std::vector<Call> calls_of_max_pool_pick(DType) {
  std::vector<Call> list;
  for (const Images& m : pools())
    list.push_back({"max_pool_pick " + m.name,
                    {out(random(m.all_out(), 1)), in(random(m.all_in(), 2)), index_of(m)},
                    [=](const Place& p) {
                      auto args = pooling<braid::MaxPoolPickArgs>(p, m);
                      args.x = p[1], args.index = index_at(p[2]), args.y = p[0];
                      p.table.max_pool_pick(args, p.stream);
                    }});
  return list;
}

namespace {

Call resample(const Images& m, bool transposed) {
  const ImageStrides to = transposed ? m.in() : m.seen(), from = transposed ? m.seen() : m.in();
  return {(transposed ? "resample transposed, " : "resample, ") + m.name,
          {out(random(transposed ? m.all_in() : m.all_out(), 1)),
           in(random(transposed ? m.all_out() : m.all_in(), 2))},
          [=](const Place& p) {
            p.table.resample(
                {p.t, transposed, p[1], p[0], m.n, m.c, {m.axis[0], m.axis[1]}, from, to},
                p.stream);
          },
          [=](DType t, const Values& v) {
            Sums sums(v[0].size());
            const auto at = [](const ImageStrides& s, std::int64_t image, std::int64_t y,
                               std::int64_t x) { return image + y * s.of[2] + x * s.of[3]; };
            // Adds element [i, j], which output position [h, w] reads, for all images.
            const auto add = [&](std::int64_t h, std::int64_t w, std::int64_t i, std::int64_t j,
                                 double weight) {
              for (std::int64_t n = 0; n < m.n; ++n)
                for (std::int64_t c = 0; c < m.c; ++c) {
                  const std::int64_t there = n * to.of[0] + c * to.of[1],
                                     here = n * from.of[0] + c * from.of[1];
                  if (transposed)
                    sums.add(at(to, there, i, j), weight * v[1][at(from, here, h, w)]);
                  else sums.add(at(to, there, h, w), weight * v[1][at(from, here, i, j)]);
                }
            };
            for (std::int64_t h = 0; h < m.axis[0].out; ++h)
              for (std::int64_t w = 0; w < m.axis[1].out; ++w) {
                const Span down = seen_by(m.axis[0], h), across = seen_by(m.axis[1], w);
                for (std::int64_t i = down.first; i < down.last; ++i)
                  for (std::int64_t j = across.first; j < across.last; ++j)
                    add(h, w, i, j,
                        weight_of(m.axis[0], h, down, i) * weight_of(m.axis[1], w, across, j));
              }
            // the bound of the sums, and three roundings of each weight
            Numbers bound = sums.bound(t);
            for (std::int64_t i = 0; i < bound.size(); ++i)
              bound[i] += 3 * rounding(t) * sums.size[i] + last(t, v[0][i]);
            return Values{bound};
          }};
}

}  // namespace

std::vector<Call> calls_of_resample(DType) {
  std::vector<Call> list;
  for (const Images& m :
       images({{"means of windows", 2, 33, window(6, 2, 2, 0, 1, -1), window(5, 3, 2, 1, 1, 0)},
               {"a divisor", 1, 3, window(7, 3, 1, 1, 1, 5), window(6, 1, 3, 0, 1, 1)},
               {"adaptive", 2, 17, of_kind(Axis::Kind::adaptive, 7, 3),
                of_kind(Axis::Kind::adaptive, 5, 7)},
               {"nearest", 2, 5, of_kind(Axis::Kind::nearest, 7, 16),
                of_kind(Axis::Kind::nearest, 5, 3, 1.7)},
               {"linear", 1, 9, of_kind(Axis::Kind::linear, 5, 12, 5.0 / 12, 2.5 / 12 - 0.5),
                of_kind(Axis::Kind::linear, 6, 4, 5.0 / 3, 0)},
               {"none", 0, 3, window(4, 2, 2, 0, 1, 0), window(4, 2, 2, 0, 1, 0)}}))
    for (const bool transposed : {false, true}) list.push_back(resample(m, transposed));
  return list;
}

}  // namespace agreement
