"""Kernels of Mesa's AMD compiler, as tools/vulkan/vulkan-report lists them, as tools/amd/amd-speed wants them."""
import re

import amd_speed_isa as isa
import amd_speed_model as model

# Targets of the stand-ins; strix1 is listed by name.
TARGETS = {"vangogh": "gfx1033", "navi21": "gfx1030", "navi31": "gfx1100", "navi33": "gfx1102", "strix1": "gfx1150",
           "gfx1201": "gfx1201"}
# Matrix products of prompts; attention's kernels for matrix units have other specialization constants.
PROMPT_PRODUCTS = tuple(f"{of}_coop{form}" for of in ("linear", "gated", "expert") for form in ("", "_int8", "_int8_halves", "_dots", "_dots_halves"))
COLUMNS = 4096  # that tools/micro/vulkan_shaders.cpp has kernels of one row for


def streams_of(stem, numbers):
    """Streams of weights of a turn of the loop around; 0: no kernel of one row that counts."""
    if stem in ("linear_dot_own", "gated_dot_own") and len(numbers) > 5 and numbers[4] == COLUMNS:
        return numbers[1] * (2 if stem == "gated_dot_own" else 1)
    # Kernels for columns that are a multiple of four.
    if stem in ("linear_vec", "gated_vec") and numbers[2:4] == [1, 1]:
        return numbers[1] * (2 if stem == "gated_vec" else 1)
    return 0


def read(path, device, formats):
    """(kernel, format) of a listing."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        head, _, listing = part.partition("\n")
        named = re.match(r"(\w+)\.(\w+)/\d+/\d+/([\d,]*)", head)
        if not named or named[2] not in formats:
            continue
        numbers = [int(n) for n in named[3].split(",") if n]
        streams, prompt = streams_of(named[1], numbers), named[1] in PROMPT_PRODUCTS
        if not streams and not (prompt and len(numbers) > 9):
            continue
        fact = {key: int(value) for key, value in re.findall(r"(VGPRs|LDS size|Subgroups per SIMD) (\d+)", head)}
        wave = numbers[9] if prompt else numbers[5] if named[1].endswith("_own") else 64
        kernel = model.Kernel(f"{named[1]}.{named[2]}/{named[3]}", TARGETS[device], wave, fact["VGPRs"], fact["LDS size"],
                              numbers[0], "vulkan", streams, fact["Subgroups per SIMD"] * 32 // wave)
        code = isa.read_mesa(listing)
        if prompt:
            kernel.prompt = model.prompt_loop(code, kernel.rates(), False)
        else:
            kernel.decode = model.decode_loop(code, kernel.rates())
        yield kernel, named[2]


def listing_of(builds, device):
    return next((build / f"vulkan-{device}.code" for build in builds if (build / f"vulkan-{device}.code").exists()), None)
