"""Mutators: small changes of the values, the structure or the bytes of a file.

A file is taken apart as far as its format is known, so that most changes reach what is behind the
parser: JSON and JSON Lines, CSV and other lines, TOML, SQLite, protobuf, gzip and saved traces.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import sqlite3
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

NUMBERS: Final = (
    *(0, -1, 1, 0.5, -0.0, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)),
    *(10**30, -(10**30), 1e308, -1e308, 1e-308, 1e19, 4_611_686_018_427_386, 9_223_372_036_854_775),
    *(9e15, 8.9e15, 1e15, -9e15, 3e15, 65_536, 1_000_000, 100_000_000),
)
TEXTS: Final = (
    *("", "x" * 300, "\0", "nan", "inf", "-inf", "1e999", "0", "-1", "\ud800", "é", "=1+1", "N/A"),
    *("9223372036854775807", "18446744073709551616", "ProfilerStep#1", "ncclKernel", "[1, 2]", "("),
    *("(?:a|b){500}", "\x1b[31m", "\u202e", "../../x", "%d", "true", "null", "1.5.2", "{}"),
)
CONTAINERS: Final[tuple[Any, ...]] = ([], {}, [[0]], {"a": 1}, [None], [[]] * 3, [1, "a"], [2**63])
SCALARS: Final = (*NUMBERS, *TEXTS, None, True, False, float("nan"), float("inf"))
CELLS: Final = (
    *("text", "", 0.5, 1e308, float("inf"), b"\xff\x00", b"", 0, -1, 1, 2**31, 2**62, 2**63 - 1),
    *(-(2**63), None, "18446744073709551615", "\ud7ff", "x" * 5_000, "a\0b"),
)
TOKENS: Final = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"\\",
        b"\\u",
        b"\\ud800",
        b"null",
        b"NaN",
        b"-inf",
    ),
    *(b"\0\0\0\0", b"\xff\xff", b"\xef\xbb\xbf", b"1e999", b"-9223372036854775808", b"\n", b"\r\n"),
    *(b"99999999999999999999", b"0.-05", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b";"),
    *(b"=", b"'''", b"#", b"\x80" * 10, b"\xff" * 9 + b"\x01", b"\t", b" ", b"\x1b[2J"),
    *(b"9" * 5_000, b"1e9999999", b"[" * 3_000, b'{"a":' * 3_000),
)
_MOST_CHANGES: Final = 3
_LONGEST: Final = 64


def damage(path: Path, chance: random.Random) -> None:
    """Change a file in one to three ways."""
    content = path.read_bytes()
    if content.startswith(b"SQLite format 3\0") and chance.random() < 0.8:
        _database(path, chance)
        return
    for _ in range(chance.randint(1, _MOST_CHANGES)):
        content = changed(content, chance)
    path.write_bytes(content)


def changed(content: bytes, chance: random.Random) -> bytes:
    """Return some content with one change: of its bytes, or of what they stand for."""
    change = bytes_changed if chance.random() < 0.2 else _change_of(content)
    try:
        return change(content, chance)
    except Exception:  # noqa: BLE001 - content that is no longer of the format
        return bytes_changed(content, chance)


def _change_of(content: bytes) -> Callable[[bytes, random.Random], bytes]:
    """Return the mutator of a format, by how the content begins."""
    head = content[:200].lstrip()
    if content.startswith(b"\x1f\x8b"):
        return _packed
    if content.startswith(b"PK\x03\x04"):
        return _archive
    if head.startswith((b"{", b"[")):
        return _json
    if b"\0" in content or (content[:1] and content[0] < 32 and content[:1] not in b"\r\n\t"):
        return _protobuf
    return _lines


def bytes_changed(content: bytes, chance: random.Random) -> bytes:
    """Flip, cut, repeat, move or insert bytes."""
    found = bytearray(content)
    at, length = chance.randrange(len(found) + 1), chance.randrange(_LONGEST)
    match chance.randrange(8):
        case 0:
            del found[at : at + length]
        case 1:
            found[at : at + length] = chance.randbytes(length)
        case 2:
            del found[at:]
        case 3:
            found[at:at] = found[: chance.randrange(200)]
        case 4 if at < len(found):
            found[at] ^= 1 << chance.randrange(8)
        case 5:
            start = chance.randrange(len(found) + 1)
            found[at:at] = found[start : start + length]
        case 6:
            found[at : at + length] = bytes(length)
        case _:
            found[at : at + length] = chance.choice(TOKENS)
    return bytes(found)


def _json(content: bytes, chance: random.Random) -> bytes:
    """Change a document, or one line of JSON Lines."""
    try:
        document = json.loads(content)
    except ValueError:
        lines = content.splitlines(keepends=True)
        at = chance.randrange(len(lines))
        if chance.random() < 0.2:
            return _lines(content, chance)
        lines[at] = json.dumps(tree_changed(json.loads(lines[at]), chance)).encode() + b"\n"
        return b"".join(lines)
    return json.dumps(tree_changed(document, chance)).encode()


def tree_changed(document: Any, chance: random.Random) -> Any:  # noqa: C901, PLR0912 - one a change
    """Change one place of a document, at any depth."""
    inner, others = document, [document]
    if not isinstance(document, dict | list) or not document:
        return chance.choice(SCALARS)
    while True:
        key = chance.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
        value = inner[key]
        if not isinstance(value, dict | list) or not value or chance.random() < 0.15:
            break
        inner = value
        others.append(inner)
    match chance.randrange(9):
        case 0 | 1:
            inner[key] = chance.choice(SCALARS)
        case 2:
            inner[key] = _near(value, chance)
        case 3:
            inner[key] = chance.choice(CONTAINERS)
        case 4:
            del inner[key]
        case 5 if isinstance(inner, dict):
            inner[chance.choice((*TEXTS, *inner))] = inner.pop(key)
        case 5:
            inner[key:key] = [value] * chance.choice((1, 2, 50))
        case 6:
            inner[key] = chance.choice((str(value), [value], {"value": value}, {str(value): key}))
        case 7:
            inner[key] = _elsewhere(document, chance)
        case _:
            for _ in range(chance.choice((3, 200))):
                value = [value]
            inner[key] = value
    return document


def _near(value: Any, chance: random.Random) -> Any:
    """Return a value of the same type that is close, or far in the same direction."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        factor = chance.choice((0, -1, 2, 1000, 10**6, 10**9))
        with contextlib.suppress(OverflowError):
            return chance.choice((value + 1, value - 1, value * factor, chance.choice(NUMBERS)))
        return 0
    text = str(value)
    if re.fullmatch(r"-?\d+(\.\d+)?", text) and chance.random() < 0.7:
        return str(chance.choice(NUMBERS))
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(TEXTS) + text[at:]


