#include <braid/core/kernel_args/elementwise.hpp>
#include <braid/core/kernel_args/loss.hpp>
#include <braid/core/kernel_args/optim.hpp>
#include <braid/core/kernel_args/reduce.hpp>
#include <braid/core/kernel_args/softmax.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"
#if defined(BRAID_CUDA_SIMT)
#include "simt/stats.hpp"
#endif

// Operands that lie on addresses of 16 bytes are read and written in packs, others element by
// element: the bits are the same, for every shape and place.
using namespace kernel_test;

namespace {

/// Numbers of a tensor after call(where its elements are on the device), with the tensors `shift`
/// elements off an aligned address.
template <class F>
std::vector<unsigned char> result_at(const Buffer& x, const Buffer& y, Buffer out,
                                     std::int64_t shift, F call) {
  Buffer a = x, b = y;
  Twin ga(a, shift), gb(b, shift), gout(out, shift);
  call(ga.data(), gb.data(), gout.data());
  gout.fetch();
  return out.bytes();
}
template <class F> void check_places(const Buffer& x, const Buffer& y, const Buffer& out, F call) {
  const auto aligned = result_at(x, y, out, 0, call);
  for (const std::int64_t shift : {1, 3}) CHECK(result_at(x, y, out, shift, call) == aligned);
}

}  // namespace

TEST_CASE("cuda packs: rows of softmax and cross entropy", "[cuda_kernels][packs]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{9, 8},
                                  {3, 48},
                                  {3, 1024},
                                  {2, 1040},
                                  {2, 8192},
                                  {2, 8208},
                                  {1, 20000}}) {
      INFO(braid::name_of(t) << " " << rows << " x " << n);
      Buffer x(t, rows * n), dy(t, rows * n), out(t, rows * n),
          lse(t == DType::float64 ? t : DType::float32, rows), sum(t, 1), one(t, 1);
      x.pattern(1, 3), dy.pattern(2), one.put(0, 1.5);
      const auto width = n;
      const auto count = rows;
      for (const bool log : {false, true}) {
        check_places(x, dy, out, [&, t = t](void* px, void*, void* py) {
          gpu().softmax(
              braid::SoftmaxArgs{
                  .dtype = t, .log = log, .x = px, .y = py, .rows = count, .n = width},
              gpu_stream());
        });
        check_places(x, dy, out, [&, t = t](void* px, void* pdy, void* pdx) {
          gpu().softmax_backward(
              braid::SoftmaxBackwardArgs{
                  .dtype = t, .log = log, .y = px, .dy = pdy, .dx = pdx, .rows = count, .n = width},
              gpu_stream());
        });
      }
      const IndexTwin labels(std::vector<std::int64_t>(static_cast<std::size_t>(rows), n / 2));
      Twin gone(one);
      const auto forward = [&, t = t](void* px, void* plse, void* psum) {
        gpu().cross_entropy(braid::CrossEntropyArgs{.dtype = t,
                                                    .x = px,
                                                    .labels = labels.data(),
                                                    .label_stride = 1,
                                                    .lse = plse,
                                                    .sum = psum,
                                                    .scale = 0.25,
                                                    .rows = count,
                                                    .n = width},
                            gpu_stream());
      };
      check_places(x, lse, sum, forward);
      Twin gx(x), glse(lse), gsum(sum);
      forward(gx.data(), glse.data(), gsum.data());
      check_places(x, dy, out, [&, t = t](void* px, void*, void* pdx) {
        gpu().cross_entropy_backward(braid::CrossEntropyBackwardArgs{.dtype = t,
                                                                     .x = px,
                                                                     .labels = labels.data(),
                                                                     .label_stride = 1,
                                                                     .lse = glse.data(),
                                                                     .dy = gone.data(),
                                                                     .dx = pdx,
                                                                     .scale = 0.25,
                                                                     .rows = count,
                                                                     .n = width},
                                     gpu_stream());
      });
    }
}

