#include <braid/core/kernel_args/elementwise.hpp>
#include <braid/core/kernel_args/loss.hpp>
#include <braid/core/kernel_args/optim.hpp>
#include <braid/core/kernel_args/reduce.hpp>
#include <braid/core/kernel_args/softmax.hpp>

#include "kernels/kernel_support.hpp"
#if defined(BRAID_CUDA_SIMT)
#include "simt/stats.hpp"
#endif

// Operands that lie on addresses of 16 bytes are read and written in packs, others element by
// element: the bits are the same, for every shape and place.
using namespace kernel_test;

namespace {

/// `call` with tensors `shift` elements off an aligned address gives the bits of the aligned ones.
using Call = std::function<void(void* x, void* y, void* out)>;
void check_places(DType t, std::int64_t n, DType to, std::int64_t results, const Call& call) {
  std::vector<unsigned char> aligned;
  for (const std::int64_t shift : {0, 1, 3}) {
    Buffer x(t, n, shift), y(t, n, shift), out(to, results, shift);
    x.pattern(1, 3), y.pattern(2);
    call(x.data(), y.data(), out.data());
    if (shift == 0) aligned = out.bytes();
    else CHECK(out.bytes() == aligned);
  }
}

}  // namespace

TEST_CASE("cuda packs: rows of softmax and cross entropy", "[cuda_kernels][packs]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const auto& shape : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {9, 8}, {3, 48}, {3, 1024}, {2, 1040}, {2, 8192}, {2, 8208}, {1, 20000}}) {
      const auto rows = shape.first, n = shape.second;
      INFO(braid::name_of(t) << " " << rows << " x " << n);
      for (const bool log : {false, true}) {
        check_places(t, rows * n, t, rows * n, [&, t = t](void* x, void*, void* y) {
          kernels().softmax({t, log, x, y, rows, n}, stream());
        });
        check_places(t, rows * n, t, rows * n, [&, t = t](void* y, void* dy, void* dx) {
          kernels().softmax_backward({t, log, y, dy, dx, rows, n}, stream());
        });
      }
      const DType of_lse = t == DType::float64 ? t : DType::float32;
      Buffer labels(DType::int64, rows), lse(of_lse, rows), sum(t, 1), one(t, 1);
      labels.fill(static_cast<double>(n / 2)), one.fill(1.5);
      check_places(t, rows * n, of_lse, rows, [&, t = t](void* x, void*, void* to) {
        kernels().cross_entropy({t, x, labels.integers(), 1, to, sum.data(), 0.25, rows, n},
                                stream());
      });
      check_places(t, rows * n, t, 1, [&, t = t](void* x, void*, void* to) {
        kernels().cross_entropy({t, x, labels.integers(), 1, lse.data(), to, 0.25, rows, n},
                                stream());
      });
      check_places(t, rows * n, t, rows * n, [&, t = t](void* x, void*, void* dx) {
        kernels().cross_entropy_backward(
            {t, x, labels.integers(), 1, lse.data(), one.data(), dx, 0.25, rows, n}, stream());
      });
    }
}

TEST_CASE("cuda packs: sums and extremes of rows and columns", "[cuda_kernels][packs]") {
  NEEDS_DEVICE;
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
        const auto reduce = [&, t = t](const Loop& keep, const Loop& over) {
          check_places(t, keep.n * over.n, to, keep.n, [&](void* x, void*, void* out) {
            kernels().reduce({op, t, out, x, 0.5, keep, over}, stream());
          });
        };
        reduce(strided({rows}, {{1}, {n}}), strided({n}, {{0}, {1}}));
        reduce(strided({n}, {{1}, {1}}), strided({rows}, {{0}, {n}}));
      }
}

TEST_CASE("cuda packs: elementwise operands that start off an aligned address together",
          "[cuda_kernels][packs]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const std::int64_t n : {1, 2, 15, 16, 31, 33, 1029}) {
      INFO(braid::name_of(t) << " n " << n);
      for (const braid::BinaryOp op : {braid::BinaryOp::add, braid::BinaryOp::lt})
        check_places(t, n, op == braid::BinaryOp::lt ? DType::bool_ : t, n,
                     [&, t = t, n = n](void* x, void* y, void* out) {
                       kernels().binary({op, t, out, x, y, 0, 1, dense(n)}, stream());
                     });
    }
}

TEST_CASE("cuda packs: optimizers, and hundreds of parameters in one launch",
          "[cuda_kernels][packs]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const std::int64_t count : {1, 61, 601}) {
      std::vector<unsigned char> first;
      for (const std::int64_t shift : {0, 1}) {
        INFO(braid::name_of(t) << " items " << count << " shift " << shift);
        const std::int64_t each = count == 1 ? 4099 : 16;
        std::vector<Buffer> states;  // p, g, m, v
        for (std::uint32_t seed = 1; seed < 5; ++seed)
          states.emplace_back(t, count * each, shift).pattern(seed);
        for (std::int64_t i = 0; i < count * each; ++i)
          states[3].put(i, 0.01 * static_cast<double>(i % 7));
        std::vector<braid::OptimItem> items;
        for (std::int64_t i = 0; i < count; ++i) {
          const auto at = [&, i](std::size_t k) {
            return static_cast<char*>(states[k].data()) +
                   static_cast<std::size_t>(i * each) * braid::size_of(t);
          };
          items.push_back({at(0), at(1), at(2), at(3), each});
        }
        braid::AdamArgs args{};
        args.dtype = t, args.items = items.data(), args.count = count;
        args.lr = 0.01, args.beta1 = 0.9, args.beta2 = 0.999, args.eps = 1e-8,
        args.weight_decay = 0.1, args.step = 3;
#if defined(BRAID_CUDA_SIMT)
        stream().synchronize();
        const auto before = braid::simt::stats().grids;
#endif
        kernels().adam(args, stream());
#if defined(BRAID_CUDA_SIMT)
        stream().synchronize();
        CHECK(braid::simt::stats().grids - before == (count <= 600 ? 1u : 2u));
#endif
        std::vector<unsigned char> bytes;
        for (const Buffer& state : states) {
          const auto more = state.bytes();
          bytes.insert(bytes.end(), more.begin(), more.end());
        }
        if (shift == 0) first = bytes;
        else CHECK(bytes == first);
      }
    }
}
