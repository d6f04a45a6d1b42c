#pragma once
/// \file What a training program needs besides model, loss and optimizer: command line options,
/// progress, checkpoints, accuracy, a summary of the model, and a clean stop at a signal. Nothing
/// here is differentiable. Each function documents its errors.
#include <braid/nn/training/accuracy.hpp>
#include <braid/nn/training/captured_step.hpp>
#include <braid/nn/training/checkpoint.hpp>
#include <braid/nn/training/options.hpp>
#include <braid/nn/training/progress.hpp>
#include <braid/nn/training/stop.hpp>
#include <braid/nn/training/summary.hpp>
