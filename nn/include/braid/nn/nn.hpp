#pragma once

/// \file Includes all of braid::nn, braid::optim and braid::training: modules (structs with
/// BRAID_FIELDS), layers, losses and initialisers; optimizers, learning rate schedules, gradient
/// clipping and weight averaging; command line options, progress, checkpoints, accuracy and
/// summary. Names, defaults and parameter layouts are PyTorch's where PyTorch has the same thing.
///
/// Shapes    the samples of a batch lie along dim 0 (sequences: time along dim 0 unless
///           batch_first); each layer's header states its shapes
/// Types     floating point, float32 by default; labels int64
/// Device    parameters are created on the CPU unless the options name a device;
///           `to(module, device)` moves them. Inputs must be on the device of the parameters
/// Gradient  to inputs and parameters, of any order, unless a header says otherwise
/// Throws    ShapeError, DTypeError, DeviceError, ArgumentError with the text
///           `op: expected …, got …`, before anything is changed
#include <braid/nn/activations.hpp>
#include <braid/nn/any_module.hpp>
#include <braid/nn/attention.hpp>
#include <braid/nn/capsule.hpp>
#include <braid/nn/conv.hpp>
#include <braid/nn/dropout.hpp>
#include <braid/nn/embedding.hpp>
#include <braid/nn/functional.hpp>
#include <braid/nn/init.hpp>
#include <braid/nn/internal/habits.hpp>
#include <braid/nn/layer.hpp>
#include <braid/nn/linear.hpp>
#include <braid/nn/loss_layers.hpp>
#include <braid/nn/losses.hpp>
#include <braid/nn/module.hpp>
#include <braid/nn/norm.hpp>
#include <braid/nn/optim.hpp>
#include <braid/nn/ordered_map.hpp>
#include <braid/nn/pad.hpp>
#include <braid/nn/parameter.hpp>
#include <braid/nn/parameter_dict.hpp>
#include <braid/nn/pool.hpp>
#include <braid/nn/replica_group.hpp>
#include <braid/nn/rnn.hpp>
#include <braid/nn/sequential.hpp>
#include <braid/nn/training.hpp>
#include <braid/nn/transformer.hpp>
#include <braid/nn/walks.hpp>
