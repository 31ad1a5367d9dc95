"""Loads relocatable ELF object code for x86-64 into executable memory.

LLVM's own loaders cost 0.2 to 1 ms an object and need LLVM in the process; a kernel's object has a
handful of sections and relocations of three kinds.  With this loader a process whose kernels are
all in the disk cache never loads LLVM.  `load` raises `Unsupported` for anything unexpected: the
caller then takes LLVM's loader.

Memory: one private mapping per object, written, then made read-only and executable.  It is freed
when the `Image` is collected.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
import weakref
from functools import lru_cache

_SHT_PROGBITS, _SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS = 1, 2, 4, 8
_SHF_ALLOC = 2
_EM_X86_64 = 62
_R_64, _R_PC32, _R_PLT32 = 1, 2, 4
_PAGE = mmap.PAGESIZE
# movabs rax, address; jmp rax
_STUB = b"\x48\xb8%b\xff\xe0"
_STUB_SIZE = 16


class Unsupported(Exception):
    """An object this loader does not understand."""


class Image:
    """Code in memory: `symbols` maps names to addresses.  Freed with the object."""

    def __init__(self, memory: mmap.mmap, symbols: dict[str, int]):
        self.symbols = symbols
        # not at exit: queued programs run until the runtime has shut down
        weakref.finalize(self, memory.close).atexit = False


class _Section:
    __slots__ = (
        "align",
        "data",
        "flags",
        "info",
        "link",
        "name",
        "offset",
        "place",
        "size",
        "type",
    )

    def __init__(self, header: tuple[int, ...]):
        self.name, self.type, self.flags, _, self.offset, self.size = header[:6]
        self.link, self.info, self.align = header[6], header[7], max(1, header[8])
        self.place = -1


def load(data: bytes) -> Image:
    """Maps an object, applies its relocations, makes it executable."""
    if not sys.platform.startswith("linux"):
        raise Unsupported("not Linux")
    sections = _sections(data)
    total = 0
    for section in sections:
        if section.flags & _SHF_ALLOC and section.size:
            if section.type not in (_SHT_PROGBITS, _SHT_NOBITS) and section.type < 0x60000000:
                raise Unsupported(f"section type {section.type}")
            total = -(-total // section.align) * section.align
            section.place = total
            total += section.size
    stubs = -(-total // _STUB_SIZE) * _STUB_SIZE
    symbols = _symbols(data, sections)
    outside = sum(1 for name, section, _ in symbols if section == 0 and name)
    size = max(1, stubs + outside * _STUB_SIZE)
    memory = mmap.mmap(-1, -(-size // _PAGE) * _PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    view = ctypes.c_char.from_buffer(memory)
    base = ctypes.addressof(view)
    del view
    for section in sections:
        if section.place >= 0 and section.type != _SHT_NOBITS:
            end = section.offset + section.size
            memory[section.place : section.place + section.size] = data[section.offset : end]
    addresses = _place_symbols(memory, base, stubs, sections, symbols)
    _relocate(memory, base, data, sections, addresses)
    protect = _libc().mprotect
    if protect(ctypes.c_void_p(base), len(memory), mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise Unsupported("the system refuses executable memory")
    named = {
        name: address
        for (name, section, _), address in zip(symbols, addresses, strict=True)
        if name and section != 0
    }
    return Image(memory, named)


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@lru_cache(maxsize=1)
def _libm() -> ctypes.CDLL:
    return ctypes.CDLL("libm.so.6")


def _sections(data: bytes) -> list[_Section]:
    if data[:6] != b"\x7fELF\x02\x01":
        raise Unsupported("not 64-bit little-endian ELF")
    kind, machine = struct.unpack_from("<HH", data, 16)
    if kind != 1 or machine != _EM_X86_64:
        raise Unsupported(f"ELF type {kind} for machine {machine}")
    (table,) = struct.unpack_from("<Q", data, 40)
    entry, count = struct.unpack_from("<HH", data, 58)
    return [
        _Section(struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry)) for i in range(count)
    ]


def _symbols(data: bytes, sections: list[_Section]) -> list[tuple[str, int, int]]:
    """(name, section index, value) of each symbol; section 0: defined elsewhere."""
    table = next((s for s in sections if s.type == _SHT_SYMTAB), None)
    if table is None:
        raise Unsupported("no symbols")
    names = sections[table.link].offset
    result = []
    for position in range(table.size // 24):
        name, info, _, section, value, _ = struct.unpack_from(
            "<IBBHQQ", data, table.offset + position * 24
        )
        end = data.index(b"\0", names + name)
        text = data[names + name : end].decode()
        if section >= 0xFF00 and info & 15 != 4:  # 4: the source file's name
            raise Unsupported("special symbol")
        result.append((text, section, value))
    return result


def _place_symbols(
    memory: mmap.mmap, base: int, stubs: int, sections: list[_Section],
    symbols: list[tuple[str, int, int]],
) -> list[int]:  # fmt: skip
    """The address of each symbol; one from outside gets a jump to it within reach."""
    addresses = []
    for name, section, value in symbols:
        if section == 0:
            if not name:
                addresses.append(0)
                continue
            code = _STUB % struct.pack("<Q", _outside(name))
            memory[stubs : stubs + len(code)] = code
            addresses.append(base + stubs)
            stubs += _STUB_SIZE
        elif section >= len(sections) or sections[section].place < 0:
            addresses.append(0)
        else:
            addresses.append(base + sections[section].place + value)
    return addresses


def _outside(name: str) -> int:
    for library in (_libm, _libc):
        function = getattr(library(), name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise Unsupported(f"unknown symbol {name}")


def _relocate(
    memory: mmap.mmap, base: int, data: bytes, sections: list[_Section], addresses: list[int]
) -> None:
    for table in sections:
        if table.type != _SHT_RELA or sections[table.info].place < 0:
            continue
        place = sections[table.info].place
        for position in range(table.size // 24):
            offset, info, addend = struct.unpack_from("<QQq", data, table.offset + position * 24)
            target = addresses[info >> 32]
            kind = info & 0xFFFFFFFF
            if not target:
                raise Unsupported("relocation against a section that is not loaded")
            where = place + offset
            value = target + addend
            if kind in (_R_PC32, _R_PLT32):
                value -= base + where
                if not -(1 << 31) <= value < 1 << 31:
                    raise Unsupported("relocation out of range")
                struct.pack_into("<i", memory, where, value)
            elif kind == _R_64:
                struct.pack_into("<Q", memory, where, value)
            else:
                raise Unsupported(f"relocation {kind}")
