#pragma once
#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/core/tensor.hpp>

// Reverse-mode automatic differentiation: how an op records its gradient, and how gradients are
// computed.
namespace braid {

namespace autograd { class Node; }
class RandomScope;
namespace detail { class StepCapture; }
class StreamGuard;

namespace autograd {

/// Where nodes were recorded, for error messages. Nodes keep a pointer to it, so it must exist
/// until the process ends.
class Origin {
 public:
  /// Called while an exception of the backward of a node with this origin is being handled. May
  /// throw another exception, which says where it happened; otherwise the first one goes on.
  virtual void rethrow(const Node& node) const = 0;

 protected:
  constexpr Origin() noexcept = default;
  ~Origin() = default;
};

}  // namespace autograd

/// Work that a module above core runs on a thread. The thread's ThreadState points to it meanwhile.
class ThreadContext {
 public:
  virtual ~ThreadContext() = default;
  /// The origin of the nodes that are recorded meanwhile; null if they have none.
  [[nodiscard]] virtual const autograd::Origin* origin() const noexcept { return nullptr; }
};

/// Per-thread state. Workers that continue a thread's work get a copy.
struct ThreadState {
  bool grad_enabled = true;
  std::optional<DType> autocast = {};                  // of the innermost Autocast
  std::optional<Device> default_device = {};           // of the innermost DefaultDeviceGuard
  const StreamGuard* streams = nullptr;                // innermost guard; it outlives the workers
  RandomScope* random = nullptr;                       // likewise
  ThreadContext* context = nullptr;                    // likewise
  std::atomic<std::int64_t>* multiply_adds = nullptr;  // of the innermost CountMultiplyAdds
  detail::StepCapture* capture = nullptr;              // the step that the thread records
};
/// Returns the state of the calling thread.
[[nodiscard]] ThreadState& thread_state() noexcept;

/// Returns whether ops of this thread are recorded: true outside of NoGrad and GradMode.
[[nodiscard]] inline bool grad_enabled() noexcept { return thread_state().grad_enabled; }
/// While a GradMode exists, recording is on or off for its thread. The destructor restores the old
/// state.
class GradMode {
 public:
  [[nodiscard]] static bool is_enabled() noexcept { return grad_enabled(); }
  /// For the calling thread, from now on, without a guard.
  static void set_enabled(bool on) noexcept { thread_state().grad_enabled = on; }
  explicit GradMode(bool on) noexcept : before_(thread_state().grad_enabled) {
    thread_state().grad_enabled = on;
  }
  ~GradMode() { thread_state().grad_enabled = before_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool before_;
};
/// While the guard exists, its thread records nothing.
///
///     const NoGrad guard;
///     const Tensor scores = model(x);  // has no graph
struct NoGrad : GradMode {
  NoGrad() noexcept : GradMode(false) {}
};

/// LibTorch's name. Braid's tensors have no mode of their own: those made under it may be used
/// where gradients are recorded.
struct InferenceMode : GradMode {
  explicit InferenceMode(bool on = true) noexcept : GradMode(!on && grad_enabled()) {}
};

/// What a gradient function returns: one tensor for each input, undefined if there is no gradient.
/// Up to four are stored inline, more on the heap.
class Grads {
 public:
  Grads() noexcept = default;
  Grads(std::initializer_list<Tensor> list) {
    for (const Tensor& t : list) push_back(t);
  }
  template <std::same_as<Tensor>... T>
    requires(sizeof...(T) >= 1 && sizeof...(T) <= 4)
  Grads(T&&... t) noexcept {  // moves: no reference count on the hot path
    ((inline_[size_++] = std::move(t)), ...);
  }
  explicit Grads(std::vector<Tensor> many) : size_(many.size()), many_(std::move(many)) {}
  /// Appends the gradient of the next input; undefined if it has none.
  void push_back(Tensor t);
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Tensor& operator[](std::size_t i) noexcept {
    return many_.empty() ? inline_[i] : many_[i];
  }
  [[nodiscard]] const Tensor& operator[](std::size_t i) const noexcept {
    return many_.empty() ? inline_[i] : many_[i];
  }

