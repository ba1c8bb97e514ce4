"""The demo model's MTP head: one more layer, which reads the trunk's hidden row of a token beside the embedding of the
next one and guesses the one behind. A further guess reads the head's hidden row of the guess before (a chain).
Weights have the names that GGUF gives them in the block."""

import math

import torch
import torch.nn.functional as F

import low_bits
from gguf_file import F32, Tensor
from model import Model, Shape, rotate

# Five bits or more would make the file larger than 13 MB; three for what suffers least.
FORMATS = {"nextn.eh_proj": low_bits.FourBits, "attn_q": low_bits.ThreeBits, "attn_k": low_bits.ThreeBits,
           "attn_v": low_bits.ThreeBits, "attn_output": low_bits.FourBits, "ffn_gate": low_bits.ThreeBits,
           "ffn_up": low_bits.ThreeBits, "ffn_down": low_bits.ThreeBits}
NORMS = ("nextn.enorm", "nextn.hnorm", "attn_norm", "ffn_norm", "nextn.shared_head_norm")


def leave_out_head(file):
    """The file as it was without a head."""
    layers = file["llama.block_count"]
    if "llama.nextn_predict_layers" in file.entries:
        layers -= file["llama.nextn_predict_layers"]
        file.tensors = {name: t for name, t in file.tensors.items() if not name.startswith("blk.") or int(name.split(".")[1]) < layers}
        del file.entries["llama.nextn_predict_layers"]
        file.set_u32("llama.block_count", layers)
    return file


def read_trunk(file):
    key = lambda name: file["llama." + name]
    shape = Shape(vocab=key("vocab_size"), dim=key("embedding_length"), layers=key("block_count"), heads=key("attention.head_count"),
                  kv_heads=key("attention.head_count_kv"), ffn=key("feed_forward_length"), context=key("context_length"),
                  rope_base=key("rope.freq_base"), eps=key("attention.layer_norm_rms_epsilon"), dropout=0.0)
    model = Model(shape)
    model.load_state_dict({name: torch.from_numpy(t.values()) for name, t in file.tensors.items()})
    return model.eval().requires_grad_(False)


def first_weights(trunk):
    """The head begins as the trunk's last layer, which reads the sum of both inputs."""
    s, last = trunk.s, trunk.blk[-1]
    weights = {name: getattr(last, name).weight.detach().clone().float() for name in FORMATS if not name.startswith("nextn.")}
    weights |= {name: getattr(last, name).weight.detach().clone().float() for name in ("attn_norm", "ffn_norm")}
    one = torch.eye(s.dim, device=last.attn_norm.weight.device)
    weights["nextn.eh_proj"] = torch.cat((one, one), 1) * 0.5 + torch.randn(s.dim, 2 * s.dim, device=one.device) * 0.01
    for name in ("nextn.enorm", "nextn.hnorm"):
        weights[name] = torch.ones(s.dim, device=one.device)
    weights["nextn.shared_head_norm"] = trunk.output_norm.weight.detach().clone().float()
    return {name: w.requires_grad_(True) for name, w in weights.items()}


class Rounding:
    """Weights as their formats store them; gradients pass through. Scales are searched anew every few steps."""

    def __init__(self, every):
        self.every, self.steps, self.scales = every, 0, {}

    def __call__(self, weights, rounded=True):
        if not rounded:
            return {name: w * 1.0 if name in FORMATS else w for name, w in weights.items()}
        if self.steps % self.every == 0:
            self.scales = {name: FORMATS[name].scales(weights[name]) for name in FORMATS}
        self.steps += 1
        return {name: w + (FORMATS[name].rounded(w.detach(), self.scales[name]) - w.detach()) if name in FORMATS else w
                for name, w in weights.items()}


