"""exporter/LIMITS.md says what tacho cannot see: every sentence of it has the tests that show it."""

import re

import yaml

from support import readme
from support.paths import REPOSITORY

TESTS = REPOSITORY / "tests"
LIMITS = yaml.safe_load((TESTS / "support" / "limits.yaml").read_text())


HEADING = "What tacho cannot see"
TEXT = (REPOSITORY / "exporter" / "LIMITS.md").read_text()


def shown(sentence: str) -> list[dict]:
    return [limit for limit in LIMITS if sentence.startswith(limit["sentence"])]


def test_every_sentence_has_an_entry_and_every_entry_a_sentence():
    sentences = readme.sentences(HEADING, TEXT)
    assert len(sentences) > 20
    amiss = [sentence for sentence in sentences if len(shown(sentence)) != 1]
    assert not amiss, "in tests/support/limits.yaml nothing, or more than one entry, says which tests show this"
    said = [limit["sentence"] for sentence in sentences for limit in shown(sentence)]
    assert sorted(said) == sorted(limit["sentence"] for limit in LIMITS), "LIMITS.md does not say this any more"


def test_every_entry_names_tests_that_are_there():
    for limit in LIMITS:
        assert sum(key in limit for key in ("tests", "because", "reads")) == 1, limit["sentence"]
        for test in limit.get("tests", []):
            file, name = test.split(" ", 1)
            begins = f'TEST_CASE("{name}' if file.endswith(".cpp") else f"def {name}("
            assert begins in (TESTS / file).read_text(), f"{limit['sentence']}: {test} is not there"


def test_every_read_of_user_memory_is_one_that_the_limits_tell_of():
    """Who adds one, or reads more, looks at the list in LIMITS.md and changes this one."""
    [known] = [limit["reads"] for limit in LIMITS if "reads" in limit]
    found = {}
    for file in sorted((REPOSITORY / "bpf").rglob("*.[ch]")):
        text = file.read_text()
        reads = len(re.findall(r"\bbpf_(?:probe_read_user|copy_from_user|skb_load|xdp_load|dynptr_read)\w*\(", text))
        values = dict(re.findall(r"^#define (\w+) (\d+)", text, re.MULTILINE))
        wanted = [each.split()[0] for each in known.get(file.name, [])[1:]]
        if reads or wanted:
            found[file.name] = [reads, *(f"{name} {values.get(name)}" for name in wanted)]
    assert found == known


def test_what_is_said_to_serve_on_loopback_serves_nobody_else():
    """Without a web configuration everybody who reaches the port reads."""
    said = re.search(r"starts it on <http://([^/]+)/>", readme.README.read_text())[1]
    assert said.startswith("127.0.0.1:")
    quickstart = (REPOSITORY / "deploy" / "quickstart").read_text()
    assert re.findall(r"^listen=(\S+)$", quickstart, re.MULTILINE) == [said], "the default"
    started = re.findall(r"--web\.listen-address=(\S+?)[\")\s]", quickstart)
    assert started[0] == "$listen" and all(each.startswith(("$listen", '"127.0.0.1:')) for each in started), started


def test_sentences_end_where_they_end():
    text = "# A\n- **One**: is `a.b`, e.g. two.\n  Three.\n- [Four](x.md). `Five` six.\n# B\nSeven.\n"
    assert readme.sentences("A", text) == ["One: is `a.b`, e.g. two.", "Three.", "[Four](x.md).", "`Five` six."]
    text = "# A\n- **One**: is.\n  - Two.\n  - Three\n    four;\n  - five.\n- Six.\n"
    assert readme.sentences("A", text) == ["One: is.", "Two.", "Three four; five.", "Six."]
    assert not re.search(r"\*\*", " ".join(readme.sentences(HEADING, TEXT)))