 private:
  std::size_t size_ = 0;
  std::array<Tensor, 4> inline_;
  std::vector<Tensor> many_;
};

namespace autograd {

class Engine;
struct Derivative;

/// The destination of a gradient: output `output_nr` of a node, or a leaf, or nothing.
struct Edge {
  Ref<Node> node;
  Ref<TensorImpl> leaf;
  std::uint32_t output_nr = 0;
  bool unused = false;  // set while a grad() runs whose inputs are not behind this edge
  // of the input, and so of its gradient
  DType dtype = DType::float32;
  std::uint8_t dims = 0;
  std::int64_t numel = 0;
  [[nodiscard]] explicit operator bool() const noexcept { return node || leaf; }
};

/// One recorded op. Its edges point to the nodes and leaves that produced the op's inputs.
class Node : public RefCounted {
 public:
  virtual ~Node();
  /// Returns the gradients of the inputs. `gradients` are those of the outputs; for an unused
  /// output the gradient is undefined.
  virtual Grads backward(std::span<const Tensor> gradients) = 0;
  /// Frees the saved tensors; a later backward throws AutogradError. A node that saved nothing
  /// stays usable.
  virtual void forget() noexcept = 0;
  /// True if backward is, or begins with, a product with the derivative of an activation, which the
  /// engine may leave to the op that computes the gradient (core/autograd/derivative.hpp). Then it
  /// sets `to`.
  virtual bool derivative(Derivative& /*to*/) const { return false; }
  [[nodiscard]] const char* name() const noexcept { return name_; }
  /// The device on which backward runs.
  [[nodiscard]] Device device() const noexcept { return device_; }
  /// 1 + the largest depth of the nodes that its edges point to. So a node is deeper than every
  /// node whose result it used.
  [[nodiscard]] std::uint64_t depth() const noexcept { return depth_; }
  [[nodiscard]] std::uint32_t outputs() const noexcept { return outputs_; }
  [[nodiscard]] std::span<Edge> edges() noexcept {
    return {edge_count_ <= kInlineEdges ? inline_edges_.data() : many_edges_.get(), edge_count_};
  }
  [[nodiscard]] bool released() const noexcept { return released_; }
  /// True if hooks are registered on an output.
  [[nodiscard]] bool hooked() const noexcept { return hooked_; }
  void set_hooked() noexcept { hooked_ = true; }
  /// True if the node is prioritized: its backward runs as soon as its gradients are complete,
  /// before the remaining nodes. For sums over devices, which run asynchronously while other nodes
  /// run.
  [[nodiscard]] bool prioritized() const noexcept { return prioritized_; }
  void prioritize() noexcept { prioritized_ = true; }
  /// ThreadContext::origin() of the thread that recorded this node; null if there was none.
  [[nodiscard]] const Origin* origin() const noexcept { return origin_; }
  /// True if input i needs a gradient. For use inside backward.
  [[nodiscard]] bool needs(std::size_t i) noexcept {
    const Edge& edge = edges()[i];
    return edge && !edge.unused;
  }
  void destroy() const noexcept;  // iterative: a chain of 10^6 nodes must not recurse

 protected:
  Node(const char* name, Device device, std::uint32_t outputs,
       std::span<const Tensor* const> inputs);
  bool released_ = false;

 private:
  friend class Engine;
  bool hooked_ = false, prioritized_ = false;
  static constexpr std::size_t kInlineEdges = 4;
  const char* name_;
  const Origin* origin_ = nullptr;
  std::uint64_t depth_ = 0;
  std::uint32_t outputs_;
  std::uint32_t mark_ = 0;  // used by the engine during a backward
  union {
    void* task_ = nullptr;           // likewise
    mutable const Node* next_dead_;  // in destroy(), when no engine knows the node
  };
  Device device_;
  std::uint32_t edge_count_ = 0;
  std::array<Edge, kInlineEdges> inline_edges_;
  std::unique_ptr<Edge[]> many_edges_;
};

}  // namespace autograd

/// Tells which inputs of the running node need a gradient.
class Needs {
 public:
  explicit Needs(autograd::Node& node) noexcept : node_(&node) {}
  /// True if input i needs a gradient; if not, its place in Grads may stay undefined.
  [[nodiscard]] bool operator[](std::size_t i) const noexcept { return node_->needs(i); }

