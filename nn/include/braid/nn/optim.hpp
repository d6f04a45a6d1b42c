#pragma once
/// \file Optimizers, learning rate schedules, gradient clipping and averages of parameters. All of
/// them work on parameters of any shape and floating point dtype, on any device, in place and
/// without recording. A step checks everything before it writes anything. Each class documents its
/// formula, source and errors.
#include <braid/nn/optim/adadelta.hpp>
#include <braid/nn/optim/adagrad.hpp>
#include <braid/nn/optim/adam.hpp>
#include <braid/nn/optim/average.hpp>
#include <braid/nn/optim/clip.hpp>
#include <braid/nn/optim/grad_scaler.hpp>
#include <braid/nn/optim/lion.hpp>
#include <braid/nn/optim/optimizer.hpp>
#include <braid/nn/optim/rmsprop.hpp>
#include <braid/nn/optim/schedule.hpp>
#include <braid/nn/optim/sgd.hpp>
