#!/usr/bin/env python3
"""Writes tests/golden/formats/*.bin: raw blocks and what they decode to, by the gguf package (pip install gguf), an
implementation independent of ours, or where that cannot by this program. Each file: u32 blocks, u32 elements per block, u32 bytes per block, the blocks,
the elements as binary32; all little-endian. The same seed gives the same files."""

import pathlib
import sys

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type

OUT = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden" / "formats"
RANDOM_BLOCKS = 12

# Formats that the package cannot decode, or does not know: number, elements and bytes of a block.
HERE = {"Q1_0": (41, 128, 18), "Q2_0": (42, 64, 18), "F64": (28, 1, 8)}

SPREAD = -1  # IQ1_M has its half in the top nibbles of four words from byte 48 on

# Offsets of the half-precision fields in a block: random bytes there are mostly huge scales, so they are set.
HALVES = {
    "F16": [0], "BF16": [], "F32": [], "F64": [],
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [], "NVFP4": [], "TQ1_0": [52], "TQ2_0": [64],
    "Q1_0": [0], "Q2_0": [0],
    "IQ1_S": [0], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0],
    "IQ1_M": [SPREAD],
}

# Zero, negative zero, the smallest and largest subnormals, the smallest normal, one, negative, the largest, infinities,
# a NaN: as bits.
ODD_HALVES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00]


def set_half(block, at, bits):
    if at == SPREAD:
        for word in range(4):
            block[49 + 2 * word] = block[49 + 2 * word] & 15 | (bits >> 4 * word & 15) << 4
    else:
        block[at : at + 2] = bits & 255, bits >> 8


def all_entries(name, block_bytes, rng):
    """Blocks that name every entry of the code book: the others name a few by chance."""
    first, of_block, entries = {"IQ1_S": (2, 32, 2048), "IQ2_XXS": (2, 32, 256), "IQ2_XS": (2, 32, 512),
                                "IQ2_S": (2, 32, 1024), "IQ3_XXS": (2, 64, 256), "IQ3_S": (2, 64, 512)}[name]
    blocks = rng.integers(0, 256, (entries // of_block, block_bytes), dtype=np.uint8)
    for i, block in enumerate(blocks):
        set_half(block, 0, 0x2E66)
        entry = np.arange(i * of_block, (i + 1) * of_block)
        if name == "IQ2_XXS":
            block[2:].reshape(8, 8)[:, :4] = entry.reshape(8, 4)
        elif name == "IQ2_XS":
            words = block[2:66].view(np.uint16)
            words[:] = words & 0xFE00 | entry
        else:
            block[first : first + of_block] = entry & 255
        high = (entry >> 8).reshape(8, -1)  # of an entry; each row is one number of the file
        if name == "IQ1_S":
            words = block[34:50].view(np.uint16)
            words[:] = words & 0xF000 | (high << [0, 3, 6, 9]).sum(1)
        elif name == "IQ2_S":
            block[66:74] = (high << [0, 2, 4, 6]).sum(1)
        elif name == "IQ3_S":
            block[66:74] = (high << np.arange(8)).sum(1)
    return list(blocks)


def floats(name, rng):
    """Blocks of one element: every kind of value, and random bits."""
    if name == "F32":
        odd = [0, 1 << 31, 1, 0x807FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000]
        random = rng.integers(0, 1 << 32, 256, dtype=np.uint32)
        return np.concatenate([np.array(odd, np.uint32), random]).view(np.uint8).reshape(-1, 4)
    if name == "F64":
        odd = [0.0, -0.0, 1.0, -1.0, 1e-45, -7e-46, 1e-310, 3.4e38, -3.5e38, 1e300, np.inf, -np.inf, np.nan]
        # Between two neighbours in binary32, in the middle and on either side.
        ties = 1.0 + np.array([1, 3, -1]) * 2.0**-24 + np.array([[0.0], [2.0**-52], [-(2.0**-52)]])
        spread = rng.normal(0, 1, 256) * 2.0 ** rng.integers(-160, 130, 256)
        return np.concatenate([odd, ties.ravel(), spread]).view(np.uint8).reshape(-1, 8)
    # All of them: 65536 halves would be 400 kB in the files, so every 16th and all the edges.
    values = np.concatenate([np.arange(0, 1 << 16, 16), np.array(ODD_HALVES), np.arange(0x3F0, 0x410)])
    return values.astype(np.uint16).view(np.uint8).reshape(-1, 2)


def quants(name, block_bytes, rng):
    """Blocks of quants: random ones under plausible scales, then adversarial ones."""
    blocks = list(rng.integers(0, 256, (RANDOM_BLOCKS, block_bytes), dtype=np.uint8))
    for block in blocks:
        for at in HALVES[name]:
            set_half(block, at, int(np.float16(rng.normal(0, 0.1)).view(np.uint16)))
    fills = [np.full(block_bytes, byte, np.uint8) for byte in (0x00, 0xFF, 0x0F, 0xF0, 0x80, 0x7F)]
    blocks += fills
    for bits in ODD_HALVES if HALVES[name] else []:
        block = rng.integers(0, 256, block_bytes, dtype=np.uint8)
        for place, at in enumerate(HALVES[name]):
            # A minimum of another kind than the scale, so that infinity - infinity is not all there is.
            value = bits if place == 0 else ODD_HALVES[(ODD_HALVES.index(bits) * 5 + 3) % len(ODD_HALVES)]
            set_half(block, at, value)
        blocks.append(block)
    if name == "MXFP4":
        for exponent in (0, 1, 2, 3, 126, 127, 128, 252, 253, 254):
            block = rng.integers(0, 256, block_bytes, dtype=np.uint8)
            block[0] = exponent
            blocks.append(block)
    if name.startswith(("IQ1_S", "IQ2", "IQ3")):
        blocks += all_entries(name, block_bytes, rng)
    return np.stack(blocks)


def decode_here(name, blocks):
    """Codes of so many bits, the lowest first, less what they are too large by, times the scale."""
    bits = 1 if name == "Q1_0" else 2
    fields = blocks[:, 2:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    codes = fields.reshape(len(blocks), -1).astype(np.float32)
    scales = np.ascontiguousarray(blocks[:, :2]).view(np.float16).astype(np.float32)
    return (2 * codes - 1 if bits == 1 else codes - 1) * scales


def dequantize(name, blocks):
    if name == "F64":
        return blocks.view(np.float64).astype(np.float32)
    if name == "F16":
        return blocks.view(np.float16).astype(np.float32)
    return decode_here(name, blocks) if name in HERE else gguf.dequantize(blocks, Type[name])


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    total = 0
    for name in HALVES:
        number, per_block, block_bytes = HERE.get(name) or (int(Type[name]), *GGML_QUANT_SIZES[Type[name]])
        rng = np.random.default_rng(number + 1)
        blocks = floats(name, rng) if per_block == 1 else quants(name, block_bytes, rng)
        with np.errstate(all="ignore"):
            decoded = np.ascontiguousarray(dequantize(name, blocks), np.float32)
        assert decoded.size == blocks.shape[0] * per_block
        head = np.array([blocks.shape[0], per_block, block_bytes], np.uint32).tobytes()
        data = head + blocks.tobytes() + decoded.tobytes()
        (OUT / f"{name.lower()}.bin").write_bytes(data)
        total += len(data)
    print(f"{len(HALVES)} files, {total} bytes in {OUT}", file=sys.stderr)


if __name__ == "__main__":
    main()
