"""The demo model: the llama architecture, small. Names of the weights are those of GGUF."""

import math
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Shape:
    vocab: int = 3584
    dim: int = 512
    layers: int = 5
    heads: int = 8
    kv_heads: int = 2
    ffn: int = 768
    context: int = 2048
    rope_base: float = 10000.0
    eps: float = 1e-5
    dropout: float = 0.08

    @property
    def head_dim(self):
        return self.dim // self.heads

    def facts(self):
        return asdict(self)


class Norm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight.type_as(x)


def rotate(x, cos, sin):
    """Rope on neighbouring pairs, as GGUF's llama has it: no permutation is needed when exporting."""
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Layer(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.s = s
        self.attn_norm, self.ffn_norm = Norm(s.dim, s.eps), Norm(s.dim, s.eps)
        self.attn_q = nn.Linear(s.dim, s.heads * s.head_dim, bias=False)
        self.attn_k = nn.Linear(s.dim, s.kv_heads * s.head_dim, bias=False)
        self.attn_v = nn.Linear(s.dim, s.kv_heads * s.head_dim, bias=False)
        self.attn_output = nn.Linear(s.heads * s.head_dim, s.dim, bias=False)
        self.ffn_gate = nn.Linear(s.dim, s.ffn, bias=False)
        self.ffn_up = nn.Linear(s.dim, s.ffn, bias=False)
        self.ffn_down = nn.Linear(s.ffn, s.dim, bias=False)

    def attend(self, x, cos, sin):
        s, (rows, length, _) = self.s, x.shape
        heads = lambda y, n: y.view(rows, length, n, s.head_dim).transpose(1, 2)
        q = rotate(heads(self.attn_q(x), s.heads), cos, sin)
        k = rotate(heads(self.attn_k(x), s.kv_heads), cos, sin)
        v = heads(self.attn_v(x), s.kv_heads)
        share = s.heads // s.kv_heads
        k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.attn_output(y.transpose(1, 2).reshape(rows, length, -1))

    def forward(self, x, cos, sin):
        drop = lambda y: F.dropout(y, self.s.dropout, self.training)
        x = x + drop(self.attend(self.attn_norm(x), cos, sin))
        h = self.ffn_norm(x)
        return x + drop(self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h)))


class Model(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.s = s
        self.token_embd = nn.Embedding(s.vocab, s.dim)
        self.blk = nn.ModuleList(Layer(s) for _ in range(s.layers))
        self.output_norm = Norm(s.dim, s.eps)
        frequencies = s.rope_base ** (-torch.arange(0, s.head_dim, 2).float() / s.head_dim)
        angles = torch.outer(torch.arange(s.context).float(), frequencies)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                deep = name.endswith(("attn_output.weight", "ffn_down.weight"))
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * s.layers) if deep else 0.02)

    def hidden(self, tokens, half=True):
        """The residual behind the last norm, of which an MTP head guesses further tokens; on a GPU in bfloat16."""
        length = tokens.shape[1]
        x = F.dropout(self.token_embd(tokens), self.s.dropout, self.training)
        if half and x.is_cuda:
            x = x.bfloat16()
        for layer in self.blk:
            x = layer(x, self.cos[:length], self.sin[:length])
        return self.output_norm(x)

    def forward(self, tokens):
        return F.linear(self.hidden(tokens), self.token_embd.weight)
