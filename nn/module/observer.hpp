#pragma once
#include <braid/nn/layer.hpp>

namespace braid::nn::detail {

/// While it exists, sees the begin and the end of each call of a layer on its thread.
class LayerObserver {
 public:
  LayerObserver() noexcept;
  LayerObserver(const LayerObserver&) = delete;
  LayerObserver& operator=(const LayerObserver&) = delete;
  virtual ~LayerObserver();
  virtual void begins(const Module& layer) = 0;
  virtual void called(const LayerCall& call) = 0;

 private:
  LayerObserver* outer_;
};

}  // namespace braid::nn::detail
