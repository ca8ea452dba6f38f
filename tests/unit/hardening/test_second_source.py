"""When Debian's pool has no more of the pinned civetweb, trixie's current one is built, and the build says so."""

import re

from support.paths import REPOSITORY
from support.process import run
from support.slow import slow

CMAKE = REPOSITORY / "exporter/cmake"


@slow("trixie's index is 10 MB")
def test_a_superseded_archive_is_replaced_by_its_successor(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    for file in (CMAKE / "fetch-debian", CMAKE / "civetweb"):
        (project / file.name).symlink_to(file)
    text = (CMAKE / "Civetweb.cmake").read_text()
    text, count = re.subn(r"(civetweb_version \S+deb13u)\d+\)", r"\g<1>0)", text)
    assert count == 1, "the pin has another form"
    text, count = re.subn(r"(civetweb_debian_sha256 )\S+\)", rf"\g<1>{'0' * 64})", text)
    assert count == 1
    (project / "Civetweb.cmake").write_text(text)
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(second LANGUAGES C)\ninclude(Civetweb.cmake)\n"
    )
    said = run(["cmake", "-S", project, "-B", tmp_path / "build", f"-DTACHO_DOWNLOAD_CACHE={tmp_path / 'cache'}"])
    assert "is not to be had any more" in said and "is built in its place" in said
    (tree,) = (tmp_path / "build").glob("civetweb-*")
    assert "mg_parse_request_head" in (tree / "src/civetweb.c").read_text(), "patched as the pinned one"
