"""GGUF files, read and written with numpy alone: what is not changed stays as it is, byte for byte."""

import struct
from dataclasses import dataclass

import numpy as np

F32, F16, Q4_0, Q8_0, Q3_K = 0, 1, 2, 8, 11
# Values and bytes of a block.
BLOCKS = {F32: (1, 4), F16: (1, 2), Q4_0: (32, 18), Q8_0: (32, 34), Q3_K: (256, 110)}
ALIGNMENT = 32
U32, TEXT, ARRAY = 4, 8, 9
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


@dataclass
class Tensor:
    name: str
    shape: tuple  # rows before columns
    kind: int
    data: bytes

    def values(self):
        raw, (_, size) = np.frombuffer(self.data, np.uint8), BLOCKS[self.kind]
        if self.kind in (F32, F16):
            return raw.view(np.float32 if self.kind == F32 else np.float16).astype(np.float32).reshape(self.shape)
        if self.kind != Q8_0:
            raise ValueError(f"tensor {self.name} has type {self.kind}; F32, F16 and Q8_0 can be read here")
        blocks = raw.reshape(-1, size)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        return (scale * blocks[:, 2:].view(np.int8).astype(np.float32)).reshape(self.shape)


class GgufFile:
    """Metadata as (name, bytes of type and value), in the file's order, and tensors."""

    def __init__(self, path):
        self.raw, self.at = path.read_bytes(), 0
        magic, self.version, tensors, entries = self.take("<4sIQQ")
        if magic != b"GGUF" or self.version != 3:
            raise ValueError(f"{path}: not a GGUF file of version 3")
        self.entries = {}
        for _ in range(entries):
            name, begin = self.text(), self.at
            self.value(*self.take("<I"))
            self.entries[name] = self.raw[begin:self.at]
        infos = []
        for _ in range(tensors):
            name = self.text()
            sizes = self.take(f"<{self.take('<I')[0]}Q")
            infos.append((name, tuple(reversed(sizes)), *self.take("<IQ")))
        begin = -(-self.at // ALIGNMENT) * ALIGNMENT
        self.tensors = {}
        for name, shape, kind, offset in infos:
            per, size = BLOCKS[kind]
            count = int(np.prod(shape)) // per * size
            self.tensors[name] = Tensor(name, shape, kind, self.raw[begin + offset:begin + offset + count])

    def take(self, form):
        values = struct.unpack_from(form, self.raw, self.at)
        self.at += struct.calcsize(form)
        return values

    def text(self):
        length, = self.take("<Q")
        self.at += length
        return self.raw[self.at - length:self.at].decode()

    def value(self, kind):
        if kind == TEXT:
            return self.text()
        if kind == ARRAY:
            kind, count = self.take("<IQ")
            return [self.value(kind) for _ in range(count)]
        return self.take("<" + NUMBERS[kind])[0]

    def __getitem__(self, name):
        raw, at, self.raw, self.at = self.raw, self.at, self.entries[name], 0
        try:
            return self.value(*self.take("<I"))
        finally:
            self.raw, self.at = raw, at

    def set_u32(self, name, value, behind=None):
        """Changes an entry or adds one behind another."""
        entry = struct.pack("<II", U32, value)
        if name in self.entries:
            self.entries[name] = entry
            return
        self.entries = {n: v for one, held in self.entries.items()
                        for n, v in ([(one, held), (name, entry)] if one == behind else [(one, held)])}

    def add(self, tensor):
        self.tensors[tensor.name] = tensor

    def save(self, path):
        text = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()
        out = [struct.pack("<4sIQQ", b"GGUF", self.version, len(self.tensors), len(self.entries))]
        out += [text(name) + held for name, held in self.entries.items()]
        padded = lambda size: -(-size // ALIGNMENT) * ALIGNMENT
        offset = 0
        for t in self.tensors.values():
            out.append(text(t.name) + struct.pack(f"<I{len(t.shape)}QIQ", len(t.shape), *reversed(t.shape), t.kind, offset))
            offset += padded(len(t.data))
        head = b"".join(out)
        parts = [head.ljust(padded(len(head)), b"\0")] + [t.data.ljust(padded(len(t.data)), b"\0") for t in self.tensors.values()]
        path.write_bytes(b"".join(parts))
