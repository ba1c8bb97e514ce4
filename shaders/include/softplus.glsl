// log(1 + e^x) = max(x, 0) + log(1 + t), t = e^-|x|, whose bits are all good where it is small: a driver's log() is off by
// 2^-21 near 1. log(1 + t) = 2 artanh(z), z = t / (2 + t) of at most 1/3, by its series.
float softplus(float x) {
    const float t = exp(-abs(x)), z = t / (2.0 + t), square = z * z;
    float sum = 1.0 / 13.0;
    [[unroll]] for (int n = 11; n > 0; n -= 2) sum = sum * square + 1.0 / float(n);
    return max(x, 0.0) + 2.0 * z * sum;
}