 private:
  autograd::Node* node_;
};

namespace detail {
/// Returns a tensor with the view's memory and graph that does not hold its base. The base's later
/// graph may hold saved tensors; with the base they would make a cycle.
[[nodiscard]] Tensor without_base(const Tensor& view);
}  // namespace detail

namespace autograd {

/// The saved tensors of a function that can compute them again (checkpoint.hpp).
class Recomputed : public RefCounted {
 public:
  virtual ~Recomputed() = default;
  /// Returns a saved tensor; with `history` it is part of the graph of the second call.
  virtual Tensor take(std::uint32_t index, bool history) = 0;
  virtual void destroy() const noexcept = 0;
};

}  // namespace autograd

/// A tensor saved for backward. get() throws AutogradError if it was changed in place since. Inside
/// of checkpoint it keeps no tensor; get() then computes it again.
class SavedTensor {
 public:
  SavedTensor() noexcept = default;
  /// Saves an input of the op.
  explicit SavedTensor(const Tensor& input);
  /// Saves an output of the op. It is stored without its node, to avoid a reference cycle; get()
  /// attaches the node again while the node runs.
  static SavedTensor output(const Tensor& y, std::uint32_t output_nr = 0);
  [[nodiscard]] Tensor get() const;

 private:
  void pass_to_checkpoint();
  void take_back() const;
  mutable Tensor tensor_;
  std::uint64_t version_ = 0;
  Ref<autograd::Recomputed> from_;  // null if the tensor is kept
  std::uint32_t index_ = 0;         // the number that from_ knows it by
  std::uint32_t output_nr_ = 0;
  bool output_ = false;
  mutable bool history_ = false;  // whether tensor_ was computed again with its history
};

namespace detail {
/// An op's input, held by pointer: `record("op", {x, w}, …)` copies no handle.
struct Input {
  Input(const Tensor& t) noexcept : tensor(&t) {}
  const Tensor* tensor;
};
[[noreturn]] void already_freed(const char* name);
[[noreturn]] void too_many_inputs(const char* name, std::size_t got);

template <class F> class NodeOf final : public autograd::Node {
 public:
  NodeOf(const char* name, Device device, std::uint32_t outputs,
         std::span<const Tensor* const> inputs, F&& f)
      : autograd::Node(name, device, outputs, inputs), function_(std::move(f)) {}
  Grads backward(std::span<const Tensor> gradients) override {
    if (!function_) already_freed(name());
    if constexpr (std::is_invocable_v<F&, const Tensor&, Needs>)
      return (*function_)(gradients[0], Needs(*this));
    else if constexpr (std::is_invocable_v<F&, const Tensor&>) return (*function_)(gradients[0]);
    else if constexpr (std::is_invocable_v<F&, std::span<const Tensor>, Needs>)
      return (*function_)(gradients, Needs(*this));
    else return (*function_)(gradients);
  }
  void forget() noexcept override {
    // holds no tensor: there is nothing to free, and a later backward can run it again
    if constexpr (std::is_trivially_destructible_v<F>) return;
    function_.reset();
    released_ = true;
  }
  bool derivative(autograd::Derivative& to) const override {
    if constexpr (requires { &F::derivative; }) return function_ && function_->derivative(to);
    else return false;
  }
  static void* operator new(std::size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* p, std::size_t bytes) noexcept { pool_release(p, bytes); }

 private:
  std::optional<F> function_;
};
/// Makes y output `output_nr` of the node. For a view whose creation is complete, this is an
/// in-place change of its base.
void attach(const Tensor& y, Ref<autograd::Node> node, std::uint32_t output_nr);
}  // namespace detail

/// Returns true if an op on these inputs must be recorded.
[[nodiscard]] inline bool needs_grad(std::initializer_list<detail::Input> inputs) {
  if (!grad_enabled()) return false;
  for (const detail::Input& i : inputs)
    if (i.tensor->defined() && i.tensor->requires_grad()) return true;
  return false;
}

/// Records that an op made `y` from `inputs` (at most 8). f computes the gradient: f(dy) or f(dy,
/// needs) returns Grads, one for each input. f must use recorded ops, so that gradients of
/// gradients work. Call this only if needs_grad(inputs). The node runs on y's device. Returns y.
///
///     Tensor cube(const Tensor& x) {
///       Tensor y;
///       {
///         const NoGrad guard;
///         y = x * x * x;
///       }
///       if (!needs_grad({x})) return y;
///       return record("cube", {x}, y, [x = SavedTensor(x)](const Tensor& dy) -> Grads {
///         return {3 * x.get() * x.get() * dy};
///       });
///     }
template <class F>
Tensor record(const char* name, std::initializer_list<detail::Input> inputs, Tensor y, F f) {
  std::array<const Tensor*, 8> pointers;
  if (inputs.size() > pointers.size()) detail::too_many_inputs(name, inputs.size());
  std::size_t n = 0;
  for (const detail::Input& i : inputs) pointers[n++] = i.tensor;
  detail::attach(y,
                 Ref<autograd::Node>(new detail::NodeOf<F>(name, y.device(), 1,
                                                           {pointers.data(), n}, std::move(f))),
                 0);
  return y;
}

/// For use inside the backward of a node that queues work on other streams. Calls `join` when all
/// nodes have run, before the gradients are used; outside of a backward, calls it immediately.
/// `join` must order the streams. If it throws, so does backward, and adds no gradient.
void at_end_of_backward(std::function<void()> join);

/// As record, for any number of inputs and outputs: f(span<const Tensor> dys) or f(dys, needs)
/// returns Grads. Integer outputs are not recorded. The backward runs on `device`.
template <class F>
void record_many(const char* name, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                 Device device, F f) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : inputs) pointers.push_back(&t);
  Ref<autograd::Node> node(new detail::NodeOf<F>(
      name, device, static_cast<std::uint32_t>(outputs.size()), pointers, std::move(f)));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined() && is_floating(outputs[i].dtype()))
      detail::attach(outputs[i], node, static_cast<std::uint32_t>(i));
}

