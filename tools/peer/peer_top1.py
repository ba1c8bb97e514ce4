"""The command top1 of compare_peer.py: the best token at every position, for tiny models of every type."""

import os
import struct
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden"))
from peer_programs import Problem, run

# Our name of a type -> the file mix that, made "pure", consists of it.
PURE_MIX = {"MXFP4": "MXFP4_MOE", "IQ2_S": "IQ2_M", "Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}
TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
         "IQ4_NL", "IQ4_XS", "IQ3_S", "IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_S", "IQ1_M",
         "TQ1_0", "TQ2_0", "MXFP4", "Q1_0", "Q2_0"]
NEED_IMPORTANCE = {"IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_S", "IQ1_M"}


def sample_text():
    """About 1000 characters, some of them not ASCII."""
    words = zip("quick old small red wet".split(), "fox hare train kite house".split(),
                "sea town bed the park Z\u00fcrich".split())
    return "\n".join(f"Line {i}: the {a} {b} of {i * 37 % 101} went to {c}, it's {i * i}." for i, (a, b, c) in
                     enumerate(list(words) * 8))


def quantized(programs, source, kind, folder, text):
    """Makes a file of one type with llama-quantize; without quality in mind."""
    target = os.path.join(folder, kind + ".gguf")
    flags = ["--pure"]
    if kind in NEED_IMPORTANCE:
        matrix = os.path.join(folder, "importance.gguf")
        if not os.path.exists(matrix):
            run(programs.peer("llama-imatrix", "-m", source, "-f", text, "-c", 64, "-o", matrix))
        # The matrix does not cover the first and last tensor.
        flags += ["--imatrix", matrix, "--output-tensor-type", "q8_0", "--token-embedding-type", "q8_0"]
    run(programs.peer("llama-quantize", *flags, source, target, PURE_MIX.get(kind, kind)))
    return target


def peer_logprobs(programs, model, text, options, folder, *flags, printed=None):
    """Runs llama-perplexity. Returns the tokens (chunks, context), the first scored position of a chunk and
    the log-probabilities (chunks, positions, vocabulary) after the positions from there to context - 2. What it
    prints is appended to `printed`, if there is one."""
    import numpy as np

    path = os.path.join(folder, "peer.logits")
    said = run(programs.peer("llama-perplexity", "-m", model, "-f", text, "-c", options.context, "--chunks",
                             options.chunks, "--save-all-logits", path, *flags))
    if printed is not None:
        printed.append(said)
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    if data[:8] != b"_logits_":
        raise Problem("llama-perplexity wrote a logits file in another format than is known here")
    # u32 context, i32 vocabulary, i32 chunks, the chunks' tokens; then per position: scale f32, minimum f32
    # and 16-bit steps above the minimum, padded to an even number.
    context, vocab, chunks = struct.unpack_from("<Iii", data, 8)
    tokens = np.frombuffer(data, "<i4", context * chunks, 20).reshape(chunks, context)
    first, row = context // 2, 2 * ((vocab + 1) // 2) + 4
    positions = context - 1 - first
    packed = np.frombuffer(data, "<u2", chunks * positions * row, 20 + tokens.nbytes)
    packed = packed.reshape(chunks, positions, row)
    scale = np.ascontiguousarray(packed[..., :2]).view("<f4")
    minimum = np.ascontiguousarray(packed[..., 2:4]).view("<f4")
    return tokens, first, packed[..., 4:4 + vocab] * scale + minimum


def redline_logprobs(programs, model, tokens, first, vocab, bos, folder):
    """Log-probabilities of `redline eval` for the same tokens at the same positions."""
    import numpy as np

    ids, path = (os.path.join(folder, name) for name in ("ids.txt", "redline.npy"))
    chunks = []
    for chunk in tokens.tolist():
        # Like the peer, start every chunk with the model's first token, if it wants one.
        chunk[0] = chunk[0] if bos is None else bos
        with open(ids, "w", encoding="ascii") as out:
            print(*chunk, file=out)
        run(programs.redline("eval", "-m", model, "--ids", ids, "-c", len(chunk), "--logits", path))
        logits = np.load(path)
        if logits.shape != (len(chunk), vocab):
            raise Problem(f"redline eval wrote logits of shape {logits.shape}, not {(len(chunk), vocab)}")
        chunks.append(logits[first:-1])
    logits = np.stack(chunks).astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def first_token(model):
    """The token that the tokenizer puts before a text, or None."""
    import gguf

    fields = gguf.GGUFReader(model).fields
    adds = fields.get("tokenizer.ggml.add_bos_token")
    return fields["tokenizer.ggml.bos_token_id"].contents() if adds and adds.contents() else None


def gaps(ours, theirs):
    """The difference in log-probability, by `theirs`, between its best token and that of `ours`."""
    import numpy as np

    mine = np.take_along_axis(theirs, ours.argmax(-1)[..., None], -1)[..., 0]
    return theirs.max(-1) - mine


