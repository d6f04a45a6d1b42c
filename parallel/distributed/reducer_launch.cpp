// The collectives of a backward: one for each bucket, then the vote.
#include <algorithm>
#include <mutex>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "distributed/exchange.hpp"
#include "distributed/reducer.hpp"
#include "primitives/broadcast.hpp"

namespace braid::parallel::distributed {

void Reducer::launch(std::size_t b) {
  try {
    start(b);
  } catch (const CommError&) {
    throw;
  } catch (...) {  // the others wait for the bucket, and a hook may have any number of collectives
    ranks_->abort_with(str(options_.hook ? "the hook of bucket " : "bucket ", b,
                           options_.hook ? " has failed" : " could not be sent", " on rank ",
                           ranks_->rank(), ": ", text_of(std::current_exception())));
    throw;
  }
}

void Reducer::start(std::size_t b) {
  const Bucket& bucket = buckets_[b];
  const bool last = b + 1 == buckets_.size();
  if (options_.deterministic) return launch_tree(b);
  const Tensor gradients = bucket.buffer.narrow(0, 0, bucket.plan.numel);
  // Inside of join. The mean, of a hook too, divides by all ranks.
  if (divisor_ != ranks_->size())
    gradients.mul_(static_cast<double>(ranks_->size()) / static_cast<double>(divisor_));
  if (options_.hook) {
    started_[b] = options_.hook(*ranks_, {b, last, gradients, bucket.views});
    return;
  }
  const bool carries = last && vote_rides();
  started_[b].work = ranks_->start_all_reduce(carries ? bucket.buffer : gradients, ReduceOp::mean,
                                              str("bucket ", b));
}

/// Sends part r of this rank's sums of blocks to rank r, which completes the tree for its part;
/// then gathers the parts.
void Reducer::launch_tree(std::size_t b) {
  const Bucket& bucket = buckets_[b];
  const std::int64_t ranks = ranks_->size(), numel = bucket.plan.numel, each = numel / ranks,
                     blocks = trees_[b].size(0), all = share_.blocks_of_all();
  const Tensor result = bucket.buffer.narrow(0, 0, numel);
  // The division by all rows at once, the power of two of seed_factor() aside.
  double scale = 1;
  while (scale * 2 <= static_cast<double>(share_.rows)) scale *= 2;
  const double divisor = static_cast<double>(share_.rows) / scale;
  if (ranks == 1) {
    result.copy_(trees_[b].reshape({numel})).div_(divisor);
    return;
  }
  const Tensor sent = trees_[b].reshape({blocks, ranks, each}).transpose(0, 1).contiguous(),
               got = make_tensor({all, each}, bucket.plan.dtype, result.device()),
               part = make_tensor({each}, bucket.plan.dtype, result.device());
  std::vector<std::int64_t> in_counts(static_cast<std::size_t>(ranks), blocks * each), out_counts;
  for (int r = 0; r < ranks; ++r)
    out_counts.push_back(static_cast<std::int64_t>(share_.blocks(r).size()) * each);
  const Work exchanged = ranks_->start_all_to_all(got, sent, std::move(out_counts),
                                                  std::move(in_counts), str("bucket ", b));
  const Work added = ranks_->start_function([got, part, share = share_, divisor] {
    const NoGrad guard;
    part.copy_(finish_tree(share, [&](std::int64_t i) { return got[i]; })).div_(divisor);
    if (!device_context(part.device()).host_memory) synchronize(part.device());
  });
  started_[b].work = ranks_->start_all_gather(result, part, str("bucket ", b));
  // The first of them that fails has the reason.
  started_[b].result = [exchanged, added, result] {
    exchanged.wait();
    added.wait();
    return result;
  };
}

void Reducer::wait_for_buckets() {
  std::exception_ptr first;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    try {
      started_[b].work.wait();
      if (!started_[b].result) continue;
      const Tensor reduced = started_[b].result();
      const Tensor gradients = buckets_[b].buffer.narrow(0, 0, buckets_[b].plan.numel);
      if (!reduced.defined() || reduced.numel() != gradients.numel())
        throw ShapeError(str("the hook of bucket ", b, ": expected a result of ", gradients.numel(),
                             " elements, got ",
                             reduced.defined() ? str("one of shape ", reduced.shape())
                                               : std::string("an undefined tensor")));
      if (reduced.id()->data() != gradients.id()->data())
        gradients.copy_(reduced.reshape(gradients.shape()));
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

std::vector<std::string> Reducer::end_iteration(std::string complaint) {
  const std::size_t n = parameters_.size();
  const bool rides = vote_rides();
  while (next_ < buckets_.size()) {
    const Bucket& bucket = buckets_[next_];
    if (next_ + 1 == buckets_.size())
      bucket.buffer.narrow(0, bucket.plan.numel, 1).fill_(complaint.empty() ? 0 : 1);
    launch(next_++);
  }
  // What a hook or the tree does on this rank at the end can fail here only: it is voted on too.
  const bool works_here = options_.hook || options_.deterministic;
  if (works_here) {
    try {
      wait_for_buckets();
    } catch (const CommError&) {
      throw;
    } catch (...) {
      if (complaint.empty()) complaint = str("f", text_of(std::current_exception()));
    }
  }
  Tensor votes;
  Work voted;
  if (!rides) {
    const std::size_t counted = counts_uses() ? n : 0;
    votes = make_tensor({static_cast<std::int64_t>(counted) + 1}, DType::int32, Device());
    auto* const numbers = votes.data<std::int32_t>();
    for (std::size_t k = 0; k < counted; ++k) numbers[k] = shadows_ ? 0 : used_[k];
    numbers[counted] = complaint.empty() ? 0 : 1;
    voted = ranks_->start_all_reduce(votes, ReduceOp::sum, "vote");
  }
  if (!works_here) wait_for_buckets();
  bool failed = false;
  if (rides) {
    const Bucket& last = buckets_.back();
    failed = last.buffer.narrow(0, last.plan.numel, 1).item<double>() != 0;
  } else {
    voted.wait();
    const auto* const numbers = votes.data<const std::int32_t>();
    failed = numbers[votes.numel() - 1] != 0;
    if (counts_uses() && !failed) {
      used_anywhere_.assign(n, 0);
      for (std::size_t k = 0; k < n; ++k) used_anywhere_[k] = numbers[k] != 0;
    }
  }
  if (!failed) return {};
  return exchange_texts(*ranks_, complaint, "reasons of a failed backward");
}

bool Reducer::take_parts(const VirtualShare& share, std::span<const Tensor> which,
                         std::span<const Tensor> parts, std::span<const Device> devices) {
  const std::lock_guard lock(mutex_);
  if (!active_) return false;
  const NoGrad guard;
  const std::size_t count = which.size(), replicas = devices.size();
  std::vector<std::size_t> numbers;
  for (const Tensor& p : which) {
    const auto at = numbers_.find(p.id());
    if (at == numbers_.end())
      throw InternalError("take_parts: expected the parameters of the model, got another tensor");
    numbers.push_back(at->second);
    // The sums of two forwards would be joined in an order that depends on the number of ranks.
    if (!(share == share_) || taken_[at->second])
      throw AutogradError(
          "backward: virtual_replicas: expected the backward of one forward, the last one, got "
          "that of several or of an earlier one; run backward after each forward, which adds up "
          "gradients too");
  }
  for (const std::size_t k : numbers) taken_[k] = 1;
  // A replica without a gradient counts as zeros, as one on another rank does.
  std::vector<Tensor> dense(parts.begin(), parts.end());
  for (std::size_t k = 0; k < count; ++k) {
    bool any = false;
    for (std::size_t i = 0; i < replicas; ++i) any = any || dense[i * count + k].defined();
    if (any) used_[numbers[k]] = 1;
    for (std::size_t i = 0; any && i < replicas; ++i)
      if (Tensor& part = dense[i * count + k]; !part.defined())
        part = zeros(which[k].shape(), {.device = devices[i], .dtype = which[k].dtype()});
  }
  const std::int64_t first = share_.mine().begin;
  const std::vector<Interval> blocks = share_.blocks();
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const auto begin = static_cast<std::size_t>(blocks[b].begin - first),
               end = static_cast<std::size_t>(blocks[b].end - first);
    const std::vector<Tensor> sums =
        reduce_tensors(std::span(dense).subspan(begin * count, (end - begin) * count),
                       devices.subspan(begin, end - begin), true);
    for (std::size_t k = 0; k < count; ++k) {
      if (!sums[k].defined()) continue;
      const Place place = places_[numbers[k]];
      const BucketPlan& plan = buckets_[place.bucket].plan;
      trees_[place.bucket]
          .narrow(0, static_cast<std::int64_t>(b), 1)
          .narrow(1, plan.offsets[place.at], which[k].numel())
          .copy_(sums[k].reshape({1, which[k].numel()}));
    }
  }
  return true;
}

}  // namespace braid::parallel::distributed
