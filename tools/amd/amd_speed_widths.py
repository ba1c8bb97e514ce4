"""tools/amd/amd-speed widths: what steps of one to 64 rows take on each card, as multiples of one row's time.

A step is planned by redline itself (amd_speed_plan.py), for a model of real shapes that is cut to few layers; what the layers take
is multiplied to as many as the model has. Each product's launch takes what amd_speed_steps.py says; any other launch, and each
product beside, what every launch takes (amd_speed_tokens.py). With Vulkan the products of an op stand side by side and count as
one launch. Experts are chosen alike: a step of several rows reads those that so many rows touch.
"""
import dataclasses
import re

import amd_speed_plan as plan
import amd_speed_steps as steps

WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 32, 64)
TARGETS = ((4, 1.25), (8, 1.5), (16, 2.0))  # rows, and at most so many times one row's time, of the dense model
# Predictions that differ by less say nothing of which is faster.
SAME = 1.02
# Shapes, and how many layers the model has.
MODELS = {"llama-3.1-8b": 32, "qwen3-30b-a3b": 48}
# The mix that make_random_model.py knows, and in how many layers it shows all of its kinds.
FORMATS = {"Q4_0": ("Q4_0", 2), "Q4_K_M": ("Q4_K_M", 8), "Q5_K_M": ("Q5_K_M", 8), "Q6_K": ("Q6_K", 2), "Q8_0": ("Q8_0", 2),
           "IQ4_XS": ("IQ4_XS", 8), "MXFP4": ("MXFP4_MOE", 2), "F16": ("F16", 2)}
PRODUCT = re.compile(r"(?:linear|gated|expert|expert_gated)(?:_own|_dot|_vec|_few|_fragments|_coop|_mat|_matrix|_copied|_stream)[_.]")
# Rows of weights, of both matrices of a pair, that a wave has at a time; DECODE in amd_speed_model.py.
HIP_OWN = (("expert_own", 4), ("expert_gated_own", 2), ("linear", 2), ("gated", 2))


@dataclasses.dataclass
class Launch:
    """A product's launch, and what it multiplies."""
    kernel: str
    groups: tuple
    threads: int
    shared: int
    rows: float       # of weights, of all matrices and experts
    cols: int
    bytes: float      # that come from memory
    weight_bytes: float  # of one weight


def is_product(name):
    return bool(PRODUCT.match(name))


# --- what a launch multiplies ----------------------------------------------------------------------------------------------

def launches_of(op, api, rows):
    """(launches of products, how many others there are, how many launches wait for one before)."""
    matrices = [m for m in op["matrices"] if m["count"] > 1] if "expert" in op["op"] else list(op["matrices"])
    products, others, waiting, before = [], 0, 0, False
    for one in op["launches"]:
        if not is_product(one["kernel"]) or not matrices and "expert" not in one["kernel"]:
            others, waiting, before = others + 1, waiting + 1, False
            continue
        taken = take(one["kernel"], matrices, api)
        products.append(Launch(one["kernel"], tuple(one["groups"]), one.get("threads", 0), one.get("shared", 0),
                               *amounts(taken, op, rows, one["kernel"])))
        waiting += not (before and api == "vulkan")
        before = True
    return products, others, waiting


def take(kernel, matrices, api):
    """Those of the matrices that come next which a kernel multiplies with; they are taken from the list."""
    count = 1
    if "gated" in kernel:
        count = 2
    elif api == "hip":
        pair = re.search(r"_own_(?:[a-z]+\d_?[a-z0-9]*_)(q\d_k)$", kernel)
        same = [m["format"] == matrices[0]["format"] for m in matrices]
        count = len(matrices) if pair and len(matrices) > 1 and not all(same) else (same + [False]).index(False)
    taken, matrices[:] = matrices[:count], matrices[count:]
    return taken


def amounts(taken, op, rows, kernel):
    """(rows of weights, columns, bytes from memory, bytes of a weight)."""
    each = sum(m["bytes"] / m["count"] for m in taken)
    weights = sum(m["rows"] * m["cols"] for m in taken)
    times = distinct = 1.0
    if "expert" in op["op"]:
        distinct = op["touched"]
        times = op["used"] * rows if "_own" in kernel else distinct
    return sum(m["rows"] for m in taken) * times, taken[0]["cols"], each * distinct, each / weights


def note_experts(steps_of_plan):
    """How many experts a row uses, and how many each step touches, from the bytes that its ops read."""
    for step in steps_of_plan:
        for op, one in zip(step["ops"], steps_of_plan[0]["ops"]):
            experts = [m for m in op["matrices"] if m["count"] > 1]
            if not experts:
                continue
            each = sum(m["bytes"] / m["count"] for m in experts)
            rest = sum(m["bytes"] for m in op["matrices"] if m["count"] == 1)
            op["used"], op["touched"] = (one["bytes"] - rest) / each, (op["bytes"] - rest) / each