def divergence(ours, theirs):
    """Divergence of `ours` from `theirs` in nats: at the median position, and the mean."""
    import numpy as np

    # The peer writes log-probabilities down to 16 below the best only.
    ours = np.maximum(ours, theirs.min(-1, keepdims=True))
    nats = (np.exp(theirs) * (theirs - ours)).sum(-1)
    return float(np.median(nats)), float(nats.mean())


def top1(programs, options):
    import make_tiny_model as tiny

    programs.redline(), programs.peer("llama-quantize")
    names = options.only or list(tiny.MODELS)
    unknown = [name for name in names if name not in tiny.MODELS]
    if unknown:
        raise Problem(f"no tiny model {unknown[0]}; there are {', '.join(tiny.MODELS)}")
    results = {}
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        text = options.file
        if not text:
            text = os.path.join(folder, "text.txt")
            with open(text, "w", encoding="utf-8") as out:
                out.write(sample_text())
        for index, (name, model) in enumerate(tiny.MODELS.items()):
            if name not in names:
                continue
            source = os.path.join(folder, name + ".gguf")
            model = tiny.for_kquants(model)
            tiny.write_gguf(source, name, model, tiny.Weights(model, [tiny.SEED, index]))
            for kind in options.types:
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    result = compare_one(programs, source, kind, place, text, options)
                results[name, kind] = {**result, "experts": model.experts}
                print(f"{name} {kind}: {verdict(results[name, kind], options)}", file=sys.stderr)
    print(top1_table(results, names, options))
    bad = [key for key, result in results.items() if "**" in verdict(result, options)]
    if bad:
        raise Problem("too different: " + ", ".join(" ".join(key) for key in bad))


def compare_one(programs, source, kind, folder, text, options):
    """Compares redline with the peer, and both with the peer's result for the same weights as floats."""
    import numpy as np

    try:
        model = quantized(programs, source, kind, folder, text)
        tokens, first, theirs = peer_logprobs(programs, model, text, options, folder)
        ours = redline_logprobs(programs, model, tokens, first, theirs.shape[-1], first_token(source), folder)
        floats = os.path.join(folder, "floats.gguf")
        run(programs.peer("llama-quantize", "--allow-requantize", model, floats, "F32"))
        cache = ("-ctk", "f32", "-ctv", "f32", "-fa", "off")
        exact = peer_logprobs(programs, floats, text, options, folder, *cache)[2]
        # Where redline differs from the peer, the peer may be the one that is wrong.
        return {"positions": ours[..., 0].size, "flips": np.minimum(gaps(ours, theirs), gaps(ours, exact)),
                "agree": int((ours.argmax(-1) == theirs.argmax(-1)).sum()),
                "ours": divergence(ours, exact), "theirs": divergence(theirs, exact)}
    except Problem as problem:
        return {"refused" if "cannot decode" in str(problem) else "problem": str(problem)}


def verdict(result, options):
    """One cell of the table; bold when it is a failure."""
    if "agree" not in result:
        return "refused" if "refused" in result else "**error**"
    # A divergence of D comes from errors of about sqrt(2 D) in each logit. Allow 5 deviations.
    (ours, _), (theirs, mean) = result["ours"], result["theirs"]
    limit = max(options.gap, 10 * max(0, mean) ** 0.5)
    far = int((result["flips"] > limit).sum())
    near = result["positions"] - result["agree"] - far
    # Between experts that are nearly tied rounding decides; later values then differ visibly.
    excused = result["positions"] // 50 if result["experts"] else 0
    text = str(result["agree"]) + (f" +{near}" if near else "")
    if far:
        text += f" +{far} far" if far <= excused else f" **+{far} far**"
    apart = f"{ours:.0e}/{theirs:.0e}"
    # The peer's file of log-probabilities is itself good to about 1e-5 nats.
    return f"{text} ({apart})" if ours <= 2 * theirs + 2e-5 else f"{text} (**{apart}**)"


def top1_table(results, names, options):
    positions = max((result.get("positions", 0) for result in results.values()), default=0)
    lines = ["| type | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for kind in options.types:
        cells = [verdict(results[name, kind], options) for name in names]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    lines += ["", f"Of {positions} positions: those where both have the same best token; +n: n more where "
              "they differ by a small gap, by the peer or by its result with the same weights as floats: at "
              f"most {options.gap} in log-probability, or 5 deviations of the peer's error; far: where "
              "it is wider. In brackets: median divergence of redline / of the peer from that float result, "
              "in nats. Bold: far in more positions than near ties of experts explain (2 %), or redline more "
              "than twice as far off as the peer.", ""]
    refused = sorted({kind for (_, kind), result in results.items() if "refused" in result})
    lines += [f"redline refuses {', '.join(refused)}."] if refused else []
    lines += [f"{name} {kind}: {result['problem']}" for (name, kind), result in results.items()
              if "problem" in result]
    return "\n".join(lines)
