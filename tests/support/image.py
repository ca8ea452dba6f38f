"""tacho's container image: built as users build it, or from the build under test in the same way but for the compiler."""

import pathlib
import re
import shutil

from support.containers import Storage, collect
from support.paths import EXACT_SERVER, REPOSITORY, TACHO, require

DOCKERFILE = REPOSITORY / "Dockerfile"
SECCOMP = REPOSITORY / "deploy" / "image" / "seccomp.json"
TAG = "localhost/tacho"


def build_from_sources(storage: Storage, base: str, ccache: pathlib.Path) -> None:
    """The whole Dockerfile, on an image of a Debian; what was compiled is kept in `ccache`."""
    ccache.mkdir(parents=True, exist_ok=True)
    storage.build(
        REPOSITORY, TAG, "--build-arg", f"BASE={base}", "--build-arg", "VERSION=test", "--network", "host",
        "--volume", f"{ccache}:/root/.cache/ccache", timeout=2000,
    )  # fmt: skip


def build_from_tree(storage, context: pathlib.Path, tag: str = TAG) -> None:
    """The last stage of the Dockerfile alone, on what deploy/image/collect makes of the tacho under test."""
    collect(require(TACHO), context / "image", inventory=True)
    last = DOCKERFILE.read_text().rpartition("\nFROM scratch\n")[2]
    lines, count = re.subn(r"^COPY --from=build /image /$", "COPY image /", last, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"{DOCKERFILE}: the last stage does not copy /image from the stage build")
    (context / "Dockerfile").write_text("FROM scratch\n" + lines)
    storage.build(context, tag, "--build-arg", "VERSION=test")


def build_nginx(storage: Storage, context: pathlib.Path, tag: str) -> None:
    """This machine's nginx, whose configuration is mounted at /nginx.conf."""
    collect(shutil.which("nginx") or "/usr/sbin/nginx", context / "root")
    (context / "root/etc/passwd").write_text("root:x:0:0::/:/\n")
    (context / "root/etc/group").write_text("root:x:0:\n")
    (context / "root/var/lib/nginx").mkdir(parents=True)
    (context / "root/var/log/nginx").mkdir(parents=True)
    (context / "Dockerfile").write_text(
        'FROM scratch\nCOPY root /\nENTRYPOINT ["/usr/bin/nginx", "-e", "stderr", "-c", "/nginx.conf"]\n'
    )
    storage.build(context, tag)


def build_pause(storage, context: pathlib.Path, tag: str = "pause") -> None:
    """What only waits, as the pause container of a pod."""
    collect("/bin/sleep", context / "root")
    (context / "Dockerfile").write_text('FROM scratch\nCOPY root /\nENTRYPOINT ["/usr/bin/sleep", "infinity"]\n')
    storage.build(context, tag)


def build_exact_server(storage, context: pathlib.Path, tag: str = "exact_server") -> None:
    """The server that counts what it answers (tests/support/exact_server.cpp)."""
    collect(require(EXACT_SERVER), context / "root")
    (context / "Dockerfile").write_text('FROM scratch\nCOPY root /\nENTRYPOINT ["/usr/bin/exact_server"]\n')
    storage.build(context, tag)
