#include <braid/core/kernel_args/random.hpp>
#include <braid/core/philox.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"

using namespace kernel_test;
using braid::RandomArgs;
using braid::RandomKind;

namespace {

RandomArgs args_of(RandomKind kind, const Buffer& out, void* data, std::uint64_t seed,
                   std::uint64_t stream_number, double low, double high) {
  return RandomArgs{.kind = kind,
                    .dtype = out.dtype(),
                    .out = data,
                    .n = out.size(),
                    .seed = seed,
                    .stream = stream_number,
                    .low = low,
                    .high = high,
                    .ilow = -5,
                    .ihigh = 1000};
}

void run(RandomKind kind, Buffer& out, std::uint64_t seed, std::uint64_t stream_number,
         double low = 0, double high = 1, std::int64_t shift = 0) {
  Twin gout(out, shift);
  gpu().random(args_of(kind, out, gout.data(), seed, stream_number, low, high), gpu_stream());
  gout.fetch();
}

}  // namespace

TEST_CASE("cuda random: the same bits as on the CPU, for every kind, dtype, range and size",
          "[cuda_kernels][random]") {
  NEEDS_GPU;
  for (const auto& [seed, number] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 0}, {0xfedcba9876543210u, 0x0123456789abcdefu}})
    for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 17, 1025, 10003})
      for (const std::int64_t shift : {0, 1}) {
        for (const DType t : kFloats)
          for (const RandomKind kind : {RandomKind::uniform, RandomKind::normal})
            for (const auto& [low, high] :
                 {std::pair{0.0, 1.0}, {-1.0, 0.0}, {0.1, 0.7}, {1e4, 1.0001e4}, {3.0, 2.0}}) {
              INFO(braid::name_of(t) << " n " << n << " [" << low << ", " << high << ")");
              Buffer expected(t, n), out(t, n);
              kernels().random(args_of(kind, expected, expected.data(), seed, number, low, high),
                               stream());
              run(kind, out, seed, number, low, high, shift);
              CHECK(out.bytes() == expected.bytes());
            }
        Buffer expected(DType::int64, n), out(DType::int64, n);
        kernels().random(
            args_of(RandomKind::integers, expected, expected.data(), seed, number, 0, 0), stream());
        run(RandomKind::integers, out, seed, number);
        CHECK(out.bytes() == expected.bytes());
      }
}

// The numbers themselves, so that neither a compiler nor a change of code moves them unseen.
TEST_CASE("cuda random: first numbers of seed 0", "[cuda_kernels][random]") {
  NEEDS_GPU;
  Buffer u(DType::float32, 2), z(DType::float32, 4), z64(DType::float64, 2);
  run(RandomKind::uniform, u, 0, 0);
  CHECK((u[0] == 0x6627e8 * 0x1p-24 && u[1] == 0xe169c5 * 0x1p-24));
  run(RandomKind::normal, z, 0, 0);
  run(RandomKind::normal, z64, 0, 0);
  CHECK((z[0] == 0x1.fb7666p-1 && z[1] == -0x1.d96d6p-1 && z[2] == -0x1.3c373ep-1 &&
         z[3] == -0x1.eda364p-2));
  CHECK((z64[0] == -0x1.973628c131c02p-2 && z64[1] == 0x1.63083c830bea5p+0));
}

TEST_CASE("cuda random: refused dtypes", "[cuda_kernels][random]") {
  NEEDS_GPU;
  Buffer narrow(DType::int32, 4);
  CHECK_THROWS_WITH(run(RandomKind::uniform, narrow, 0, 0),
                    "random: expected a floating-point dtype, got int32");
  CHECK_THROWS_AS(run(RandomKind::integers, narrow, 0, 0), braid::DTypeError);
  CHECK_THROWS_WITH(run(RandomKind::integers, narrow, 0, 0),
                    "random: expected int64 for integers, got int32");
}
