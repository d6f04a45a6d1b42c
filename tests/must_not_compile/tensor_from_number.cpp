// expect: conversion from .double. to non-scalar type .*Tensor.* requested|no viable conversion from .double. to .*Tensor
#include <braid/braid.hpp>
using namespace braid;
int main() { Tensor t = 3.0; }
