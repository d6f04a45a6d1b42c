// Calls of convolutions, pooling and resizing.
#include <braid/core/kernel_args/conv.hpp>
#include <braid/core/kernel_args/image.hpp>

#include "cuda_kernels/every_kernel.hpp"

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

/// Output sizes come out of the rest.
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

/// f(x, weight, y): the places of the numbers of each product.
template <class F> void for_products(const ConvShape& s, F f) {
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
                f(static_cast<std::size_t>(((n * s.in_size[0] + y) * s.in_size[1] + x) * s.in +
                                           o / out * in + c),
                  static_cast<std::size_t>(((o * in + c) * s.kernel[0] + i) * s.kernel[1] + j),
                  static_cast<std::size_t>(((n * s.out_size[0] + h) * s.out_size[1] + w) * s.out +
                                           o));
          }
}

/// (terms + 3) roundings of Σ |product|.
struct Sums {
  Numbers size;
  std::vector<int> terms;
  explicit Sums(std::size_t n) : size(n, 0.0), terms(n, 0) {}
  void add(std::size_t at, double product) { size[at] += std::fabs(product), ++terms[at]; }
  [[nodiscard]] Numbers bound(DType t) const {
    Numbers list(size.size());
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = (terms[i] + 3) * rounding(t) * size[i];
    return list;
  }
};

}  // namespace

std::vector<Call<braid::ConvArgs>> calls_of(Of<braid::ConvArgs>, DType) {
  std::vector<Call<braid::ConvArgs>> list;
  for (const ConvShape& s : shapes())
    for (const bool bias : {false, true})
      list.push_back({text(bias ? "conv with bias" : "conv", s),
                      {out(random(outputs(s), 1)), in(random(inputs(s), 2)),
                       in(random(weights(s), 3)), in(random(s.out, 4))},
                      [=](DType t, const std::vector<void*>& at) {
                        return braid::ConvArgs{t, at[1], at[2], bias ? at[3] : nullptr, at[0], s};
                      },
                      [=](DType t, const std::vector<Numbers>& v) {
                        Sums sums(v[0].size());
                        for_products(s, [&](std::size_t x, std::size_t w, std::size_t y) {
                          sums.add(y, v[1][x] * v[2][w]);
                        });
                        for (std::size_t y = 0; bias && y < v[0].size(); ++y)
                          sums.add(y, v[3][y % static_cast<std::size_t>(s.out)]);
                        return std::vector<Numbers>{sums.bound(t)};
                      }});
  return list;
}

std::vector<Call<braid::ConvDataArgs>> calls_of(Of<braid::ConvDataArgs>, DType) {
  std::vector<Call<braid::ConvDataArgs>> list;
  for (const ConvShape& s : shapes())
    list.push_back(
        {text("conv_backward_data", s),
         {out(random(inputs(s), 1)), in(random(outputs(s), 2)), in(random(weights(s), 3))},
         [=](DType t, const std::vector<void*>& at) {
           return braid::ConvDataArgs{t, at[1], at[2], at[0], s};
         },
         [=](DType t, const std::vector<Numbers>& v) {
           Sums sums(v[0].size());
           for_products(s, [&](std::size_t x, std::size_t w, std::size_t y) {
             sums.add(x, v[1][y] * v[2][w]);
           });
           return std::vector<Numbers>{sums.bound(t)};
         }});
  return list;
}

std::vector<Call<braid::ConvWeightArgs>> calls_of(Of<braid::ConvWeightArgs>, DType) {
  std::vector<Call<braid::ConvWeightArgs>> list;
  for (const ConvShape& s : shapes())
    for (const bool bias : {false, true}) {
      if (s.n == 0) continue;  // the op fills zeros
      std::vector<Operand> operands{out(random(weights(s), 1)), in(random(inputs(s), 2)),
                                    in(random(outputs(s), 3))};
      if (bias) operands.push_back(out(random(s.out, 4)));
      list.push_back(
          {text(bias ? "conv_backward_weight with bias" : "conv_backward_weight", s), operands,
           [=](DType t, const std::vector<void*>& at) {
             return braid::ConvWeightArgs{t, at[1], at[2], at[0], bias ? at[3] : nullptr, s};
           },
           [=](DType t, const std::vector<Numbers>& v) {
             Sums dw(v[0].size()), db(static_cast<std::size_t>(s.out));
             for_products(s, [&](std::size_t x, std::size_t w, std::size_t y) {
               dw.add(w, v[1][x] * v[2][y]);
             });
             for (std::size_t y = 0; y < v[2].size(); ++y)
               db.add(y % static_cast<std::size_t>(s.out), v[2][y]);
             return bias ? std::vector<Numbers>{dw.bound(t), db.bound(t)}
                         : std::vector<Numbers>{dw.bound(t)};
           }});
    }
  return list;
}

