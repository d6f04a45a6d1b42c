#include "cpu/errors.hpp"
#include "cpu/simd/image.hpp"

// Max pooling, its gradient, and the gradient of that. The gradient is gathered: each element of dx
// iterates over the outputs whose windows contain it. So one thread writes it once, and its sum has
// a fixed order.
namespace braid::cpu::BRAID_ISA {
namespace {

template <class E, class P> void max_pool_of(const MaxPoolArgs& args, Stream& stream) {
  using T = typename E::T;
  const Axis &down = args.axis[0], &across = args.axis[1];
  const std::int64_t step_h = down.kind == Axis::Kind::window ? down.dilation : 1,
                     step_w = across.kind == Axis::Kind::window ? across.dilation : 1;
  auto* const columns =
      static_cast<Span*>(scratch(static_cast<std::size_t>(across.out) * sizeof(Span)));
  for (std::int64_t w = 0; w < across.out; ++w) columns[w] = seen_by(across, w);
  for_image_rows(
      args.n, down.out, across.out * args.c, stream, [&](std::int64_t n, std::int64_t h) {
        const Span rows = seen_by(down, h);
        for (std::int64_t w = 0; w < across.out; ++w) {
          const std::int64_t to = place_of(args.out, n, h, w), columns_first = columns[w].first,
                             columns_last = columns[w].last;
          for_channels<P>(args.c, [&](std::int64_t c, int k) {
            const T* const x =
                static_cast<const T*>(args.x) + place_of(args.in, n, 0, 0) + c * args.in.of[1];
            auto best = P::number(-__builtin_huge_val());
            auto index = P::index(rows.first * across.in + columns_first);
            for (std::int64_t i = rows.first; i < rows.last; i += step_h)
              for (std::int64_t j = columns_first; j < columns_last; j += step_w) {
                const auto v = P::load(x + i * args.in.of[2] + j * args.in.of[3], k);
                const auto above = (v > best) | (v != v);
                best = above ? v : best;
                index = above ? P::index(i * across.in + j) : index;
              }
            P::store(static_cast<T*>(args.y) + to + c * args.out.of[1], best, k);
            P::store_index(args.index + to + c * args.out.of[1], index, k);
          });
        }
      });
}

template <class E, class P>
void max_pool_backward_of(const MaxPoolBackwardArgs& args, Stream& stream) {
  using T = typename E::T;
  const Axis &down = args.axis[0], &across = args.axis[1];
  auto* const columns =
      static_cast<Span*>(scratch(static_cast<std::size_t>(across.in) * sizeof(Span)));
  for (std::int64_t w = 0; w < across.in; ++w) columns[w] = that_see(across, w);
  for_image_rows(args.n, down.in, across.in * args.c, stream, [&](std::int64_t n, std::int64_t h) {
    const Span rows = that_see(down, h);
    for (std::int64_t w = 0; w < across.in; ++w) {
      const Span in_row = columns[w];
      for_channels<P>(args.c, [&](std::int64_t c, int k) {
        const auto here = P::index(h * across.in + w);
        const auto none = P::number(0);
        auto sum = none;
        for (std::int64_t i = rows.first; i < rows.last; ++i)
          for (std::int64_t j = in_row.first; j < in_row.last; ++j) {
            const std::int64_t from = place_of(args.out, n, i, j) + c * args.out.of[1];
            sum += P::load_index(args.index + from, k) == here
                       ? P::load(static_cast<const T*>(args.dy) + from, k)
                       : none;
          }
        P::store(static_cast<T*>(args.dx) + place_of(args.in, n, h, w) + c * args.in.of[1], sum, k);
      });
    }
  });
}

template <class T> void max_pool_pick_of(const MaxPoolPickArgs& args, Stream& stream) {
  const std::int64_t width = args.axis[1].in;
  for_image_rows(args.n, args.axis[0].out, args.axis[1].out * args.c, stream,
                 [&](std::int64_t n, std::int64_t h) {
                   for (std::int64_t w = 0; w < args.axis[1].out; ++w)
                     for (std::int64_t c = 0; c < args.c; ++c) {
                       const std::int64_t to = place_of(args.out, n, h, w) + c * args.out.of[1],
                                          i = args.index[to];
                       static_cast<T*>(args.y)[to] = static_cast<const T*>(
                           args.x)[place_of(args.in, n, i / width, i % width) + c * args.in.of[1]];
                     }
                 });
}

void check(const char* op, DType dtype) {
  if (dtype < DType::float16) fail_dtype(op, "a floating-point dtype", dtype);
}

}  // namespace

void max_pool(const MaxPoolArgs& args, Stream& stream) {
  check("max_pool", args.dtype);
  if (args.n <= 0 || args.c <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    with_channels<E>(args.in, args.out, [&]<class P>() { max_pool_of<E, P>(args, stream); });
    return true;
  });
}

void max_pool_backward(const MaxPoolBackwardArgs& args, Stream& stream) {
  check("max_pool_backward", args.dtype);
  if (args.n <= 0 || args.c <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    with_channels<E>(args.in, args.out,
                     [&]<class P>() { max_pool_backward_of<E, P>(args, stream); });
    return true;
  });
}

void max_pool_pick(const MaxPoolPickArgs& args, Stream& stream) {
  check("max_pool_pick", args.dtype);
  if (args.n <= 0 || args.c <= 0) return;
  const int bytes = element_bytes(args.dtype);  // only bits are moved
  if (bytes == 2) max_pool_pick_of<std::uint16_t>(args, stream);
  else if (bytes == 4) max_pool_pick_of<std::uint32_t>(args, stream);
  else max_pool_pick_of<std::uint64_t>(args, stream);
}

}  // namespace braid::cpu::BRAID_ISA
