"""What deploy/package/inventory made: the bill of materials of a tacho, and the notices of what is in it."""

import json
import pathlib
import re


class Inventory:
    """`components` are those of the bill of materials by name, `about` is what it says of the whole."""

    def __init__(self, directory: pathlib.Path):
        found = json.loads((directory / "tacho.cdx.json").read_text())
        assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
        self.about = found["metadata"]["component"]
        assert self.about["name"] == "tacho"
        self.components = {component["name"]: component for component in found["components"]}
        assert len(self.components) == len(found["components"]), "one is there twice"
        self.notices = (directory / "copyright").read_text()

    def linked(self, how: str) -> set[str]:
        return {name for name, component in self.components.items()
                if {"name": "tacho:linked", "value": how} in component["properties"]}  # fmt: skip

    def check_notices(self) -> None:
        """Of everything that is compiled in, there is one."""
        # Those whose headers the sources name, and that have no library to share.
        assert {"civetweb", "nlohmann-json3", "cli11", "utfcpp"} <= self.linked("compiled in")
        for name in self.linked("compiled in"):
            version = re.escape(self.components[name]["version"])
            assert re.search(rf"^{re.escape(name)} {version}$", self.notices, re.MULTILINE), name
        for holder in ("The CivetWeb developers", "Niels Lohmann", "University of Cincinnati", "Nemanja Trifunovic"):
            assert holder in self.notices, holder
