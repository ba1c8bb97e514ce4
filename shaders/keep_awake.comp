// Keeps the device busy for so many ticks of its clock, which the host writes; what it writes is read by nobody. The rounds
// end it on a clock that stands still.
#extension GL_EXT_shader_realtime_clock : require
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0, std430) buffer Wait { uint ticks, rounds; };
const uint MOST_ROUNDS = 4000000;

void main() {
    const uint begin = clockRealtime2x32EXT().x, wanted = min(ticks, 0x7FFFFFFFu);
    uint n = 0u;
    while (clockRealtime2x32EXT().x - begin < wanted && n < MOST_ROUNDS) ++n;
    if (gl_LocalInvocationIndex == 0u) rounds = n;
}
