"""The command architectures of compare_peer.py: perplexity by chunks and best tokens of every tiny golden model."""

import datetime
import os
import re
import sys
import tempfile

from peer_programs import Problem, run
from peer_top1 import first_token, gaps, peer_logprobs, redline_logprobs, sample_text

MIXES = "F32 Q8_0 Q6_K Q5_K_M Q4_K_M Q5_1 Q5_0 Q4_1 Q4_0 IQ4_NL IQ4_XS Q3_K_M Q2_K MXFP4_MOE".split()
SCORED = {"F32": 2e-4, "Q8_0": 0.015, "Q4_K_M": 0.015}  # largest relative difference that is no failure
# Models for which llama.cpp 0.7 computes something else than the models' reference code, which redline is
# tested against.
EXPLAINED = {
    "deepseek2-v2": "llama.cpp ranks groups of experts by their two best, as DeepSeek V3 does; V2 does by the best one.",
    "exaone4": "llama.cpp has windows only in models of 64 layers.",
    "gpt-oss": "llama.cpp rounds the ends of yarn's ramp to whole pairs; this model's configuration says truncate = false.",
    "llama4-chunks": "llama.cpp has chunks of 8192 tokens whatever the file says.",
    "minicpm": "without logit_scale in the file llama.cpp takes the reciprocal of the factor in MiniCPM's code.",
    "phimoe": "llama.cpp takes the softmax's best experts; the models choose by sparse mixer.",
}
GAP = 0.1  # in log-probability: a nearer second token may be the best one elsewhere


def golden_models(folder, only):
    names = sorted(name[:-5] for name in os.listdir(folder) if name.endswith(".gguf"))
    unknown = [name for name in only or [] if name not in names]
    if unknown:
        raise Problem(f"no golden model {unknown[0]}; there are {', '.join(names)}")
    return [name for name in names if not only or name in only]


def architecture(model):
    import gguf

    return gguf.GGUFReader(model).fields["general.architecture"].contents()


def formats(model):
    """The formats of its matrices; in tiny models few rows divide into the blocks of K-quants."""
    import gguf

    return {tensor.tensor_type.name for tensor in gguf.GGUFReader(model).tensors if len(tensor.shape) > 1}