namespace {

/// Images in one of the two orders, rules for both dims.
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

std::vector<Images> both_orders(const std::string& name, std::int64_t n, std::int64_t c,
                                const Axis& down, const Axis& across) {
  return {{name + ", channels last", n, c, {down, across}, true},
          {name + ", row-major", n, c, {down, across}, false}};
}
void append(std::vector<Images>& to, const std::vector<Images>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::vector<Images> pools() {
  std::vector<Images> list;
  append(list,
         both_orders("2x2 windows", 2, 33, window(6, 2, 2, 0, 1, 0), window(5, 2, 2, 0, 1, 0)));
  append(list, both_orders("overlapping, padded", 3, 17, window(7, 3, 2, 1, 1, 0),
                           window(6, 3, 1, 1, 1, 0)));
  append(list, both_orders("dilated", 1, 5, window(9, 3, 2, 1, 2, 0), window(8, 2, 1, 1, 3, 0)));
  append(list, both_orders("adaptive", 2, 3, of_kind(Axis::Kind::adaptive, 7, 3),
                           of_kind(Axis::Kind::adaptive, 5, 7)));
  append(list, both_orders("none", 0, 3, window(4, 2, 2, 0, 1, 0), window(4, 2, 2, 0, 1, 0)));
  return list;
}

DType int32_of(DType) { return DType::int32; }

/// An index that max pooling could have given: the first element of each window.
Numbers index_of(const Images& p) {
  Numbers list(static_cast<std::size_t>(p.all_out()), 0.0);
  const ImageStrides s = p.seen();
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t c = 0; c < p.c; ++c)
      for (std::int64_t h = 0; h < p.axis[0].out; ++h)
        for (std::int64_t w = 0; w < p.axis[1].out; ++w) {
          const Span down = seen_by(p.axis[0], h), across = seen_by(p.axis[1], w);
          const std::int64_t row =
              (c + h) % 2 == 0 || p.axis[0].dilation > 1 ? down.first : down.last - 1;
          list[static_cast<std::size_t>(n * s.of[0] + c * s.of[1] + h * s.of[2] + w * s.of[3])] =
              static_cast<double>(row * p.axis[1].in + across.first);
        }
  return list;
}

}  // namespace

std::vector<Call<braid::MaxPoolArgs>> calls_of(Of<braid::MaxPoolArgs>, DType) {
  std::vector<Call<braid::MaxPoolArgs>> list;
  for (const Images& p : pools()) {
    Numbers x = random(p.all_in(), 3);
    for (std::size_t i = 5; i < x.size(); i += 31) x[i] = i % 2 == 0 ? kNaN : -kInf;
    list.push_back(
        {"max_pool " + p.name,
         {out(random(p.all_out(), 1)), out(random(p.all_out(), 2, 0, 9), 0, int32_of), in(x)},
         [=](DType t, const std::vector<void*>& at) {
           return braid::MaxPoolArgs{t,
                                     at[2],
                                     at[0],
                                     static_cast<std::int32_t*>(at[1]),
                                     p.n,
                                     p.c,
                                     {p.axis[0], p.axis[1]},
                                     p.in(),
                                     p.seen()};
         },
         // exact; but a NaN has other bits after a conversion
         [](DType, const std::vector<Numbers>& v) {
           return std::vector<Numbers>{Numbers(v[0].size(), 0.0), Numbers(v[1].size(), 0.0)};
         }});
  }
  return list;
}

std::vector<Call<braid::MaxPoolBackwardArgs>> calls_of(Of<braid::MaxPoolBackwardArgs>, DType) {
  std::vector<Call<braid::MaxPoolBackwardArgs>> list;
  for (const Images& p : pools())
    list.push_back(
        {"max_pool_backward " + p.name,
         {out(random(p.all_in(), 1)), in(random(p.all_out(), 2)), in(index_of(p), 0, int32_of)},
         [=](DType t, const std::vector<void*>& at) {
           return braid::MaxPoolBackwardArgs{t,
                                             at[1],
                                             static_cast<const std::int32_t*>(at[2]),
                                             at[0],
                                             p.n,
                                             p.c,
                                             {p.axis[0], p.axis[1]},
                                             p.in(),
                                             p.seen()};
         },
         nullptr});
  return list;
}

