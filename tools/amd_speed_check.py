"""What kernels should be able to reach, and which cannot: tools/amd-speed check."""
import amd_speed_model as model

FORMATS = ("q4_0", "q4_k", "q5_k", "q6_k", "q8_0", "mxfp4", "iq4_xs", "f16")
DECODE = 0.90
DECODE_OF = {"Instinct MI300X": 0.70}
PROMPT = 0.60
# Tiles of few rows and tokens are for what would leave compute units idle otherwise: their share is reported, and no peak.
SMALL_TILES = ("linear_matrix_64_", "linear_matrix_wide_")
# Kernels that cannot, with the share that they could reach when this was written: (card, start of the name): share.
EXCEPTIONS = {
}


def exception(card, kernel):
    fits = [(start, share) for (of, start), share in EXCEPTIONS.items() if of == card and kernel.startswith(start)]
    return max(fits, key=lambda fit: len(fit[0]), default=(None, None))[1]


def check(got):
    """Lines that say what was found, and how many kernels fail."""
    lines, failed, seen, excepted = [], 0, 0, 0
    for card in got.cards:
        for kernel, form in got.of(card):
            if kernel.decode is not None:
                share, wanted = model.decode_share(kernel, card, got.bytes[form])["share"], DECODE_OF.get(card["name"], DECODE)
            elif kernel.prompt is not None and not kernel.name.startswith(SMALL_TILES):
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
