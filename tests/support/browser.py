"""Chromium without a window, driven through Playwright by the code of a test: see e2e/browser/bridge.mjs."""

import json
import pathlib
import shutil
import subprocess

from support import paths

_FILES = paths.REPOSITORY / "tests" / "e2e" / "browser"
ARTEFACTS = paths.BUILD / "tests" / "e2e" / "screenshots"


def _modules() -> pathlib.Path:
    """Playwright as the lock file pins it, installed in the build tree when it is not there yet."""
    place = paths.BUILD / "tests" / "e2e" / "browser"
    lock = (_FILES / "package-lock.json").read_bytes()
    stamp = place / "installed.json"
    if not stamp.exists() or stamp.read_bytes() != lock:
        place.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_FILES / name, place)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=place, check=True, timeout=200)
        stamp.write_bytes(lock)
    return place / "node_modules"


class Browser:
    """`run` sends the body of an async JavaScript function, with `page` (Playwright's) and `args`; returns its value."""

    def __init__(self):
        chromium = shutil.which("chromium")
        if chromium is None or shutil.which("npm") is None:
            raise FileNotFoundError("chromium and npm are needed: deploy/install-deps e2e")
        self._node = subprocess.Popen(
            ["node", str(_FILES / "bridge.mjs"), str(_modules()), chromium],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.version = self._answer()
        ARTEFACTS.mkdir(parents=True, exist_ok=True)

    def _answer(self):
        line = self._node.stdout.readline()
        if not line:
            raise RuntimeError(f"the browser ended with {self._node.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer["value"]

    def run(self, code: str, **args):
        self._node.stdin.write(json.dumps({"code": code, "args": args}) + "\n")
        self._node.stdin.flush()
        return self._answer()

    def open(self, address: str, path: str = "/", width: int = 1280, height: int = 800, **options) -> None:
        """A new window with the page of the tacho at HOST:PORT."""
        origin = f"http://{address}"
        self.run("await open(args.options)",
                 options={"origin": origin, "viewport": {"width": width, "height": height}, **options})
        self.run("await page.goto(args.url)", url=origin + path)

    def wait(self, condition: str, timeout: float = 20, **args) -> None:
        """Until the JavaScript expression, evaluated in the page with `args`, is true."""
        self.run(f"await page.waitForFunction((args) => {condition}, args.inner, {{ timeout: args.timeout }})",
                 inner=args, timeout=1000 * timeout)

    def evaluate(self, expression: str, **args):
        return self.run(f"return await page.evaluate((args) => {expression}, args)", **args)

    def screenshot(self, name: str) -> pathlib.Path:
        file = ARTEFACTS / f"{name}.png"
        self.run("await page.screenshot({ path: args.path })", path=str(file))
        return file

    def trouble(self) -> list[str]:
        """Errors of scripts, refusals of the content security policy and foreign requests since the window opened."""
        return self.run("return trouble")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._node.stdin.close()
        try:
            self._node.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._node.kill()
            self._node.wait()
