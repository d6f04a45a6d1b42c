#pragma once

// All of braid::data: datasets, the loader, IDX files, MNIST, drawn digits.
#include <braid/data/dataset.hpp>
#include <braid/data/idx.hpp>
#include <braid/data/labelled.hpp>
#include <braid/data/loader.hpp>
#include <braid/data/mnist.hpp>
#include <braid/data/sampler.hpp>
#include <braid/data/synthetic.hpp>
