// This file must compile: it shows that the other cases of this folder fail for their own reason.
#include <braid/braid.hpp>

int main() { return braid::version() == nullptr ? 1 : 0; }