/// Computes the gradients of `outputs` with respect to `inputs`, without changing any grad(). Runs
/// and frees only the part of the graph between them.
/// `gradients` are those with respect to the outputs; empty means ones, for outputs of one element.
/// If no output depends on an input, this throws AutogradError or, with allow_unused, returns an
/// undefined tensor for it. create_graph records the computation, so that the result can be
/// differentiated again.
///
///     const Tensor t = tensor({1.0, 2.0}, {.requires_grad = true});
///     const Tensor dt = grad((t * t).sum(), {t})[0];  // 2 4
[[nodiscard]] std::vector<Tensor> grad(std::span<const Tensor> outputs,
                                       std::span<const Tensor> inputs,
                                       std::span<const Tensor> gradients = {},
                                       bool retain_graph = false, bool create_graph = false,
                                       bool allow_unused = false);
/// The same for one output.
[[nodiscard]] std::vector<Tensor> grad(const Tensor& output, std::initializer_list<Tensor> inputs,
                                       bool retain_graph = false, bool create_graph = false);

/// Tensor::backward for several outputs at the same time. With create_graph a leaf's grad() holds
/// the graph, which holds the leaf: neither is freed until set_grad({}). The first such call of a
/// process calls warn(); grad() above makes no such cycle.
void backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients = {},
              bool retain_graph = false, bool create_graph = false);

}  // namespace braid
