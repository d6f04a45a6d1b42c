#pragma once

/// \file All of braid::nn, braid::optim and braid::training: modules (a struct with BRAID_FIELDS),
/// layers, losses, initialisers; optimizers, schedules, clipping, averages; options, progress,
/// checkpoints, accuracy, summary. Names, defaults and layouts of parameters are PyTorch's where it
/// has the like.
///
/// Shapes    batches have the samples along dim 0 (sequences: time along dim 0 unless batch_first);
///           each layer's header says its own
/// Types     floating point, float32 by default; labels int64
/// Device    parameters are made on the CPU unless options name a device, or moved by
///           `to(module, device)`; inputs must be where they are
/// Gradient  for inputs and parameters, and of gradients, unless a header says otherwise
/// Throws    ShapeError, DTypeError, DeviceError, ArgumentError: `op: expected …, got …`, before
///           anything is changed
#include <braid/nn/activations.hpp>
#include <braid/nn/attention.hpp>
#include <braid/nn/capsule.hpp>
#include <braid/nn/conv.hpp>
#include <braid/nn/dropout.hpp>
#include <braid/nn/embedding.hpp>
#include <braid/nn/init.hpp>
#include <braid/nn/linear.hpp>
#include <braid/nn/losses.hpp>
#include <braid/nn/module.hpp>
#include <braid/nn/norm.hpp>
#include <braid/nn/optim.hpp>
#include <braid/nn/parameter.hpp>
#include <braid/nn/parameter_dict.hpp>
#include <braid/nn/pool.hpp>
#include <braid/nn/rnn.hpp>
#include <braid/nn/sequential.hpp>
#include <braid/nn/training.hpp>
#include <braid/nn/transformer.hpp>
#include <braid/nn/walks.hpp>
