#include "distributed/reducer.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/own_elements.hpp>
#include <braid/core/ops/create.hpp>

#include "distributed/exchange.hpp"

namespace braid::parallel::distributed {

Reducer::Reducer(std::shared_ptr<ProcessCommunicator> ranks, std::vector<Tensor> parameters,
                 std::vector<std::string> names, ReducerOptions options)
    : ranks_(std::move(ranks)),
      parameters_(std::move(parameters)),
      names_(std::move(names)),
      options_(std::move(options)),
      divisor_(ranks_->size()) {
  const std::size_t n = parameters_.size();
  for (std::size_t k = 0; k < n; ++k) numbers_[parameters_[k].id()] = k;
  used_.assign(n, 0);
  known_.assign(n, 0);
  late_.assign(n, 0);
  std::vector<std::size_t> reverse(n);
  std::iota(reverse.rbegin(), reverse.rend(), std::size_t{0});
  // One bucket for each dtype until the order of arrival is known. With find_unused_parameters the
  // order may change from step to step.
  const bool rebuilds = !options_.find_unused_parameters || options_.static_graph;
  const std::size_t all = ~std::size_t{0};
  build(plan_buckets(parameters_, reverse, rebuilds ? all : options_.first_bucket_bytes,
                     rebuilds ? all : options_.bucket_bytes));
}

Reducer::~Reducer() {
  for (const Tensor& p : parameters_) remove_gradient_sink(p, this);
}

void Reducer::attach(const std::shared_ptr<Reducer>& reducer) {
  for (std::size_t k = 0; k < reducer->parameters_.size(); ++k) {
    const Tensor& p = reducer->parameters_[k];
    if (const auto other = std::dynamic_pointer_cast<Reducer>(gradient_sink(p)))
      other->replaced_ = true;
    set_gradient_sink(p, reducer, k);
  }
}

std::vector<std::vector<std::size_t>> Reducer::buckets() const {
  std::vector<std::vector<std::size_t>> lists;
  for (const Bucket& b : buckets_) lists.push_back(b.plan.parameters);
  return lists;
}

bool Reducer::fits() const {
  for (std::size_t k = 0; k < parameters_.size(); ++k)
    if (parameters_[k].device() != view(k).device() || parameters_[k].dtype() != view(k).dtype())
      return false;
  return true;
}

void Reducer::build(const std::vector<BucketPlan>& plans) {
  std::vector<Bucket> made;
  std::vector<Place> places(parameters_.size());
  for (std::size_t b = 0; b < plans.size(); ++b) {
    BucketPlan plan = plans[b];
    if (options_.deterministic) {  // parts of equal length for the ranks
      const std::int64_t n = ranks_->size();
      plan.numel = (plan.numel + n - 1) / n * n;
    }
    made.push_back(make_bucket(std::move(plan), parameters_, 1));
    for (std::size_t i = 0; i < made.back().plan.parameters.size(); ++i)
      places[made.back().plan.parameters[i]] = {b, i};
  }
  const NoGrad guard;
  for (std::size_t k = 0; !buckets_.empty() && k < parameters_.size(); ++k) {
    const Tensor old = parameters_[k].grad();
    if (!old.defined() || old.id() != view(k).id()) continue;
    const Tensor& moved = made[places[k].bucket].views[places[k].at];
    moved.copy_(old);
    parameters_[k].set_grad(moved);
  }
  buckets_ = std::move(made);
  places_ = std::move(places);
}

void Reducer::rebuild(int root) {
  const std::size_t n = parameters_.size();
  std::vector<std::size_t> order = arrivals_;
  std::vector<char> there(n);
  for (const std::size_t k : order) there[k] = 1;
  for (std::size_t k = n; k-- > 0;)
    if (!there[k]) order.push_back(k);
  const Tensor list = make_tensor({static_cast<std::int64_t>(n)}, DType::int64, Device());
  auto* const numbers = list.data<std::int64_t>();
  for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<std::int64_t>(order[i]);
  ranks_->start_broadcast(list, root, "order of the buckets").wait();
  for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<std::size_t>(numbers[i]);
  build(plan_buckets(parameters_, order, options_.first_bucket_bytes, options_.bucket_bytes));
  rebuild_due_ = false;
  rebuilt_ = true;
}

void Reducer::set_reduces(bool on) { reduces_ = on; }
void Reducer::set_divisor(int ranks) { divisor_ = ranks; }
void Reducer::set_delayed(bool on) { delayed_ = on; }
void Reducer::set_share(const VirtualShare& share) { share_ = share; }

double Reducer::seed_factor() const noexcept {
  if (!options_.deterministic) return 1;
  // The rows of this rank, times a power of two: exact. The mean over them divides by their number,
  // so that each row's gradient does not depend on how many rows are on its rank.
  const Interval mine = share_.mine();
  double scale = 1;
  while (scale * 2 <= static_cast<double>(share_.rows)) scale *= 2;
  return static_cast<double>(share_.row(mine.end) - share_.row(mine.begin)) / scale;
}

void Reducer::start_iteration() {
  active_ = true;
  next_ = 0;
  complaint_.clear();
  arrivals_.clear();
  received_.assign(parameters_.size(), {});
  fresh_.assign(parameters_.size(), {});
  taken_.assign(parameters_.size(), 0);
  started_.assign(buckets_.size(), {});
  for (Bucket& b : buckets_) b.pending = b.plan.parameters.size();
  trees_.clear();
  if (!options_.deterministic) return;
  const auto blocks = static_cast<std::int64_t>(share_.blocks().size());
  for (const Bucket& b : buckets_)
    trees_.push_back(
        zeros({blocks, b.plan.numel}, {.device = b.buffer.device(), .dtype = b.plan.dtype}));
}

bool Reducer::begin(std::span<const std::size_t> leaves) {
  const std::lock_guard lock(mutex_);
  const NoGrad guard;
  if (active_) return begin_inside(leaves);
  try {
    return begin_locked(leaves);
  } catch (...) {
    if (active_) fail_locked(std::current_exception());
    throw;
  }
}

/// A backward inside of one.
bool Reducer::begin_inside(std::span<const std::size_t> leaves) {
  if (!options_.static_graph)
    throw AutogradError(
        "backward: expected no backward inside of a backward over a DistributedDataParallel, got "
        "one; static_graph = true allows it");
  for (const std::size_t k : leaves) used_[k] = late_[k] = 1;
  return false;
}

bool Reducer::begin_locked(std::span<const std::size_t> leaves) {
  if (!reduces_) {
    for (const std::size_t k : leaves) used_[k] = 1;
    return false;
  }
  if (options_.deterministic && share_.replicas == 0)
    throw AutogradError(
        "backward: expected a forward of the DistributedDataParallel with gradients before, got "
        "none");
  start_iteration();
  reached_.assign(parameters_.size(), 0);
  for (const std::size_t k : leaves) reached_[k] = 1;
  complaint_ = check_graph();
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    if (reached_[k] || (options_.static_graph && (!graph_known_ || late_[k]))) continue;
    contribute(k, {});
    set_ready(k);
  }
  launch_complete();
  return true;
}