TEST_CASE("cuda packs: sums and extremes of rows and columns", "[cuda_kernels][packs]") {
  NEEDS_GPU;
  using braid::ReduceOp;
  for (const DType t : kAll)
    for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{300, 16},
                                  {20, 48},
                                  {3, 4096},
                                  {130, 304},
                                  {2, 9008}})
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::argmin}) {
        INFO("op " << static_cast<int>(op) << " " << braid::name_of(t) << " " << rows << " x "
                   << n);
        const DType to = op == ReduceOp::argmin                          ? DType::int64
                         : op == ReduceOp::sum && !braid::is_floating(t) ? DType::int64
                                                                         : t;
        Buffer x(t, rows * n);
        x.pattern(3);
        const auto reduce = [&, t = t](const Loop& keep, const Loop& over) {
          check_places(x, x, Buffer(to, keep.n), [&](void* px, void*, void* pout) {
            gpu().reduce(braid::ReduceArgs{.op = op,
                                           .dtype = t,
                                           .out = pout,
                                           .x = px,
                                           .scale = 0.5,
                                           .keep = keep,
                                           .over = over},
                         gpu_stream());
          });
        };
        reduce(strided({rows}, {{1}, {n}}), strided({n}, {{0}, {1}}));
        reduce(strided({n}, {{1}, {1}}), strided({rows}, {{0}, {n}}));
      }
}

TEST_CASE("cuda packs: elementwise operands that start off an aligned address together",
          "[cuda_kernels][packs]") {
  NEEDS_GPU;
  for (const DType t : kAll)
    for (const std::int64_t n : {1, 2, 15, 16, 31, 33, 1029}) {
      INFO(braid::name_of(t) << " n " << n);
      Buffer x(t, n), y(t, n);
      x.pattern(1), y.pattern(2);
      for (const braid::BinaryOp op : {braid::BinaryOp::add, braid::BinaryOp::lt})
        check_places(x, y, Buffer(op == braid::BinaryOp::lt ? DType::bool_ : t, n),
                     [&, t = t, n = n](void* px, void* py, void* pout) {
                       gpu().binary(braid::BinaryArgs{.op = op,
                                                      .dtype = t,
                                                      .out = pout,
                                                      .a = px,
                                                      .b = py,
                                                      .scalar = 0,
                                                      .alpha = 1,
                                                      .loop = dense(n)},
                                    gpu_stream());
                     });
    }
}

TEST_CASE("cuda packs: optimizers, and hundreds of parameters in one launch",
          "[cuda_kernels][packs]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (const std::int64_t count : {1, 61, 601}) {
      std::vector<unsigned char> first;
      for (const std::int64_t shift : {0, 1}) {
        INFO(braid::name_of(t) << " items " << count << " shift " << shift);
        const std::int64_t each = count == 1 ? 4099 : 16;
        Buffer p(t, count * each), g(t, count * each), m(t, count * each), v(t, count * each);
        p.pattern(1), g.pattern(2), m.pattern(3);
        for (std::int64_t i = 0; i < v.size(); ++i) v.put(i, 0.01 * static_cast<double>(i % 7));
        Twin gp(p, shift), gg(g, shift), gm(m, shift), gv(v, shift);
        std::vector<braid::OptimItem> items;
        for (std::int64_t i = 0; i < count; ++i) {
          const auto at = [&, i](const Twin& twin) {
            return static_cast<char*>(twin.data()) +
                   static_cast<std::size_t>(i * each) * braid::size_of(p.dtype());
          };
          items.push_back({at(gp), at(gg), at(gm), at(gv), each});
        }
        braid::AdamArgs args{};
        args.dtype = t, args.items = items.data(), args.count = count;
        args.lr = 0.01, args.beta1 = 0.9, args.beta2 = 0.999, args.eps = 1e-8,
        args.weight_decay = 0.1, args.step = 3;
#if defined(BRAID_CUDA_SIMT)
        gpu_stream().synchronize();
        const auto before = braid::simt::stats().grids;
#endif
        gpu().adam(args, gpu_stream());
#if defined(BRAID_CUDA_SIMT)
        gpu_stream().synchronize();
        CHECK(braid::simt::stats().grids - before == (count <= 600 ? 1u : 2u));
#endif
        gp.fetch(), gm.fetch(), gv.fetch();
        auto bytes = p.bytes();
        for (const Buffer* b : {&m, &v}) {
          const auto more = b->bytes();
          bytes.insert(bytes.end(), more.begin(), more.end());
        }
        if (shift == 0) first = bytes;
        else CHECK(bytes == first);
      }
    }
}
