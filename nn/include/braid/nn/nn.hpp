#pragma once

// All of braid::nn and braid::optim.
#include <braid/nn/activations.hpp>
#include <braid/nn/embedding.hpp>
#include <braid/nn/linear.hpp>
#include <braid/nn/losses.hpp>
#include <braid/nn/module.hpp>
#include <braid/nn/optim.hpp>
#include <braid/nn/parameter.hpp>
#include <braid/nn/sequential.hpp>
#include <braid/nn/walks.hpp>
