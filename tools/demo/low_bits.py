"""Matrices in Q4_0 and Q3_K: rounded while training, and packed as GGUF has them.

A format has scales(weight), rounded(weight, scales) and packed(weight, scales). Scales may be those of an earlier step.
"""

import numpy as np
import torch

import gguf_file

# The largest value of a block is given one of these levels; the sign is that of a format's longer side.
TRIED = (1.0, 0.93, 0.86, 0.79)


def half(x):
    """The values that F16 can hold."""
    return x.to(torch.float16).float()


def quotient(x, scale):
    return torch.where(scale == 0, torch.zeros_like(x), x / torch.where(scale == 0, torch.ones_like(scale), scale))


def block_scales(blocks, low, high):
    """The scale by block (the last dimension) that has the least squared error among a few."""
    top = blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True))
    best, least = None, None
    for level in [low * t for t in TRIED] + [-low * t for t in TRIED[1:]]:
        scale = top / level
        error = (quotient(blocks, scale).round().clamp(low, high) * scale - blocks).pow(2).sum(-1, keepdim=True)
        best = scale if best is None else torch.where(error < least, scale, best)
        least = error if least is None else torch.minimum(error, least)
    return best


class FourBits:
    """Q4_0: 32 values of -8 to 7 times a scale in F16."""
    kind = gguf_file.Q4_0

    @staticmethod
    @torch.no_grad()
    def scales(weight):
        return half(block_scales(weight.unflatten(-1, (-1, 32)), -8, 7))

    @staticmethod
    def levels(weight, scales):
        return quotient(weight.unflatten(-1, (-1, 32)), scales).round().clamp(-8, 7)

    @classmethod
    def rounded(cls, weight, scales):
        return (cls.levels(weight, scales) * scales).reshape(weight.shape)

    @classmethod
    def packed(cls, weight, scales):
        levels = (cls.levels(weight, scales) + 8).to(torch.uint8).reshape(-1, 32).numpy()
        scales = scales.reshape(-1, 1).numpy().astype(np.float16).view(np.uint8)
        return np.concatenate((scales, levels[:, :16] | levels[:, 16:] << 4), 1).tobytes()


class ThreeBits:
    """Q3_K: 16 blocks of 16 values of -4 to 3; a block's scale is one of -32 to 31 times one in F16."""
    kind = gguf_file.Q3_K

    @staticmethod
    @torch.no_grad()
    def scales(weight):
        wanted = block_scales(weight.unflatten(-1, (-1, 16, 16)), -4, 3)
        whole = half(wanted.abs().amax(-2, keepdim=True) / 31)
        return whole, quotient(wanted, whole).round().clamp(-32, 31)

    @staticmethod
    def levels(weight, scales):
        return quotient(weight.unflatten(-1, (-1, 16, 16)), scales[0] * scales[1]).round().clamp(-4, 3)

    @classmethod
    def rounded(cls, weight, scales):
        return (cls.levels(weight, scales) * (scales[0] * scales[1])).reshape(weight.shape)

    @classmethod
    def packed(cls, weight, scales):
        # Value 128 a + 32 b + c: two bits at 2 b of byte 32 a + c, the third at bit 4 a + b of byte c of the mask.
        levels = (cls.levels(weight, scales) + 4).to(torch.uint8).reshape(-1, 2, 4, 32).numpy()
        two = np.bitwise_or.reduce((levels & 3) << np.arange(0, 8, 2, dtype=np.uint8)[:, None], 2).reshape(-1, 64)
        mask = np.bitwise_or.reduce((levels >> 2).reshape(-1, 8, 32) << np.arange(8, dtype=np.uint8)[:, None], 1)
        six = (scales[1] + 32).to(torch.uint8).reshape(-1, 16).numpy()
        low = six[:, :8] & 15 | (six[:, 8:] & 15) << 4
        high = np.bitwise_or.reduce((six >> 4).reshape(-1, 4, 4) << np.arange(0, 8, 2, dtype=np.uint8)[:, None], 1)
        whole = scales[0].reshape(-1, 1).numpy().astype(np.float16).view(np.uint8)
        return np.concatenate((mask, two, low, high, whole), 1).tobytes()
