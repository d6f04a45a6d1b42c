#include <braid/core/internal/kernel_args/conv.hpp>

#include "kernels/calls.hpp"

namespace agreement {
namespace {

using braid::ConvShape;

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
    for (const bool bias : {false, true})
      list.push_back({text(bias ? "conv_backward_data with bias" : "conv_backward_data", s),
                      {out(random(inputs(s), 1)), in(random(outputs(s), 2)),
                       in(random(weights(s), 3)), in(random(s.in, 4))},
                      [=](const Place& p) {
                        const void* const plus = bias ? p[3] : nullptr;
                        p.table.conv_backward_data({p.t, p[1], p[2], plus, p[0], s}, p.stream);
                      },
                      [=](DType t, const Values& v) {
                        Sums sums(v[0].size());
                        for_products(s, [&](std::int64_t x, std::int64_t w, std::int64_t y) {
                          sums.add(x, v[1][y] * v[2][w]);
                        });
                        for (std::int64_t x = 0; bias && x < v[0].size(); ++x)
                          sums.add(x, v[3][x % s.in]);
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

}  // namespace agreement
