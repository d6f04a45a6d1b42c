#include <braid/nn/layer.hpp>

#include <atomic>
#include <utility>

#include <braid/core/error.hpp>
#include <braid/core/internal/step_capture.hpp>

#include "module/observer.hpp"

namespace braid::nn {
namespace detail {

struct ForwardHook {
  ForwardHookFunction function;
  mutable std::atomic<bool> removed{false};
};

ModuleRecord::ModuleRecord(const ModuleRecord& other) noexcept : hooks(other.hooks) {
  if (tree::Sharing::count_module())
    path.store(other.path.load(std::memory_order_acquire), std::memory_order_relaxed);
}
ModuleRecord::ModuleRecord(ModuleRecord&& other) noexcept
    : path(other.path.load(std::memory_order_acquire)), hooks(std::move(other.hooks)) {}
ModuleRecord& ModuleRecord::operator=(const ModuleRecord& other) noexcept {
  hooks = other.hooks;
  return *this;
}
ModuleRecord& ModuleRecord::operator=(ModuleRecord&& other) noexcept {
  hooks = std::move(other.hooks);
  return *this;
}
ModuleRecord::~ModuleRecord() = default;

namespace {

thread_local LayerObserver* observer = nullptr;

std::string_view path_of(const Module& layer) noexcept {
  const std::string* const path = layer.record_.path.load(std::memory_order_acquire);
  return path ? std::string_view(*path) : std::string_view();
}

}  // namespace

LayerObserver::LayerObserver() noexcept : outer_(std::exchange(observer, this)) {}
LayerObserver::~LayerObserver() { observer = outer_; }

ForwardHookHandle add_hook(Module& layer, ForwardHookFunction function) {
  if (!function) throw ArgumentError("register_forward_hook: expected a function, got none");
  ::braid::detail::StepCapture::hooks_changed("register_forward_hook", nullptr);
  const auto hook = std::make_shared<ForwardHook>();
  hook->function = std::move(function);
  auto list = std::make_shared<ForwardHooks>();
  if (layer.record_.hooks)
    for (const auto& other : *layer.record_.hooks)
      if (!other->removed.load(std::memory_order_relaxed)) list->push_back(other);
  list->push_back(hook);
  layer.record_.hooks = std::move(list);
  return ForwardHookHandle(hook);
}

void name_layer(const Module& layer, Error& error) noexcept {
  const std::string* const path = layer.record_.path.load(std::memory_order_acquire);
  if (!path || path->empty()) return;
  try {
    error.set_module_path(*path);
  } catch (...) {  // no memory: the message stays as it is
  }
}

bool observed(const Module& layer) noexcept {
  if (auto* const capture = ::braid::detail::StepCapture::current()) [[unlikely]]
    capture->reads_mode(layer.training);
  return layer.record_.hooks || observer;
}

void before_call(const Module& layer) {
  if (observer) observer->begins(layer);
}

void after_call(const Module& layer, std::vector<Tensor> inputs, std::vector<Tensor>& outputs) {
  const LayerCall call{path_of(layer), layer, std::move(inputs), outputs};
  if (const std::shared_ptr<const ForwardHooks> hooks = layer.record_.hooks)
    for (const auto& hook : *hooks)
      if (!hook->removed.load(std::memory_order_relaxed)) hook->function(call);
  if (observer) observer->called(call);
}

}  // namespace detail

void ForwardHookHandle::remove() const noexcept {
  if (!hook_ || hook_->removed.exchange(true, std::memory_order_relaxed)) return;
  ::braid::detail::StepCapture::hook_removed();
}

}  // namespace braid::nn
