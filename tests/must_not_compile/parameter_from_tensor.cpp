// expect: conversion from .*Tensor.* to non-scalar type .*Parameter.* requested|no viable conversion from .*Tensor.* to .*Parameter
#include <braid/braid.hpp>
using namespace braid;
int main() {
  nn::Parameter p = ones({2});  // explicit: it makes a trained leaf
}
