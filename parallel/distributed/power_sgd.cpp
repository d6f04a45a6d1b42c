#include <algorithm>
#include <map>
#include <mutex>

#include <braid/core/autograd.hpp>
#include <braid/core/device.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/matmul.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/random.hpp>
#include <braid/parallel/distributed_hooks.hpp>

namespace braid::parallel {
namespace {

/// What is kept for one bucket.
struct OfBucket {
  std::int64_t numel = -1;
  std::int64_t steps = 0;
  Tensor error;           ///< what the last step has lost, flat
  std::vector<Tensor> q;  ///< the right factor of each compressed matrix
};

struct Matrix {
  Tensor m;           ///< a view of the buffer
  std::size_t index;  ///< of the gradient
  std::int64_t rank;
};

/// The norm of each column: [1, columns].
Tensor norms_of(const Tensor& p) { return sqrt((p * p).sum({0}, true)); }

/// Gram-Schmidt, in place. A column that depends on those before it, up to rounding, becomes zero.
void orthogonalise(const Tensor& p) {
  constexpr double kSmall = 1e-5;  // of the column's own norm
  const Tensor least = norms_of(p) * kSmall;
  for (std::int64_t c = 0; c < p.size(1); ++c) {
    const Tensor column = p.narrow(1, c, 1);
    for (int again = 0; c > 0 && again < 2; ++again) {  // the second time against rounding
      const Tensor before = p.narrow(1, 0, c);
      column.sub_(matmul(before, matmul(before.t(), column)));
    }
    const Tensor norm = norms_of(column);
    const Tensor kept = gt(norm, least.narrow(1, c, 1)).to(p.dtype());
    column.mul_(kept / (norm + (1 - kept)));
  }
}

/// Replaces the columns of zeros by random ones, the same on all ranks: a zero column would stay.
void fill_zero_columns(const Tensor& q, std::uint64_t seed) {
  const Tensor zero = eq(norms_of(q), 0).to(q.dtype());
  q.add_(zero * randn(q.shape(), {.device = q.device(), .dtype = q.dtype(), .seed = seed}));
}

/// Lays tensors out in one flat tensor, and returns their parts.
struct Packed {
  Tensor flat;
  std::vector<Tensor> parts;
};
Packed pack(const std::vector<Shape>& shapes, DType dtype, Device device) {
  std::int64_t numel = 0;
  for (const Shape& s : shapes) numel += s[0] * s[1];
  Packed packed{make_tensor({numel}, dtype, device), {}};
  std::int64_t at = 0;
  for (const Shape& s : shapes) {
    packed.parts.push_back(packed.flat.narrow(0, at, s[0] * s[1]).reshape(s));
    at += s[0] * s[1];
  }
  return packed;
}

}  // namespace

struct PowerSgd::State {
  PowerSgdOptions options;
  std::mutex mutex;
  std::map<std::size_t, std::shared_ptr<OfBucket>> buckets;
};

PowerSgd::PowerSgd(const PowerSgdOptions& options) : state_(std::make_shared<State>()) {
  if (options.matrix_approximation_rank < 1)
    throw ArgumentError(str("PowerSgd: expected matrix_approximation_rank >= 1, got ",
                            options.matrix_approximation_rank));
  if (options.start_powerSGD_iter < 0)
    throw ArgumentError(
        str("PowerSgd: expected start_powerSGD_iter >= 0, got ", options.start_powerSGD_iter));
  if (options.start_powerSGD_iter < 2 && (options.use_error_feedback || options.warm_start))
    throw ArgumentError(
        str("PowerSgd: expected start_powerSGD_iter >= 2 with use_error_feedback or warm_start, "
            "whose state begins after the buckets have been rebuilt, got ",
            options.start_powerSGD_iter));
  if (!(options.min_compression_rate > 0))
    throw ArgumentError(
        str("PowerSgd: expected min_compression_rate > 0, got ", options.min_compression_rate));
  state_->options = options;
}

HookResult PowerSgd::operator()(ProcessCommunicator& ranks, const GradientBucket& bucket) const {
  const NoGrad guard;
  const PowerSgdOptions& options = state_->options;
  const DType dtype = bucket.buffer.dtype();
  const Device device = bucket.buffer.device();
  std::shared_ptr<OfBucket> kept;
  {
    const std::lock_guard lock(state_->mutex);
    auto& of = state_->buckets[bucket.index];
    if (!of) of = std::make_shared<OfBucket>();
    kept = of;
  }
  // New, or the buckets have been rebuilt.
  const bool begins = kept->numel != bucket.buffer.numel();
  // `kept` changes when all ranks have accepted the step.
  const auto next = std::make_shared<OfBucket>();
  next->numel = bucket.buffer.numel();
  next->steps = kept->steps + 1;
  const auto accept = [kept, next] { *kept = std::move(*next); };
  if (kept->steps < options.start_powerSGD_iter) {
    HookResult plain = all_reduce_hook(ranks, bucket);
    plain.accepted = accept;
    return plain;
  }

  // The buffer of the bucket gets the result; the matrices are views of `input`.
  const Tensor input = bucket.buffer.clone();
  if (options.use_error_feedback && !begins && kept->error.defined()) input.add_(kept->error);
  std::vector<Matrix> matrices;
  std::vector<Tensor> whole;  // sent as they are
  for (std::size_t i = 0; i < bucket.gradients.size(); ++i) {
    const Tensor& g = bucket.gradients[i];
    const auto offset = (static_cast<const char*>(g.id()->data()) -
                         static_cast<const char*>(bucket.buffer.id()->data())) /
                        static_cast<std::ptrdiff_t>(size_of(dtype));
    const Tensor flat = input.narrow(0, offset, g.numel());
    const std::int64_t n = g.dim() > 1 ? g.size(0) : 0, m = n > 0 ? g.numel() / n : 0,
                       r = std::min({n, m, options.matrix_approximation_rank});
    if (r > 0 && static_cast<double>((n + m) * r) * options.min_compression_rate <
                     static_cast<double>(n * m))
      matrices.push_back({flat.reshape({n, m}), i, r});
    else if (g.numel() > 0) whole.push_back(flat.reshape({g.numel(), 1}));
  }
  std::vector<Shape> of_p, of_q, of_whole;
  for (const Matrix& x : matrices) {
    of_p.push_back({x.m.size(0), x.rank});
    of_q.push_back({x.m.size(1), x.rank});
  }
  for (const Tensor& t : whole) of_whole.push_back(t.shape());
  const Packed p = pack(of_p, dtype, device), q = pack(of_q, dtype, device),
               rest = pack(of_whole, dtype, device);
  for (std::size_t i = 0; i < whole.size(); ++i) rest.parts[i].copy_(whole[i]);
  const bool warm = options.warm_start && !begins && kept->q.size() == matrices.size();
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const Matrix& x = matrices[i];
    // the same on all ranks
    const Tensor factor = warm ? kept->q[i].clone()
                               : randn({x.m.size(1), x.rank},
                                       {.device = device,
                                        .dtype = dtype,
                                        .seed = options.seed + 1000003 * bucket.index + x.index});
    fill_zero_columns(factor, options.seed + static_cast<std::uint64_t>(next->steps));
    orthogonalise(factor);
    p.parts[i].copy_(matmul(x.m, factor));
  }
  // The three reductions and what is computed between them are queued at once.
  std::vector<Work> works;
  if (!whole.empty())
    works.push_back(ranks.start_all_reduce(rest.flat, ReduceOp::mean, "bucket, not compressed"));
  if (!matrices.empty()) {
    const auto wait = [device] {
      if (!device_context(device).host_memory) synchronize(device);
    };
    works.push_back(ranks.start_all_reduce(p.flat, ReduceOp::mean, "bucket, P"));
    works.push_back(ranks.start_function([matrices, p, q, wait] {
      const NoGrad no_grad;
      for (std::size_t i = 0; i < matrices.size(); ++i) {
        orthogonalise(p.parts[i]);
        q.parts[i].copy_(matmul(matrices[i].m.t(), p.parts[i]));
      }
      wait();
    }));
    works.push_back(ranks.start_all_reduce(q.flat, ReduceOp::mean, "bucket, Q"));
  }
  const Work last = works.empty() ? Work() : works.back();
  return {last,
          [works, next, input, matrices, whole, p, q, rest, feedback = options.use_error_feedback,
           buffer = bucket.buffer, gradients = bucket.gradients]() -> Tensor {
            const NoGrad no_grad;
            for (const Work& work : works) work.wait();
            std::size_t w = 0, x = 0;
            for (std::size_t i = 0; i < gradients.size(); ++i) {
              const Tensor& g = gradients[i];
              if (x < matrices.size() && matrices[x].index == i) {
                const Tensor approximation = matmul(p.parts[x], q.parts[x].t());
                g.copy_(approximation.reshape(g.shape()));
                ++x;
              } else if (g.numel() > 0) {
                g.copy_(rest.parts[w++].reshape(g.shape()));
              }
            }
            next->q = q.parts;
            if (feedback) {
              // what was sent as it is, or compressed, is not lost; gaps between gradients are zero
              input.sub_(buffer);
              for (const Tensor& flat : whole) flat.zero_();
              next->error = input;
            }
            return buffer;
          },
          accept};
}

}  // namespace braid::parallel
