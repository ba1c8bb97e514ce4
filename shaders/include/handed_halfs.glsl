// Rows of a step of few tokens as the dispatch that computes them leaves them for products on matrix units, so that no
// dispatch between prepares them. Halfs are a row's elements times the gain of the norm that it goes to and HAND_UP; the norm's
// factor comes with the results. They lie as few_fragments.glsl reads them. Behind them follows what is known of each part of
// a row, token by token: the largest half of each part before it was scaled, then the sums of their elements' squares.
const float HAND_UP = 32.0;
// Halfs are exact enough if the largest of a row is in this range before it is scaled.
const float HAND_LEAST = 0.0009765625, HAND_MOST = 2047.0;
const uint HAND_PART = 16;  // columns of a product's parts

// Where eight elements of a token are, among those of `all` tokens.
uint handed_eight(uint unit, uint eight, uint token, uint all, uint owners) {
    return ((unit / owners * 4u + eight) * all + token) * owners + unit % owners;
}
// Four elements; the middle two change places, as half_units.glsl says.
uvec2 handed_four(vec4 v, float up) {
    return uvec2(packHalf2x16(v.xz * up), packHalf2x16(v.yw * up));
}