def _elsewhere(document: Any, chance: random.Random) -> Any:
    """Return what stands at another place of the document."""
    inner = document
    while isinstance(inner, dict | list) and inner and chance.random() < 0.8:
        inner = chance.choice(list(inner.values()) if isinstance(inner, dict) else inner)
    return json.loads(json.dumps(inner)) if inner is not document else None


def _lines(content: bytes, chance: random.Random) -> bytes:
    """Change a cell, a line or the header of a text of lines."""
    lines = content.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    match chance.randrange(10):
        case 0:
            del lines[at]
        case 1:
            lines[at:at] = [lines[at]] * chance.choice((1, 2, 100))
        case 2:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = bytes_changed(lines[at], chance)
        case _:
            # A cell ends at a separator of any of the formats.
            parts = re.split(rb"([,;=:\t |\[\]\"'()\r\n]+)", lines[at])
            place = 2 * chance.randrange((len(parts) + 1) // 2)
            value = parts[place].decode(errors="replace")
            near = _near(value, chance) if chance.random() < 0.5 else chance.choice(SCALARS)
            parts[place] = str(near).encode(errors="surrogatepass")
            lines[at] = b"".join(parts)
    return b"".join(lines)


def _packed(content: bytes, chance: random.Random) -> bytes:
    """Change what is compressed, and compress it again."""
    return gzip.compress(changed(gzip.decompress(content), chance), compresslevel=1, mtime=0)


def _archive(content: bytes, chance: random.Random) -> bytes:
    """Change an entry of a saved trace in its place, with a new checksum."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
    entry = chance.choice(entries if chance.random() < 0.6 else entries[:1])
    change = _same_length if entry is entries[0] else _value_changed
    return with_entry(content, entry.filename, lambda held: change(held, chance))


def with_entry(content: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """Return an archive with one of its entries changed to other bytes of the same length."""
    found = bytearray(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entry = archive.getinfo(name)
    at = entry.header_offset
    n_name, n_extra = struct.unpack_from("<HH", found, at + 26)
    start = at + 30 + n_name + n_extra
    end = start + entry.file_size
    new = change(bytes(found[start:end]))
    found[start:end] = new
    old, checksum = struct.pack("<I", entry.CRC), struct.pack("<I", zlib.crc32(new))
    found[at + 14 : at + 18] = checksum
    central = bytes(found).rfind(entry.filename.encode()) - 46
    if central > 0 and found[central + 16 : central + 20] == old:
        found[central + 16 : central + 20] = checksum
    return bytes(found)


def _same_length(text: bytes, chance: random.Random) -> bytes:
    """Replace a number, a word or a pair of brackets in JSON by another of the same length."""
    places = list(re.finditer(rb"\d+|null|true|\[\]|\{\}|[a-z_]{3,}", text))
    place = chance.choice(places)
    old = place.group()
    if old.isdigit():
        new = str(
            chance.choice((10 ** len(old) - 1, 10 ** (len(old) - 1), chance.randrange(10**9)))
        )
        new = new[: len(old)].rjust(len(old), "1")
    elif old in (b"[]", b"{}"):
        new = "{}" if old == b"[]" else "[]"
    elif old in (b"null", b"true"):
        new = chance.choice(("null", "true", "1e99", '"ab"', "[{}]"))
    else:
        new = "".join(chance.choice("abcxyz_") for _ in old)
    return text[: place.start()] + new.encode() + text[place.end() :]


def _value_changed(held: bytes, chance: random.Random) -> bytes:
    """Replace a value of an array, or the array by one value."""
    head = 128
    width = chance.choice((1, 2, 4, 8))
    n_values = (len(held) - head) // width
    if n_values < 1:
        return held
    number = chance.choice((0, 1, 2**63, 2**63 - 1, 2**64 - 1, 2**62, 2**31, 5, 10**15, 2**40))
    value = (number & ((1 << (8 * width)) - 1)).to_bytes(width, "little")
    if chance.random() < 0.05:
        return held[:head] + value * n_values + held[head + width * n_values :]
    place = head + width * chance.randrange(n_values)
    return held[:place] + value + held[place + width :]


def _protobuf(content: bytes, chance: random.Random, depth: int = 0) -> bytes:
    """Change one field of a message, at any depth; lengths around it stay right."""
    fields = _fields(content)
    if not fields:
        return bytes_changed(content, chance)
    at = chance.randrange(len(fields))
    number, kind, value = fields[at]
    match chance.randrange(8):
        case 0:
            del fields[at]
        case 1:
            fields[at:at] = [fields[at]] * chance.choice((1, 3, 50))
        case 2:
            fields[at] = (
                chance.choice((number + 1, number - 1, chance.randrange(1, 60))),
                kind,
                value,
            )
        case _ if isinstance(value, int):
            limit = 1 << (32 if kind == 5 else 64)
            near = (value + 1, value - 1, value * 1000, chance.choice(NUMBERS))
            fields[at] = (number, kind, int(chance.choice(near)) % limit)
        case _ if isinstance(value, bytes) and depth < 8 and chance.random() < 0.85:
            inner = _fields(value)
            new = _protobuf(value, chance, depth + 1) if inner else bytes_changed(value, chance)
            fields[at] = (number, kind, new)
        case _:
            fields[at] = (number, 2, chance.choice(TOKENS))
    return b"".join(_field(*field) for field in fields)


def _fields(content: bytes) -> list[tuple[int, int, int | bytes]]:
    """Return the fields of a message; none if it is not one."""
    found: list[tuple[int, int, int | bytes]] = []
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        number, kind = key >> 3, key & 7
        if at < 0 or not number:
            return []
        if kind == 0:
            value, at = _varint(content, at)
            if at < 0:
                return []
            found.append((number, kind, value))
            continue
        length = {1: 8, 5: 4}.get(kind, -1)
        if kind == 2:
            length, at = _varint(content, at)
        if length < 0 or at < 0 or at + length > len(content):
            return []
        held = content[at : at + length]
        found.append((number, kind, held if kind == 2 else int.from_bytes(held, "little")))
        at += length
    return found


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a number and the place after it, which is negative where there is none."""
    value = shift = 0
    while at < len(content) and shift < 70:
        value |= (content[at] & 127) << shift
        shift += 7
        at += 1
        if content[at - 1] < 128:
            return value & (2**64 - 1), at
    return 0, -1


def _field(number: int, kind: int, value: int | bytes) -> bytes:
    key = _number(max(number, 1) << 3 | kind)
    if isinstance(value, bytes):
        return key + _number(len(value)) + value
    return key + (_number(value) if kind == 0 else value.to_bytes(8 if kind == 1 else 4, "little"))


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _database(path: Path, chance: random.Random) -> None:
    """Change cells of a database, or its tables."""
    with (
        contextlib.suppress(sqlite3.Error, UnicodeError),
        contextlib.closing(sqlite3.connect(path)) as database,
        database,
    ):
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA journal_mode = MEMORY")
        for _ in range(chance.randint(1, _MOST_CHANGES)):
            names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            tables = [name for (name,) in database.execute(names)]
            filled = [
                name
                for name in tables
                if database.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()  # noqa: S608
            ]
            _table(database, chance.choice(filled if chance.random() < 0.9 else tables), chance)


def _table(database: sqlite3.Connection, table: str, chance: random.Random) -> None:
    columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    column = chance.choice(columns)
    rows = [row[0] for row in database.execute(f'SELECT rowid FROM "{table}"')]  # noqa: S608
    other = chance.choice(columns)
    match chance.randrange(14):
        case 0:
            database.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
        case 1:
            database.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "other"')
        case 2:
            database.execute(f'DROP TABLE "{table}"')
        case 3:
            database.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}" LIMIT 1')  # noqa: S608
        case 4:
            cell = chance.choice(CELLS)
            database.execute(f'UPDATE "{table}" SET "{column}" = ?', (cell,))  # noqa: S608
        case 5:
            database.execute(f'UPDATE "{table}" SET "{column}" = "{other}"')  # noqa: S608
        case 6 if rows:
            change = f'DELETE FROM "{table}" WHERE rowid = ?'  # noqa: S608
            database.execute(change, (chance.choice(rows),))
        case 7:
            more = chance.choice((1, -1, 2**40, 10**15, -(10**15)))
            change = f'UPDATE "{table}" SET "{column}" = "{column}" + ?'  # noqa: S608
            database.execute(change, (more,))
        case _ if rows:
            change = f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?'  # noqa: S608
            database.execute(change, (chance.choice(CELLS), chance.choice(rows)))
