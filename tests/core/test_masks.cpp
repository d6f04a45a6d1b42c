// Tests of masked_select, nonzero and one_hot: none, all and many elements, the ends of int64.
#include "reference/gather.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {

TEST_CASE("masks: of nothing, of everything, of many", "[masks]") {
  const Tensor x = random_tensor({70, 30});
  CHECK(masked_select(x, full({70, 30}, 0, {.dtype = DType::bool_})).shape() == Shape{0});
  CHECK_EXACT(masked_select(x, full({}, 1, {.dtype = DType::bool_})),
              Array({2100}, array_of(x).data));
  const Tensor mask = random_tensor({70, 30}, DType::bool_, {}, 7);
  CHECK_EXACT(masked_select(x, mask), reference::masked_select(array_of(x), array_of(mask)));
  CHECK_EXACT(nonzero(mask), reference::nonzero(array_of(mask)));
  CHECK(nonzero(zeros({0, 4})).shape() == Shape{0, 2});
  CHECK(masked_select(zeros({0, 4}), zeros({0, 4}, {.dtype = DType::bool_})).shape() == Shape{0});
  CHECK(nonzero(zeros({})).shape() == Shape{0, 0});
  CHECK(nonzero(ones({})).shape() == Shape{1, 0});
  // columns of a larger mask, and the places of a mask that has many
  const Tensor columns = mask.transpose(0, 1).slice(0, 3, 9);
  CHECK_EXACT(nonzero(columns), reference::nonzero(array_of(columns)));
  CHECK_EXACT(x[mask], reference::masked_select(array_of(x), array_of(mask)));
  CHECK(one_hot(zeros({0}, {.dtype = DType::int64}), 5).shape() == Shape{0, 5});
}

TEST_CASE("one_hot: the ends of int64", "[masks][errors]") {
  CHECK_THROWS_TEXT(IndexError, "one_hot: expected indices below 9223372036854775807",
                    one_hot(tensor(Whole{kMax})));
  CHECK_THROWS_TEXT(IndexError, "one_hot: expected indices >= 0, got -3",
                    one_hot(tensor(Whole{-3, -5})));
}

}  // namespace braid::test::on_device