std::vector<Call<braid::MaxPoolPickArgs>> calls_of(Of<braid::MaxPoolPickArgs>, DType) {
  std::vector<Call<braid::MaxPoolPickArgs>> list;
  for (const Images& p : pools())
    list.push_back(
        {"max_pool_pick " + p.name,
         {out(random(p.all_out(), 1)), in(random(p.all_in(), 2)), in(index_of(p), 0, int32_of)},
         [=](DType t, const std::vector<void*>& at) {
           return braid::MaxPoolPickArgs{t,
                                         at[1],
                                         static_cast<const std::int32_t*>(at[2]),
                                         at[0],
                                         p.n,
                                         p.c,
                                         {p.axis[0], p.axis[1]},
                                         p.in(),
                                         p.seen()};
         },
         nullptr});
  return list;
}

std::vector<Call<braid::ResampleArgs>> calls_of(Of<braid::ResampleArgs>, DType) {
  std::vector<Images> images;
  append(images, both_orders("means of windows", 2, 33, window(6, 2, 2, 0, 1, -1),
                             window(5, 3, 2, 1, 1, 0)));
  append(images,
         both_orders("a divisor", 1, 3, window(7, 3, 1, 1, 1, 5), window(6, 1, 3, 0, 1, 1)));
  append(images, both_orders("adaptive", 2, 17, of_kind(Axis::Kind::adaptive, 7, 3),
                             of_kind(Axis::Kind::adaptive, 5, 7)));
  append(images, both_orders("nearest", 2, 5, of_kind(Axis::Kind::nearest, 7, 16),
                             of_kind(Axis::Kind::nearest, 5, 3, 1.7)));
  append(images,
         both_orders("linear", 1, 9, of_kind(Axis::Kind::linear, 5, 12, 5.0 / 12, 2.5 / 12 - 0.5),
                     of_kind(Axis::Kind::linear, 6, 4, 5.0 / 3, 0)));
  append(images, both_orders("none", 0, 3, window(4, 2, 2, 0, 1, 0), window(4, 2, 2, 0, 1, 0)));
  std::vector<Call<braid::ResampleArgs>> list;
  for (const Images& p : images)
    for (const bool transposed : {false, true}) {
      const std::int64_t to = transposed ? p.all_in() : p.all_out(),
                         from = transposed ? p.all_out() : p.all_in();
      const ImageStrides to_strides = transposed ? p.in() : p.seen(),
                         from_strides = transposed ? p.seen() : p.in();
      list.push_back({(transposed ? "resample transposed, " : "resample, ") + p.name,
                      {out(random(to, 1)), in(random(from, 2))},
                      [=](DType t, const std::vector<void*>& at) {
                        return braid::ResampleArgs{t,
                                                   transposed,
                                                   at[1],
                                                   at[0],
                                                   p.n,
                                                   p.c,
                                                   {p.axis[0], p.axis[1]},
                                                   from_strides,
                                                   to_strides};
                      },
                      [=](DType t, const std::vector<Numbers>& v) {
                        Sums sums(v[0].size());
                        for (std::int64_t h = 0; h < p.axis[0].out; ++h)
                          for (std::int64_t w = 0; w < p.axis[1].out; ++w) {
                            const Span down = seen_by(p.axis[0], h), across = seen_by(p.axis[1], w);
                            for (std::int64_t i = down.first; i < down.last; ++i)
                              for (std::int64_t j = across.first; j < across.last; ++j)
                                for (std::int64_t n = 0; n < p.n; ++n)
                                  for (std::int64_t c = 0; c < p.c; ++c) {
                                    const auto at = [&](const ImageStrides& s, std::int64_t y,
                                                        std::int64_t x) {
                                      return static_cast<std::size_t>(n * s.of[0] + c * s.of[1] +
                                                                      y * s.of[2] + x * s.of[3]);
                                    };
                                    const std::size_t result =
                                        transposed ? at(to_strides, i, j) : at(to_strides, h, w);
                                    const std::size_t source = transposed ? at(from_strides, h, w)
                                                                          : at(from_strides, i, j);
                                    sums.add(result, weight_of(p.axis[0], h, down, i) *
                                                         weight_of(p.axis[1], w, across, j) *
                                                         v[1][source]);
                                  }
                          }
                        // of the sums, and three roundings of each weight
                        Numbers bound = sums.bound(t);
                        for (std::size_t i = 0; i < bound.size(); ++i)
                          bound[i] += 3 * rounding(t) * sums.size[i] + last(t, v[0][i]);
                        return std::vector<Numbers>{bound};
                      }});
    }
  return list;
}

}  // namespace agreement