/// What is wrong with the parameters that this backward reaches.
std::string Reducer::check_graph() {
  std::vector<std::size_t> wrong;
  if (options_.static_graph) {
    if (!graph_known_) return {};
    for (std::size_t k = 0; k < parameters_.size(); ++k)
      if (reached_[k] != known_[k]) wrong.push_back(k);
    return wrong.empty() ? std::string() : str("g", names_of(wrong));
  }
  if (options_.find_unused_parameters) return {};
  for (std::size_t k = 0; k < parameters_.size(); ++k)
    if (!reached_[k]) wrong.push_back(k);
  return wrong.empty() ? std::string() : str("u", names_of(wrong));
}

std::string Reducer::names_of(const std::vector<std::size_t>& which) const {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < which.size() && i < kMost; ++i)
    text += str(i > 0 ? ", '" : "'", names_[which[i]], "'");
  if (which.size() > kMost) text += str(" and ", which.size() - kMost, " more");
  return text;
}

void Reducer::receive(std::size_t k, Tensor gradient) {
  const std::lock_guard lock(mutex_);
  const NoGrad guard;
  if (options_.deterministic && gradient.defined())
    throw AutogradError(str(
        "backward: expected parameter '", names_[k],
        "' to be used only inside of the model, as the virtual replicas need it, got a gradient "
        "from outside"));
  if (gradient.defined()) used_[k] = 1;
  arrivals_.push_back(k);
  received_[k] = std::move(gradient);
  if (options_.static_graph && (!graph_known_ || late_[k])) return;  // at the end
  contribute(k, received_[k]);
  set_ready(k);
  launch_complete();
}

void Reducer::contribute(std::size_t k, const Tensor& gradient) {
  if (options_.deterministic) return;
  const Tensor& to = view(k);
  const Tensor old = shadows_ ? Tensor() : parameters_[k].grad();
  if (old.defined() && old.id() == to.id()) {  // this is where the old gradient is
    if (gradient.defined()) to.add_(gradient.detach());
    return;
  }
  if (gradient.defined()) to.copy_(gradient.detach());
  else if (!old.defined()) to.zero_();
  if (!old.defined()) return;
  if (gradient.defined()) to.add_(old.detach());
  else to.copy_(old.detach());
}

void Reducer::set_ready(std::size_t k) { --buckets_[places_[k].bucket].pending; }

void Reducer::launch_complete() {
  while (!delayed_ && next_ + 1 < buckets_.size() && buckets_[next_].pending == 0) launch(next_++);
}

