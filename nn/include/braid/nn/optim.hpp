#pragma once
/// \file Optimizers, schedules of their learning rates, averages of parameters, clipping of
/// gradients. All work on parameters of any shape and floating point type, on any device, in place
/// and without recording; a step is checked first, then written. Formulas, sources and errors stand
/// with each.
#include <braid/nn/optim/adagrad.hpp>
#include <braid/nn/optim/adam.hpp>
#include <braid/nn/optim/average.hpp>
#include <braid/nn/optim/clip.hpp>
#include <braid/nn/optim/lion.hpp>
#include <braid/nn/optim/optimizer.hpp>
#include <braid/nn/optim/rmsprop.hpp>
#include <braid/nn/optim/schedule.hpp>
#include <braid/nn/optim/sgd.hpp>
