"""The shares of a card that kernels should reach, and the kernels that cannot: tools/amd/amd-speed check."""
import re

import amd_speed_model as model

FORMATS = ("q4_0", "q4_k", "q5_k", "q6_k", "q8_0", "mxfp4", "iq4_xs", "f16")
DECODE = 0.90
DECODE_OF = {"Instinct MI300X": 0.70}
PROMPT = 0.60
# Tiles of few rows and tokens serve to fill compute units that would be idle: their share is reported without
# a peak.
SMALL_TILES = re.compile(r"linear_(matrix|bytes)_(64|wide)_|expert_(gated_)?(matrix|bytes)_32_|(linear|gated)_coop(_bfloat)?\.\w+/\d+,(64,|\d+,(32|64),)")
# Kernels of prompts in int8 are a choice, which is measured: their cycles stand beside those of halfs in "prompts". Scaling sums
# takes as long as multiplying, so that they reach half of the peak on RDNA 4.
CHOICES = re.compile(r"\w+_coop_(int8|dots)|(linear|gated|expert|expert_gated)_bytes_")
# Vulkan's prompts on cards without matrix units are not among what is checked: linear_tile multiplies floats one by one, at
# most half of the peak of dot products of halfs, and dot products of codes are a choice.
# Kernels that cannot, with the share that they could reach when this was written: (card, start of the name): share. None may
# get worse.
EXCEPTIONS = {
    # Levels of four bits take 40 vector instructions more than nibbles, and tiles of 64 tokens multiply half of what tiles of
    # 128 do for the same decoding; experts seldom have more tokens.
    ("RX 9070 XT", "expert_matrix_mxfp4"): 0.58,
    ("RX 9070 XT", "expert_gated_matrix_mxfp4"): 0.59,
    ("RX 9070 XT", "expert_matrix_iq4_xs"): 0.57,
    ("RX 9070 XT", "expert_gated_matrix_iq4_xs"): 0.58,
    # The same tiles where matrix instructions take 16 cycles and vector ones 4: two waves per SIMD hide half of decoding.
    ("Instinct MI300X", "expert_matrix_q4_k"): 0.56,
    ("Instinct MI300X", "expert_matrix_q5_k"): 0.53,
    ("Instinct MI300X", "expert_matrix_q6_k"): 0.54,
    ("Instinct MI300X", "expert_matrix_q8_0"): 0.59,
    ("Instinct MI300X", "expert_matrix_mxfp4"): 0.50,
    ("Instinct MI300X", "expert_matrix_iq4_xs"): 0.49,
    ("Instinct MI300X", "expert_gated_matrix_q4_k"): 0.56,
    ("Instinct MI300X", "expert_gated_matrix_q5_k"): 0.53,
    ("Instinct MI300X", "expert_gated_matrix_q6_k"): 0.54,
    ("Instinct MI300X", "expert_gated_matrix_q8_0"): 0.59,
    ("Instinct MI300X", "expert_gated_matrix_mxfp4"): 0.51,
    ("Instinct MI300X", "expert_gated_matrix_iq4_xs"): 0.49,
    # Vulkan's tiles of few tokens, and gated ones, whose every unit a subgroup decodes by selections: 14 instructions a level.
    ("RX 9070 XT", "expert_coop.mxfp4/256,128,32"): 0.49,
    ("RX 9070 XT", "expert_coop.iq4_xs/256,128,32"): 0.35,
    ("RX 9070 XT", "expert_coop.iq4_xs/256,128,64"): 0.52,
    ("RX 9070 XT", "gated_coop.iq4_xs/"): 0.54,
    ("Radeon 780M", "expert_coop.iq4_xs/256,128,32"): 0.51,
    ("Radeon 8060S", "expert_coop.iq4_xs/256,128,32"): 0.51,
    ("RX 7600", "expert_coop.iq4_xs/256,128,32"): 0.51,
    ("RX 7900 XTX", "expert_coop.iq4_xs/256,128,32"): 0.51,
    ("Radeon PRO W7900", "expert_coop.iq4_xs/256,128,32"): 0.51,
    # Each unit of the row of all places finds its expert's row by 64-bit arithmetic, some 50 slots of 140.
    ("Instinct MI210", "expert_own_mxfp4"): 0.87,
    ("Instinct MI210", "expert_own_iq4_xs"): 0.79,
}


# Cards whose compute units are another's.
LIKE = {"Radeon AI PRO R9700": "RX 9070 XT", "RX 9060 XT": "RX 9070 XT", "RX 7900 XT": "RX 7900 XTX", "Radeon 890M": "Radeon 8060S"}


def exception(card, kernel):
    card = LIKE.get(card, card)
    fits = [(start, share) for (of, start), share in EXCEPTIONS.items() if of == card and kernel.startswith(start)]
    return max(fits, key=lambda fit: len(fit[0]), default=(None, None))[1]


def check(got):
    """Lines that say what was found, and how many kernels fail."""
    lines, failed, seen, excepted = [], 0, 0, 0
    for card in got.cards:
        for kernel, form in got.of(card):
            if kernel.decode is not None:
                share, wanted = model.decode_share(kernel, card, got.bytes[form])["share"], DECODE_OF.get(card["name"], DECODE)
            elif kernel.prompt is not None and not SMALL_TILES.match(kernel.name) and not CHOICES.match(kernel.name):
                share, wanted = model.prompt_share(kernel, card)["share"], PROMPT
            else:
                continue
            seen += 1
            if share >= wanted:
                continue
            known = exception(card["name"], kernel.name)
            excepted += known is not None
            # Compilers differ a bit from one another.
            if known is None or share < known - 0.02:
                failed += 1
                lines.append(f"amd-speed: {kernel.name} on {card['name']} could reach {100 * share:.0f} % and should "
                             f"{100 * (wanted if known is None else known):.0f} %")
    lines.append(f"amd-speed: {seen} kernels on {len(got.cards)} cards, {excepted} known exceptions, {failed} fail")
    return lines, failed
