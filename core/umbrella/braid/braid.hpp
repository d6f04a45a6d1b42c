#pragma once

// All of Braid. Only programs include this header: a module includes <braid/MODULE/name.hpp> of the modules it may use.
#include <braid/core/autograd.hpp>
#include <braid/core/collate.hpp>
#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>
#include <braid/core/error.hpp>
#include <braid/core/memory.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>
#include <braid/core/print.hpp>
#include <braid/core/random.hpp>
#include <braid/core/safetensors.hpp>
#include <braid/core/shape.hpp>
#include <braid/core/state_dict.hpp>
#include <braid/core/stream.hpp>
#include <braid/core/tensor.hpp>
#include <braid/core/tree.hpp>
#include <braid/core/version.hpp>
#include <braid/data/data.hpp>
#include <braid/kernels/cuda.hpp>
#include <braid/nn/nn.hpp>
#include <braid/parallel/parallel.hpp>
