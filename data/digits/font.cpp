#include "digits/font.hpp"

namespace braid::data {
namespace {

// Each digit is one stroke. Where a pen would be lifted (4), the stroke retraces its own line.
constexpr FontPoint k0[] = {{50, 9},  {64, 14}, {73, 29}, {76, 50}, {73, 71}, {64, 86}, {50, 91},
                            {36, 86}, {27, 71}, {24, 50}, {27, 29}, {36, 14}, {50, 9}};
constexpr FontPoint k1[] = {{33, 27}, {43, 20}, {53, 9}, {53, 50}, {53, 91}};
constexpr FontPoint k2[] = {{25, 29}, {31, 16}, {44, 9},  {59, 11}, {71, 21}, {73, 35},
                            {65, 50}, {46, 69}, {25, 89}, {50, 89}, {76, 89}};
constexpr FontPoint k3[] = {{26, 18}, {39, 9},  {57, 10}, {70, 21}, {69, 35}, {58, 46}, {43, 48},
                            {59, 50}, {72, 61}, {73, 76}, {60, 89}, {41, 91}, {25, 82}};
constexpr FontPoint k4[] = {{62, 91}, {62, 50}, {62, 9}, {42, 37}, {22, 65}, {50, 65}, {80, 65}};
constexpr FontPoint k5[] = {{71, 10}, {51, 10}, {32, 10}, {29, 45}, {45, 39}, {62, 43},
                            {74, 58}, {72, 75}, {59, 89}, {41, 91}, {25, 82}};
constexpr FontPoint k6[] = {{66, 10}, {48, 22}, {34, 42}, {28, 64}, {34, 83}, {50, 91},
                            {66, 84}, {73, 69}, {65, 55}, {49, 50}, {33, 60}};
constexpr FontPoint k7[] = {{22, 12}, {49, 12}, {77, 12}, {66, 32}, {55, 56}, {46, 91}};
constexpr FontPoint k8[] = {{50, 48}, {34, 38}, {32, 22}, {42, 10}, {58, 10},
                            {68, 22}, {66, 38}, {50, 48}, {32, 60}, {28, 77},
                            {39, 90}, {61, 90}, {72, 77}, {68, 60}, {50, 48}};
constexpr FontPoint k9[] = {{70, 38}, {58, 51}, {42, 50}, {30, 38}, {32, 20}, {46, 9},
                            {62, 13}, {70, 26}, {70, 38}, {66, 64}, {54, 91}};

constexpr std::span<const FontPoint> kStrokes[] = {k0, k1, k2, k3, k4, k5, k6, k7, k8, k9};

}  // namespace

std::span<const FontPoint> font_stroke(std::int64_t digit) noexcept { return kStrokes[digit]; }

}  // namespace braid::data