def norm(x, gain, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * gain.to(x.dtype)


def shifted(x, rows):
    """Row r becomes that of r - rows; rows run along dimension -2."""
    return F.pad(x, (0, 0, rows, 0))[..., :x.shape[-2], :] if rows else x


def attend(q, keys, values):
    """Step k of a chain sees the rows of step 1 up to its row - k + 1, and one row of each step since."""
    steps, length = len(keys), q.shape[-2]
    scale = 1.0 / math.sqrt(q.shape[-1])
    rows = torch.arange(length, device=q.device)
    unseen = rows[None, :] > rows[:, None] - (steps - 1)
    scores = ((q @ keys[0].transpose(-1, -2)).float() * scale).masked_fill(unseen, -1e30)
    later = [(shifted(keys[j], steps - 1 - j), shifted(values[j], steps - 1 - j)) for j in range(1, steps)]
    single = [(q * k).sum(-1, keepdim=True, dtype=torch.float32) * scale for k, _ in later]
    top = scores.amax(-1, keepdim=True)
    for one in single:
        top = torch.maximum(top, one)
    shares = (scores - top).exp()
    total, out = shares.sum(-1, keepdim=True), (shares.to(q.dtype) @ values[0]).float()
    for one, (_, v) in zip(single, later):
        share = (one - top).exp()
        total, out = total + share, out + share * v.float()
    return (out / total).to(q.dtype)


def head_step(w, s, embedded, below, cos, sin, keys, values):
    """The head's hidden rows of one step of the chain; its keys and values join those of the steps before."""
    x = F.linear(torch.cat((norm(embedded, w["nextn.enorm"], s.eps), norm(below, w["nextn.hnorm"], s.eps)), -1), w["nextn.eh_proj"])
    rows, length, _ = x.shape
    heads = lambda y, n: y.view(rows, length, n, s.head_dim).transpose(1, 2)
    h = norm(x, w["attn_norm"], s.eps)
    share = s.heads // s.kv_heads
    q = rotate(heads(F.linear(h, w["attn_q"]), s.heads), cos, sin)
    keys.append(rotate(heads(F.linear(h, w["attn_k"]), s.kv_heads), cos, sin).repeat_interleave(share, 1))
    values.append(heads(F.linear(h, w["attn_v"]), s.kv_heads).repeat_interleave(share, 1))
    x = x + F.linear(attend(q, keys, values).transpose(1, 2).reshape(rows, length, -1), w["attn_output"])
    h = norm(x, w["ffn_norm"], s.eps)
    x = x + F.linear(F.silu(F.linear(h, w["ffn_gate"])) * F.linear(h, w["ffn_up"]), w["ffn_down"])
    return norm(x, w["nextn.shared_head_norm"], s.eps)


def chain(w, trunk, tokens, hidden, steps):
    """The logits of each step. Row r has read token r + 1; step 1 guesses the token behind it from the trunk's
    row r, step k from the head's row r - 1 of the step before: its first k - 1 rows mean nothing."""
    s, length = trunk.s, tokens.shape[1] - 1
    embedded = trunk.token_embd(tokens[:, 1:]).to(hidden.dtype)
    cos, sin = trunk.cos[:length], trunk.sin[:length]
    below, keys, values, logits = hidden[:, :-1], [], [], []
    for _ in range(steps):
        out = head_step(w, s, embedded, below, cos, sin, keys, values)
        logits.append(F.linear(out, trunk.token_embd.weight))
        below = shifted(out, 1)
    return logits


def add_head(file, weights, layers):
    """The tensors and keys of the head, rounded as they are stored, join those of the trunk's file."""
    for name in ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down",
                 "nextn.eh_proj", "nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"):
        w, form = weights[name].detach().float().cpu(), FORMATS.get(name)
        data = form.packed(w, form.scales(w)) if form else w.numpy().tobytes()
        file.add(Tensor(f"blk.{layers}.{name}.weight", tuple(w.shape), form.kind if form else F32, data))
    file.set_u32("llama.block_count", layers + 1)
    file.set_u32("llama.nextn_predict_layers", 1, behind="llama.block_count")