def work_of(launch, api, kernel):
    return (vulkan_work if api == "vulkan" else hip_work)(launch, kernel)


def vulkan_work(launch, kernel):
    numbers, stem = plan.name_numbers(launch.kernel), launch.kernel.split(".")[0]
    threads, pair = numbers[0], 2 if "gated" in stem else 1
    waves, weights = max(1, threads // kernel.wave), launch.rows * launch.cols
    groups = launch.groups[0] * launch.groups[1] * launch.groups[2]
    made = steps.Work(launch.bytes, weights, 1, 0, groups)
    kind = stem.rsplit("_", 1)[1]
    if stem.endswith("_own"):
        streams = numbers[1] if "expert" not in stem else 1
        made.sets, made.sharing, made.activation = launch.rows / (streams * pair), launch.rows / groups, 4.0
    elif kind in ("dot", "vec"):
        each = numbers[1] * pair
        made.tokens, made.sets = numbers[2], launch.rows / each
        made.sharing, made.activation = each * waves, 1.5 if kind == "dot" else 4.0
    elif kind in ("few", "coop"):
        made.tokens, made.sets, made.sharing = numbers[2], groups * waves, numbers[1]
        if stem == "expert_coop":
            made.groups = launch.rows / numbers[1]
            made.sets = made.groups * waves
        elif kind == "coop":
            made.tokens *= launch.groups[0]
    elif kind == "fragments":
        made.tokens, made.sets, made.sharing = numbers[1], groups * waves, numbers[5] * numbers[2]
        made.apart, made.row_bytes = numbers[2], launch.weight_bytes * launch.cols
    return made


def few_work(launch, wave):
    """Products by kernels/few.h."""
    few = re.match(r"(linear|gated)_(?:few|copied)_(\d+)_", launch.kernel)
    tokens, gated, waves = int(few[2]), few[1] == "gated", launch.threads // wave
    tiles = (2 if tokens < 32 else 4 if tokens == 32 else 8) if gated else 1 if tokens < 32 else 2
    each = max(1, tiles // waves)  # tiles of a wave
    blocks, groups = launch.rows / (16 * tiles), launch.groups[0]
    return steps.Work(launch.bytes, launch.rows * launch.cols, tokens, blocks * waves, blocks if blocks < 8 * groups else groups,
                      launch.weight_bytes * launch.cols, 16, 16 * each, tiles / each)


def hip_work(launch, kernel):
    """Shapes are those of backends/hip/kernels/few_args.h, and of the constants of its launches."""
    waves, weights = max(1, launch.threads // kernel.wave), launch.rows * launch.cols
    groups = launch.groups[0] * launch.groups[1] * launch.groups[2]
    made = steps.Work(launch.bytes, weights, 1, 0, groups)
    name = launch.kernel
    if "_own_" in name:
        streams = next(streams for stem, streams in HIP_OWN if name.startswith(stem))
        made.sets, made.sharing, made.activation = launch.rows / streams, launch.rows / groups, 4.0
    elif re.match(r"(linear|gated)_(few|copied)_", name):
        made = few_work(launch, kernel.wave)
    elif dot := re.match(r"(linear|gated)_dot_(\d+)_", name):
        made.tokens, made.sets, made.sharing, made.activation = int(dot[2]), launch.rows / 2, 2 * waves, 1.5
    elif tile := re.match(r"(linear|gated|expert|expert_gated)_matrix_(128|wide|64|32)?", name):
        made.tokens = 32 if tile[2] == "32" else 64 if "expert" in tile[1] or tile[2] == "64" else 128 * launch.groups[0]
        made.sharing = 64 if tile[2] in ("wide", "64") else 128
        made.groups = launch.rows / made.sharing if "expert" in tile[1] else groups
        made.sets = made.groups * waves
    return made


# --- steps -----------------------------------------------------------------------------------------------------------------

def with_layers(step, more_layers):
    """(op, how often the model has it): between the first and the last that have weights of layers more often than the plan."""
    of_layers = [i for i, op in enumerate(step["ops"]) if any(m["name"].startswith("blk.") for m in op["matrices"])]
    return [(op, more_layers if of_layers[0] <= i <= of_layers[-1] else 1.0) for i, op in enumerate(step["ops"])]


def step_seconds(step, api, more_layers, seconds_of, every_launch):
    """The seconds of a planned step: its products, and its launches that wait."""
    total = 0.0
    for op, times in with_layers(step, more_layers):
        products, _, waiting = launches_of(op, api, step["rows"])
        total += times * (waiting * every_launch + sum(map(seconds_of, products)))
    return total


class Widths:
    """Predicted steps of a model on a card."""

    def __init__(self, plans, tools):
        self.plans, self.tools, self.known = plans, tools, {}

    def kernels(self, device, steps_of_plan, listing):
        """Machine code of all products, by name; None: it has no loop that could be read."""
        if listing:
            return plan.read_listing(listing, self.tools["target"])
        names = {one["kernel"] for step in steps_of_plan for op in step["ops"] for one in op["launches"] if is_product(one["kernel"])}
        known = self.known.setdefault(device, {})
        missing = names - set(known)
        known.update(dict.fromkeys(missing) | plan.read_objects(self.plans.build, device, missing, self.tools))
        return known

    def of(self, card, api, shape, form, compiled_for):
        """A row for each width."""
        mix, layers = FORMATS[form]
        made, listing = self.plans.plan(card, api, shape, mix, layers)
        note_experts(made["steps"])
        self.tools["target"] = card["target"]
        code = self.kernels(compiled_for, made["steps"], listing)
        rows = [self.step(card, api, step, code, MODELS[shape] / layers) for step in made["steps"]]
        for row in rows:
            row.update({"card": card["name"], "api": api, "model": shape, "format": form, "multiple": row["ms"] / rows[0]["ms"],
                        "share": row["GB"] / row["ms"] * 1e3 / card["bandwidth_gbs"]})
        for row in rows:
            row["slower than"] = next((other["rows"] for other in rows if other["rows"] > row["rows"] and
                                       row["ms"] > other["ms"] * SAME), None)
            dense = shape == "llama-3.1-8b"
            limit = next((most for width, most in TARGETS if row["rows"] <= width), None) if dense else None
            row["above"] = limit if limit and row["rows"] > 1 and row["multiple"] > limit else None
        return rows

    def step(self, card, api, step, code, more_layers):
        details, size, launches = {}, 0.0, 0.0
        for op, times in with_layers(step, more_layers):
            size += times * op["bytes"]
            launches += times * len(op["launches"])
            for launch in launches_of(op, api, step["rows"])[0]:
                self.add(details, launch, api, card, code.get(launch.kernel), times)

        def seconds_of(launch):
            one = details[launch.kernel, launch.rows, launch.cols]
            return one["us"] / one["launches"] * 1e-6

        total = step_seconds(step, api, more_layers, seconds_of, steps.every_launch(card, api))
        return {"rows": step["rows"], "ms": total * 1e3, "GB": size / 1e9, "launches": round(launches),
                "kernels": sorted(details.values(), key=lambda one: -one["us"])}

    def add(self, details, launch, api, card, kernel, times):
        if kernel is None:
            plan.fail(f"the loop of {launch.kernel} cannot be read in its machine code")
        lds = launch.shared + kernel.lds if api == "hip" else kernel.lds
        got = steps.launch_seconds(kernel, card, work_of(launch, api, kernel), lds)
        one = details.setdefault((launch.kernel, launch.rows, launch.cols), {
            "kernel": launch.kernel, "rows": round(launch.rows), "cols": launch.cols, "launches": 0.0, "us": 0.0, "by": got["by"],
            "waves": got["waves"], "vgprs": kernel.vgprs, "spills": got["spills"],
            **{f"us by {name}": seconds * 1e6 for name, seconds in got["bounds"].items()}})
        one["launches"] += times
        one["us"] += times * got["seconds"] * 1e6


# --- tables ----------------------------------------------------------------------------------------------------------------

def cell(row):
    text = f"{row['multiple']:.2f}" if row["rows"] > 1 else f"{row['ms']:.2f}"
    return text + ("!" if row["above"] else "") + (f" >{row['slower than']}" if row["slower than"] else "")


def tables(all_rows):
    """Markdown: a table for each card and interface, two lines for each model and format."""
    widths = sorted({row["rows"] for rows in all_rows for row in rows})
    card = None
    for rows in all_rows:
        if (rows[0]["card"], rows[0]["api"]) != card:
            card = rows[0]["card"], rows[0]["api"]
            yield f"\n## {card[0]}, {'HIP' if card[1] == 'hip' else 'Vulkan'}\n"
            yield "| model | " + " | ".join(f"{w}, ms" if w == 1 else str(w) for w in widths) + " |"
            yield "|---|" + "---:|" * len(widths)
        yield f"| {rows[0]['model']} {rows[0]['format']} | " + " | ".join(map(cell, rows)) + " |"
        yield "| | " + " | ".join(f"{100 * row['share']:.0f} %" for row in rows) + " |"


def explained(rows, width):
    """The kernels of a step, the longest first."""
    for row in rows:
        if row["rows"] != width:
            continue
        for one in row["kernels"]:
            yield {"card": row["card"], "api": row["api"], "format": row["format"], **{
                key: round(value, 1) if isinstance(value, float) else value for key, value in one.items()}}
