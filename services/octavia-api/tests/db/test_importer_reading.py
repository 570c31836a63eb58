"""Reading an existing database: pickles that are never executed, and dumps in the forms that mysqldump and mariadb-dump give them."""

import io
import pickle
import pickletools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead_octavia.db.importer import dump
from roadstead_octavia.db.importer.pickled import read_headers
from roadstead_octavia.db.importer.problem import ImportRefused

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
VALUES = st.one_of(TEXTS, st.booleans(), st.none(), st.integers(-(2**31), 2**31 - 1))


@given(st.dictionaries(TEXTS, VALUES, max_size=12), st.integers(0, 5))
def test_every_dict_of_plain_values_reads_as_pickle_wrote_it(headers: dict[str, Any], protocol: int) -> None:
    assert read_headers(pickle.dumps(headers, protocol)) == headers


def test_none_and_repeated_texts_read_back() -> None:
    once = "true"
    assert read_headers(pickle.dumps(None)) is None
    assert read_headers(pickle.dumps({"a": once, "b": once, once: "a"})) == {"a": once, "b": once, once: "a"}


def test_a_pickle_of_python_2_reads_as_text() -> None:
    assert read_headers(b"\x80\x02}q\x01U\x0fX-Forwarded-Forq\x02U\x04trueq\x03s.") == {
        "X-Forwarded-For": "true"
    }
    assert read_headers(b"(dp0\nS'a'\np1\nS'b'\np2\ns.") == {"a": "b"}


class Trap:
    """Unpickling one calls `sprung`."""

    def __reduce__(self) -> Any:
        return (sprung, ())


SPRUNG: list[int] = []


def sprung() -> str:
    SPRUNG.append(1)
    return "x"


@pytest.mark.parametrize("protocol", range(6))
def test_what_would_run_code_is_refused_and_not_run(protocol: int) -> None:
    data = pickle.dumps({"a": Trap()}, protocol)
    assert pickle.loads(data) == {"a": "x"}
    SPRUNG.clear()
    with pytest.raises(ImportRefused, match="instruction"):
        read_headers(data)
    assert SPRUNG == []


@pytest.mark.parametrize(
    "value", [[1], "text", 7, {1: "a"}, {"a": ["b"]}, {"a": {"b": "c"}}, {"a": 1.5}, {"a": b"b"}]
)
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(ImportRefused):
        read_headers(pickle.dumps(value))


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_noise_is_refused_and_never_a_failure(data: bytes) -> None:
    try:
        found = read_headers(data)
    except ImportRefused:
        return
    assert found is None or isinstance(found, dict)


@given(st.data())
def test_a_pickle_with_a_byte_changed_is_a_dict_or_refused(data: st.DataObject) -> None:
    whole = bytearray(
        pickletools.optimize(pickle.dumps({"X-Forwarded-For": "true", "X-Forwarded-Port": "true"}))
    )
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read_headers(bytes(whole))
    except ImportRefused:
        return
    assert found is None or isinstance(found, dict)


# Dumps

CREATE = "CREATE TABLE `t` (\n  `id` varchar(36) NOT NULL,\n  `name` varchar(9) DEFAULT NULL,\n  `n` int(11),\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n"


def read(text: str | bytes, *tables: str) -> list[tuple[str, dict[str, Any]]]:
    raw = text.encode() if isinstance(text, str) else text
    return [(table, dict(row)) for table, row in dump.rows(io.BytesIO(raw), tables or ("t",))]


def quoted(text: bytes) -> bytes:
    for plain, escaped in (
        (b"\\", b"\\\\"),
        (b"'", b"\\'"),
        (b"\0", b"\\0"),
        (b"\n", b"\\n"),
        (b"\r", b"\\r"),
        (b"\x1a", b"\\Z"),
    ):
        text = text.replace(plain, escaped)
    return b"'" + text + b"'"


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.binary(max_size=30), st.one_of(st.none(), st.integers(-(2**40), 2**40))),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 64),
)
def test_any_bytes_come_back_whatever_the_pieces_that_are_read(
    rows: list[tuple[bytes, int | None]], piece: int
) -> None:
    body = b",".join(
        b"("
        + quoted(a)
        + b",_binary "
        + quoted(a)
        + b","
        + (b"NULL" if n is None else str(n).encode())
        + b")"
        for a, n in rows
    )
    text = (
        CREATE.encode()
        + b"-- it's a comment; with `marks\n/*!40000 ALTER TABLE `t` DISABLE KEYS */;\nINSERT INTO `t` VALUES "
        + body
        + b";\n"
    )
    known, dump.PIECE = dump.PIECE, piece
    try:
        found = read(text)
    finally:
        dump.PIECE = known
    assert [(r["id"], r["name"], r["n"]) for _, r in found] == [(a, a, n) for a, n in rows]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ("('a','it''s',1)", b"it's"),
        ("('a',\"x\",1)", None),
        ("('a',0x4142,1)", b"AB"),
        ("('a',X'4142',1)", b"AB"),
        ("('a',_utf8mb4'x',1)", b"x"),
        ("('a',-1.5e3,1)", -1500.0),
        ("('a',b'1',1)", 1),
        ("('a',TRUE,1)", 1),
        ("('a',NULL,1)", None),
        ("('a','\\%\\_',1)", b"%_"),
        ("\n ( 'a' , ';--#/*' , 1 )", b";--#/*"),
    ],
)
def test_each_form_of_a_value(values: str, wanted: Any) -> None:
    text = f"{CREATE}INSERT INTO `t` VALUES {values};"
    if '"' in values:
        with pytest.raises(ImportRefused, match="t: the values of an INSERT cannot be read near"):
            read(text)
        return
    assert [row["name"] for _, row in read(text)] == [wanted]


def test_other_tables_and_statements_are_passed_over_and_named_columns_are_heeded() -> None:
    text = f"""/*M!999999\\- enable the sandbox mode */
# a remark
USE `octavia`;
{CREATE.replace("`t`", "`u`")}
INSERT INTO `u` VALUES ('x;',1,2);
insert ignore into `db`.`t` (`n`, `id`) values (3,'a'),
(4,'b');
REPLACE INTO t (id) VALUES ('c');
UNLOCK TABLES;
"""
    assert read(text) == [("t", {"n": 3, "id": b"a"}), ("t", {"n": 4, "id": b"b"}), ("t", {"id": b"c"})]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CREATE + "INSERT INTO `t` VALUES ('a','b',1", "cut short"),
        (CREATE + "INSERT INTO `t` VALUES ('a','b", "cut short"),
        (CREATE + "INSERT INTO `t` VALUES ('a','b');", "2 values for 3 columns"),
        (CREATE + "INSERT INTO `t` VALUES ('a',now(),1);", "cannot be read near"),
        (CREATE + "INSERT INTO `t` VALUES ('a','b',1) ('c','d',2);", "cannot be read near"),
        ("INSERT INTO `t` VALUES ('a','b',1);", "--complete-insert"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place_and_the_remedy(text: str, said: str) -> None:
    with pytest.raises(ImportRefused, match=said):
        read(text)