void Reducer::finish() {
  const std::lock_guard lock(mutex_);
  const NoGrad guard;
  std::vector<std::string> complaints;
  bool voted = false;
  try {
    for (std::size_t k = 0; options_.static_graph && k < parameters_.size(); ++k)
      if (!graph_known_ || late_[k]) {
        contribute(k, received_[k]);
        set_ready(k);
      }
    // All memory is allocated before the vote.
    for (std::size_t k = 0; !options_.views && k < parameters_.size(); ++k) {
      const Tensor old = parameters_[k].grad();
      if (old.defined() && ops::has_own_elements(*old.id())) continue;
      Tensor& mine = received_[k];
      const bool free = mine.defined() && mine.id()->references() == 1 &&
                        mine.storage()->references() == 1 && mine.is_contiguous() && mine.is_leaf();
      fresh_[k] = free ? mine
                       : make_tensor(parameters_[k].shape(), parameters_[k].dtype(),
                                     parameters_[k].device());
    }
    voted = true;
    complaints = end_iteration(complaint_);
    if (!complaints.empty()) throw_complaints(complaints);
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      const Tensor old = parameters_[k].grad();
      // In the deterministic mode the old gradient, equal on all ranks, is added afterwards.
      if (options_.deterministic && old.defined()) view(k).add_(old.detach());
      if (fresh_[k].defined()) fresh_[k].copy_(view(k));
    }
  } catch (...) {
    if (voted) end();
    else fail_locked(std::current_exception());  // the other ranks wait for the vote
    throw;
  }
}

void Reducer::commit() noexcept {
  const NoGrad guard;
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    if (!used_anywhere_.empty() && !used_anywhere_[k]) continue;  // keeps its gradient
    TensorImpl& leaf = *parameters_[k].id();
    if (options_.views) leaf.grad = view(k).impl();
    else if (fresh_[k].defined()) leaf.grad = fresh_[k].impl();
    else Tensor(leaf.grad).copy_(view(k));
  }
  for (const HookResult& of : started_)
    if (of.accepted) of.accepted();
  learn();
  if (!options_.static_graph) used_anywhere_.clear();
  std::fill(used_.begin(), used_.end(), 0);
  active_ = false;
  received_.clear();
  fresh_.clear();
  trees_.clear();
  started_.clear();
}

void Reducer::abandon() noexcept {
  const std::lock_guard lock(mutex_);
  end();
}

void Reducer::fail(const std::exception_ptr& error) noexcept {
  const std::lock_guard lock(mutex_);
  fail_locked(error);
}

void Reducer::fail_locked(const std::exception_ptr& error) noexcept {
  const NoGrad guard;
  try {
    (void)end_iteration(str("f", text_of(error)));
  } catch (...) {  // the first error counts
  }
  end();
}

/// The backward has failed.
void Reducer::end() noexcept {
  active_ = shadows_ = false;
  received_.clear();
  fresh_.clear();
  trees_.clear();
  started_.clear();
  if (!options_.static_graph) used_anywhere_.clear();
  for (std::size_t k = 0; options_.views && k < parameters_.size(); ++k)
    if (parameters_[k].id()->grad == view(k).impl()) parameters_[k].id()->grad = {};  // overwritten
}

void Reducer::shadow() {
  const std::lock_guard lock(mutex_);
  const NoGrad guard;
  start_iteration();
  shadows_ = true;
  try {
    for (std::size_t k = 0; k < parameters_.size(); ++k) view(k).zero_();
    const std::vector<std::string> complaints = end_iteration({});
    if (!complaints.empty()) throw_complaints(complaints);
  } catch (...) {
    end();
    throw;
  }
  learn();
  end();
}

/// What the first reduction of all ranks has told.
void Reducer::learn() {
  if (options_.static_graph && !graph_known_) {
    known_ = shadows_ ? used_anywhere_ : reached_;
    graph_known_ = true;
  }
  if (!rebuilt_ && (!options_.find_unused_parameters || options_.static_graph)) rebuild_due_ = true;
}

std::string Reducer::text_of(const std::exception_ptr& error) {
  return str(exception_type(error), ": ", exception_message(error));
}

void Reducer::throw_complaints(const std::vector<std::string>& complaints) const {
  std::string failed, unused, changed;
  for (std::size_t rank = 0; rank < complaints.size(); ++rank) {
    const std::string& text = complaints[rank];
    if (text.empty()) continue;
    std::string& list = text[0] == 'f' ? failed : text[0] == 'u' ? unused : changed;
    list += str(list.empty() ? "" : "; ", "rank ", rank, ": ", text.substr(1));
  }
  if (!failed.empty())
    throw Error(str("backward: expected all ranks to succeed, got a failure on ", failed,
                    " (no gradient has changed on any rank)"));
  if (!unused.empty())
    throw AutogradError(
        str("backward: expected a gradient of every parameter on every rank, got none on ", unused,
            " (no gradient has changed; find_unused_parameters = true allows parameters that the "
            "loss does not use)"));
  throw AutogradError(
      str("backward: static_graph: expected the loss to use the same parameters as in the first "
          "step, got another use on ",
          changed));
}

}  // namespace braid::parallel::distributed
