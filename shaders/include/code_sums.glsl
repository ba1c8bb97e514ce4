// Sums of products of codes begin with DOT_START: added to, the float with the same bits grows by one for one, so that a sum
// becomes a float by a subtraction.
const int DOT_START = 0x4B400000;
float dot_value(int sum) { return intBitsToFloat(sum) - 12582912.0; }