def completed(source, target):
    """A golden model with what files of published converters have and redline does not ask for: a second dimension of 1,
    keys with defaults, no layers that predict further tokens. The source where nothing is missing."""
    import gguf
    import numpy as np

    reader = gguf.GGUFReader(source)
    fields = {field.name: field for field in reader.fields.values() if not field.name.startswith("GGUF.")}
    arch = fields["general.architecture"].contents()
    values = {name: (field.contents(), field.types) for name, field in fields.items()}
    u32, array, i32 = gguf.GGUFValueType.UINT32, gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.INT32
    nextn = values.get(f"{arch}.nextn_predict_layers", (0,))[0]
    added = {}
    layers = values[f"{arch}.block_count"][0] - nextn
    if nextn:
        added[f"{arch}.nextn_predict_layers"] = (0, [u32])
        added[f"{arch}.block_count"] = (layers, [u32])
        added.update({name: (value[:layers], types) for name, (value, types) in values.items()
                      if name.startswith(arch) and isinstance(value, list) and len(value) == layers + nextn})
    if arch == "lfm2moe":
        added.setdefault("lfm2moe.expert_gating_func", (int(gguf.ExpertGatingFuncType.SIGMOID), [u32]))
    if arch in ("qwen35", "qwen35moe"):
        pairs = values[f"{arch}.rope.dimension_count"][0] // 2
        added[f"{arch}.rope.dimension_sections"] = ([pairs - 2 * (pairs // 3), pairs // 3, pairs // 3, 0], [array, i32])
    groups = values.get(f"{arch}.ssm.group_count", (1,))[0]
    beyond = tuple(f"blk.{layer}." for layer in range(layers, layers + nextn))
    tensors = {tensor.name: np.array(tensor.data) for tensor in reader.tensors if not tensor.name.startswith(beyond)}
    odd = [name for name, data in tensors.items() if name.endswith((".ssm_a", ".ssm_d")) and data.ndim == 1
           and arch in ("mamba2", "nemotron_h", "nemotron_h_moe", "granitehybrid")]
    if not added and not odd:
        return source
    writer = gguf.GGUFWriter(target, arch)
    for name, (value, types) in {**values, **added}.items():
        if name != "general.architecture":
            writer.add_key_value(name, value, types[0], sub_type=types[1] if len(types) > 1 else None)
    for name, data in tensors.items():
        if name in odd:
            data = data.reshape(-1, 1)
        elif odd and name.endswith("ssm_norm.weight"):
            data = data.reshape(groups, -1)
        writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def running(text):
    """Chunk -> the perplexity behind it."""
    return {int(chunk): float(value) for chunk, value in re.findall(r"\[(\d+)\]([0-9.]+)", text)}


FLOATS = ("-ctk", "f32", "-ctv", "f32")


def redline_perplexities(programs, model, text, options, *flags):
    values = running(run(programs.redline("eval", "-m", model, "-f", text, "-c", options.context, "-t", options.threads,
                                          "--device", "cpu", "-q", *flags)))
    if not values:
        raise Problem(f"redline eval prints no perplexities of {model}")
    return values


def peer_result(programs, model, text, options, folder, *flags):
    """The result of peer_logprobs(), and the perplexities behind each chunk."""
    printed = []
    for _ in range(3):  # llama-perplexity's logger can lose its last lines when it exits
        given = peer_logprobs(programs, model, text, options, folder, "-t", options.threads, *flags, printed=printed)
        if len(running(printed[-1])) == options.chunks:
            break
    values = max(map(running, printed), key=len)
    if not values:
        raise Problem(f"llama-perplexity prints no perplexities of {model}")
    return given, values


def furthest(ours, theirs):
    return max(abs(ours[chunk] / theirs[chunk] - 1) for chunk in ours.keys() & theirs.keys())


def float_result(programs, model, text, options, folder):
    """The result of peer_result() for the model's weights as floats."""
    floats = os.path.join(folder, "floats.gguf")
    run(programs.peer("llama-quantize", "--allow-requantize", model, floats, "F32"))
    return peer_result(programs, floats, text, options, folder, *FLOATS, "-fa", "off")


def apart_in_floats(programs, model, text, options, folder):
    """The same comparison for the model's weights as floats: its differences do not come from rounding activations."""
    theirs = float_result(programs, model, text, options, folder)[1]
    floats = os.path.join(folder, "floats.gguf")
    return furthest(redline_perplexities(programs, floats, text, options, *FLOATS), theirs)


def compare_mix(programs, source, mix, text, options, folder):
    """{"apart": largest relative difference of the perplexities behind a chunk, "same": best tokens that agree, ...}."""
    import numpy as np

    model = source
    if mix != "F32":
        model = os.path.join(folder, "quantized.gguf")
        run(programs.peer("llama-quantize", source, model, mix))
    flags = FLOATS if mix == "F32" else ()
    off = ("-fa", "off") if flags else ()
    (tokens, first, theirs), spoken = peer_result(programs, model, text, options, folder, *flags, *off)
    result = {"formats": formats(model)}
    if mix in SCORED:
        result["apart"] = furthest(redline_perplexities(programs, model, text, options, *flags), spoken)
        if mix != "F32" and result["apart"] > SCORED[mix]:
            result["floats"] = apart_in_floats(programs, model, text, options, folder)
    ours = redline_logprobs(programs, model, tokens, first, theirs.shape[-1], first_token(source), folder)
    differs = gaps(ours, theirs)
    if mix != "F32" and (differs > GAP).any():  # it may be the peer that is off
        differs = np.minimum(differs, gaps(ours, float_result(programs, model, text, options, folder)[0][2]))
    result.update(positions=differs.size, same=int((ours.argmax(-1) == theirs.argmax(-1)).sum()),
                  far=int((differs > GAP).sum()))
    return result


def why_not_loaded(programs, model):
    """llama-perplexity loses its last lines when it exits; llama-bench does not."""
    try:
        run(programs.peer("llama-bench", "-m", model, "-p", 4, "-n", 0, "-r", 1, "-ngl", 0))
    except Problem as problem:
        return str(problem)
    return ""


def refusal(programs, model, problem):
    lines = (why_not_loaded(programs, model) or str(problem)).splitlines()
    said = [line for line in lines if "error loading model" in line or "unknown" in line]
    return (said or lines[1:] or lines)[0].split("error loading model: ")[-1].strip()


def cell(result):
    text = f"{result['same']}/{result['positions']}"
    if result["far"]:
        text += f" ({result['far']} far)"
    if "floats" in result:
        text = f"[{result['floats']:.1e}] {text}"
    return (f"{result['apart']:.1e} " if "apart" in result else "") + text


def failed(mix, result):
    """True where rounding alone does not explain the difference."""
    return mix in SCORED and result["apart"] > SCORED[mix] and result.get("floats", 1.0) > SCORED["F32"]


def table(results, options, versions):
    """Markdown; `results` are by model, then by mix."""
    lines = [f"{versions}, {datetime.date.today()}. {options.chunks} chunks of {options.context} tokens of the text of "
             "`peer_top1.sample_text`, on the CPU.", "",
             "Largest relative difference of the perplexities behind a chunk (F32, Q8_0, Q4_K_M), then positions of the "
             f"second halves where both have the same best token; far: where the peer prefers another by more than {GAP} "
             "in log-probability, and so it does with the same weights as floats. Bold: more than "
             + ", ".join(f"{100 * limit:g} % in {mix}" for mix, limit in SCORED.items())
             + "; where that is not in F32, in brackets what is left of it when both are given the same weights as floats: "
             "the rest is rounding of activations, which may choose other experts, and bold only where more than the F32 "
             "limit is left.", "",
             "| model | architecture | " + " | ".join(options.mixes) + " | formats in Q4_K_M |",
             "|---|---|" + "---:|" * len(options.mixes) + "---|"]
    for name, (arch, by_mix) in results.items():
        cells = [f"**{cell(by_mix[mix])}**" if failed(mix, by_mix[mix]) else cell(by_mix[mix]) for mix in options.mixes]
        kinds = " ".join(sorted(by_mix["Q4_K_M"]["formats"])) if "Q4_K_M" in by_mix else ""
        lines.append(f"| {name} | {arch} | {' | '.join(cells)} | {kinds} |")
    return lines


def architectures(programs, options):
    from peer_programs import version_line

    results, absent = {}, []
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        text = options.file
        if not text:
            text = os.path.join(folder, "text.txt")
            with open(text, "w", encoding="utf-8") as out:
                out.write(sample_text())
        for name in golden_models(options.models, options.only):
            source = completed(os.path.join(options.models, name + ".gguf"), os.path.join(folder, "completed.gguf"))
            by_mix = {}
            try:
                for mix in options.mixes:
                    by_mix[mix] = compare_mix(programs, source, mix, text, options, folder)
                results[name] = (architecture(source), by_mix)
                print(f"{name}: " + ", ".join(f"{mix} {cell(by_mix[mix])}" for mix in by_mix), file=sys.stderr)
            except Problem as problem:
                absent.append((name, refusal(programs, source, problem)))
                print(f"{name}: {absent[-1][1]}", file=sys.stderr)
    lines = table(results, options, version_line(programs))
    if any(name in EXPLAINED for name in results):
        lines += ["", "Known differences:", "", *(f"* {name}: {EXPLAINED[name]}" for name in results if name in EXPLAINED)]
    if absent:
        lines += ["", "llama.cpp does not load:", "", *(f"* {name}: {why}" for name, why in absent)]
    print("\n".join(lines))
    bad = [f"{name} {mix}" for name, (_, by_mix) in results.items() for mix in by_mix
           if failed(mix, by_mix[mix]) and name not in EXPLAINED]
    if bad:
        raise Problem("too different: " + ", ".join(bad))
