// Compares the steps of the ladder with double loops in float64, at sizes that are no multiples of
// their tiles, and at addresses that are not aligned to 16 bytes.
#include <cstring>

#include "cuda/cuda_support.hpp"
#include "ladder/trial.hpp"

namespace braid::ladder {
namespace {

struct Size {
  int m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},      {33, 1, 7},     {1, 33, 64},  {130, 67, 45},
                           {128, 128, 16}, {129, 132, 36}, {36, 260, 17}};
struct Rows {
  int rows, n;
};
constexpr Rows kRows[] = {{1, 1},   {65, 1},   {9, 33},   {70, 67},  {5, 256},
                          {3, 512}, {2, 1000}, {3, 1024}, {3, 1025}, {2, 2052}};

}  // namespace

TEST_CASE("ladder: every step of sgemm agrees with float64", "[sgemm]") {
  NEEDS_DEVICES(1);
  for (const Size& size : kSizes)
    for (const int shift : {0, 1}) {
      SgemmTrial trial(size.m, size.n, size.k, shift);
      std::vector<float> first;
      for (const Step<Sgemm>& step : kSgemmSteps)
        for (const bool large : {false, true}) {
          INFO(trial.text() << ", shift " << shift << ", " << step.name
                            << (large ? ", tiles of a large product" : ""));
          CHECK(trial.error(step, large) <= 1);
#if SIMT_EMULATED
          // Each element is one sum in the order of k, independent of the tile. In the emulation no
          // compiler fuses a product with a sum.
          const std::vector<float> c = trial.result();
          if (first.empty()) first = c;
          CHECK(std::memcmp(first.data(), c.data(), c.size() * sizeof(float)) == 0);
#endif
          if (&step != &kSgemmSteps[5]) break;  // only our kernel has a plan
        }
    }
}

TEST_CASE("ladder: every step on tensor cores agrees with float64", "[tensor]") {
  NEEDS_DEVICES(1);
  for (const Size& size :
       {Size{1, 1, 1}, {33, 2, 7}, {130, 67, 45}, {128, 128, 16}, {129, 136, 72}})
    for (const Use use : {Use::forward, Use::input, Use::weight})
      for (const int shift : {0, 1}) {
        TensorTrial trial(size.m, size.n, size.k, use, shift);
        for (const Step<Product>& step : kTensorSteps) {
          if (use != Use::forward && &step < &kTensorSteps[5]) continue;
          INFO(trial.text() << ", shift " << shift << ", " << step.name);
          CHECK(trial.error(step) <= 1);
          CHECK(trial.error(step, true) <= 1);
        }
      }
}

TEST_CASE("ladder: every step of softmax agrees with float64", "[softmax]") {
  NEEDS_DEVICES(1);
  for (const Rows& size : kRows)
    for (const int shift : {0, 1})
      // exp(60 + 60) is larger than float's maximum
      for (const auto& [scale, masked] : {std::pair{4.0, false}, {4.0, true}, {60.0, false}}) {
        SoftmaxTrial trial(size.rows, size.n, scale, masked, shift);
        for (const Step<Softmax>& step : kSoftmaxSteps) {
          INFO(trial.text() << ", shift " << shift << ", scale " << scale
                            << (masked ? ", masked, " : ", ") << step.name);
          CHECK(trial.error(step) <= 1);
        }
      }
}

TEST_CASE("ladder: the comparison finds wrong elements and writes outside", "[ladder]") {
  NEEDS_DEVICES(1);
  SgemmTrial trial(20, 9, 5);
  const Step<Sgemm> nothing{"nothing", [](const Sgemm&, Stream&) {}};
  CHECK_FALSE(trial.error(nothing) <= 1);
  const Step<Sgemm> one_short{"a row short", [](const Sgemm& g, Stream& s) {
                                Sgemm less = g;
                                less.m = g.m - 1;
                                sgemm_coalesced(less, s);
                              }};
  CHECK_FALSE(trial.error(one_short) <= 1);
  const Step<Sgemm> turned{"turned", [](const Sgemm& g, Stream& s) {
                             Sgemm other = g;
                             other.a = g.b, other.b = g.a, other.m = g.n, other.n = g.m;
                             sgemm_coalesced(other, s);
                           }};
  CHECK_FALSE(trial.error(turned) <= 1);
  const Step<Sgemm> outside{"outside", [](const Sgemm& g, Stream& s) {
                              Sgemm moved = g;
                              moved.c = g.c - 1;
                              sgemm_coalesced(g, s);
                              sgemm_coalesced(moved, s);
                            }};
  CHECK_THROWS_AS(trial.error(outside), braid::Error);
  TensorTrial halves(20, 9, 5, Use::input);
  const Step<Product> untransposed{"as if forward", [](const Product& g, Stream& s) {
                                     Product other = g;
                                     other.use = Use::forward;
                                     tensor_backward(other, s);
                                   }};
  CHECK_FALSE(halves.error(untransposed) <= 1);
  SoftmaxTrial rows(4, 6);
  const Step<Softmax> one_less{"one less", [](const Softmax& x, Stream& s) {
                                 Softmax less = x;
                                 less.rows = x.rows - 1;
                                 softmax_shuffles(less, s);
                               }};
  CHECK_FALSE(rows.error(one_less) <= 1);
}

}  // namespace braid::ladder
