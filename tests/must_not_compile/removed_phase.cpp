// expect: trace::Phase::scatter, replicate, .* are now trace::Phase\(
#include <braid/braid.hpp>
using namespace braid;
int main() { const trace::Span span("gather", trace::Phase::gather, Device()); }
