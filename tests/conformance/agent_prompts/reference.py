#!/usr/bin/env python3
# Proves p8.2
"""reference.py DRIVER GOLDEN_DIR: a second renderer of agents' prompts, written from the rules (p8 2) and not from the
engine's code, against what DRIVER (prompt_lines) prints for the golden documents and for random ones."""

import glob
import json
import os
import random
import struct
import subprocess
import sys

SEED = 20260301
RANDOM_DOCUMENTS = 800

OPEN = (
    "## Thinking Structure\n\nUse these to guide your reasoning. Do NOT include these labels in output:\n\n```yaml\n"
)
CLOSE = "\n```\n\nCRITICAL: Respond with conversational text only. Do NOT output field names, YAML, or JSON."


# --- The rules ---

def swap_in_definitions(schema, definitions):
    """A schema with each reference to a known definition replaced by it. Definitions themselves stay as they are."""
    target = schema.get("$ref")
    if isinstance(target, str):
        found = definitions.get(target.rsplit("/", 1)[-1])
        if found is not None:
            return found
    schema = dict(schema)
    if isinstance(schema.get("items"), dict):
        schema["items"] = swap_in_definitions(schema["items"], definitions)
    if isinstance(schema.get("properties"), dict):
        schema["properties"] = {
            name: swap_in_definitions(child, definitions) for name, child in schema["properties"].items()
        }
    return schema


def lines_of(fields, marked, level):
    for name, schema in fields.items():
        kind = schema.get("type", "any")
        note = [f"{'  ' * level}  # {schema['description']}"] if schema.get("description") else []
        head = "  " * level + name
        if kind == "object":
            yield head + ":"
            yield from note
            yield from lines_of(schema.get("properties") or {}, marked, level + 1)
        elif kind == "array":
            items = schema.get("items")
            items = items if isinstance(items, dict) else {}
            yield f"{head}: [{items.get('type', 'any')}]"
            yield from note
            if items.get("type") == "object" and items.get("properties"):
                yield "  " * level + "  # Each item:"
                yield from lines_of(items["properties"], marked, level + 2)
        else:
            choices = schema.get("enum") or []
            shown = f" (one of: {', '.join(str(c) for c in choices)})" if choices else ""
            yield f"{head}: {kind}{shown}" + (" (required)" if name in marked else "")
            yield from note


def prompt_of(flat):
    parts = [flat.get("description", "")]
    if flat.get("system_prompt"):
        parts.append(flat["system_prompt"])
    tools = [{"name": t} if isinstance(t, str) else t for t in flat.get("tools", [])]
    noted = [f"- **{t['name']}**: {t['description']}" for t in tools if t.get("description")]
    if noted:
        parts.append("\n".join(["## Tool Notes"] + noted))
    fields = flat.get("properties") or {}
    if fields and not flat.get("structured_output"):
        definitions = flat.get("$defs") or {}
        if definitions:
            fields = {name: swap_in_definitions(schema, definitions) for name, schema in fields.items()}
        parts.append(OPEN + "\n".join(lines_of(fields, flat.get("required") or [], 0)) + CLOSE)
    return "\n\n".join(parts)


# --- Random documents ---

ALPHABET = (
    [chr(c) for c in range(0x20, 0x7F)]
    + list("\n\t\r\\'\"\\'\"éüß中文日本语😀🚀")
    + [chr(c) for c in (0x01, 0x1F, 0x7F, 0x85, 0xA0, 0xAD, 0x200B, 0x2028, 0x2029, 0x202E, 0x3000, 0xE000, 0xFEFF,
                        0xFFFD, 0xF0000, 0x1D173)]
)
NAMES = ["a", "b", "id", "kind", "class", "None", "True", "lambda", "x-y", "with space", "ünï", "null", "no", "1", "n",
         "$ref_", "type", "properties", "a/b", "~t", ""]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.definitions = []

    def chance(self, p):
        return self.r.random() < p

    def text(self, most=30):
        return "".join(self.r.choice(ALPHABET) for _ in range(self.r.randint(0, most)))

    def real(self):
        r = self.r
        how = r.randint(0, 5)
        if how == 0:
            return r.choice([0.0, -0.0, 1.0, 0.1, 1e-4, 1e-5, 9.999e-5, 1e15, 1e16, 123456789012345680.0, 1e22, 1e100,
                             5e-324, 1e-310, 2.2250738585072014e-308, 1.7976931348623157e308, 0.3, 2 / 3, 1e-7])
        if how == 1:
            while True:
                value = struct.unpack("<d", r.getrandbits(64).to_bytes(8, "little"))[0]
                if value == value and abs(value) != float("inf"):
                    return value
        if how == 2:
            return struct.unpack("<d", r.getrandbits(52).to_bytes(8, "little"))[0]
        return round(r.uniform(-1000, 1000), r.randint(0, 6))

    def value(self, depth=0):
        r = self.r
        how = r.randint(0, 7 if depth < 3 else 5)
        if how == 6:
            return [self.value(depth + 1) for _ in range(r.randint(0, 3))]
        if how == 7:
            return {self.text(6): self.value(depth + 1) for _ in range(r.randint(0, 3))}
        return [None, r.choice([True, False]), r.randint(-(2**63), 2**63 - 1), self.real(), self.text(12), self.text(4)][
            how
        ]

    def kind(self):
        words = ["string", "number", "integer", "boolean", "object", "array", "null"]
        how = self.r.randint(0, 9)
        if how == 0:
            return self.r.sample(words, self.r.randint(0, 3))
        return self.r.choice(words[:4] + ["object", "object", "array", "array"])

    def schema(self, depth):
        r = self.r
        schema = {}
        if self.chance(0.9):
            schema["type"] = self.kind()
        if self.chance(0.5):
            schema["description"] = self.text()
        if self.chance(0.3):
            schema["enum"] = [self.value() for _ in range(r.randint(0, 4))]
        if self.chance(0.6 if schema.get("type") == "object" else 0.05) and depth < 5:
            schema["properties"] = self.fields(depth + 1)
        if self.chance(0.8 if schema.get("type") == "array" else 0.05) and depth < 5:
            schema["items"] = self.schema(depth + 1) if self.chance(0.95) else r.choice([True, False])
        if self.definitions and self.chance(0.2):
            schema["$ref"] = "#/$defs/" + r.choice(self.definitions)
        if self.chance(0.1):
            schema["anyOf"] = [{"type": "string"}, {"type": "null"}]
        if self.chance(0.1):
            schema["required"] = [r.choice(NAMES)]
        if self.chance(0.2):
            schema.update(r.choice([{"default": self.value()}, {"const": self.value()}, {"format": "email"},
                                    {"minimum": 3}, {"title": "T"}, {"examples": [1, {"$ref": "#/nowhere"}]}]))
        pairs = list(schema.items())
        r.shuffle(pairs)
        return dict(pairs)

    def fields(self, depth):
        return {name: self.schema(depth) for name in self.r.sample(NAMES, self.r.randint(0, 4 if depth else 6))}

    def document(self):
        r = self.r
        self.definitions = r.sample(["A", "B", "Node", "d_1"], r.randint(1, 4)) if self.chance(0.5) else []
        document = {"name": "random", "description": self.text(60)}
        if self.chance(0.4):
            document["system_prompt"] = self.text(40)
        if self.chance(0.9):
            document["properties"] = self.fields(0)
        if self.chance(0.7):
            document["required"] = r.sample(NAMES, r.randint(0, 6))
        if self.definitions:
            document["$defs"] = {name: self.schema(2) for name in self.definitions}
        if self.chance(0.5):
            document["tools"] = [
                r.choice([f"tool_{i}", {"name": f"tool_{i}"}, {"name": f"tool_{i}", "description": self.text(20)}])
                for i in range(r.randint(0, 4))
            ]
        if self.chance(0.15):
            document["structured_output"] = True
        return document


# --- The comparison ---

def differs(what, want, got):
    print(f"{what}\n  want: {json.dumps(want)}\n  got:  {json.dumps(got)}")
    return 1


def run(command, text=None):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def main():
    driver, folder = sys.argv[1:]
    faults = 0
    paths = sorted(glob.glob(os.path.join(folder, "*.yaml")))
    if len(paths) < 20:
        sys.exit(f"{folder}: only {len(paths)} golden documents")
    for path, got in zip(paths, run([driver] + paths)):
        if "prompt" not in got:
            faults += differs(path, "a document", got)
        elif got["prompt"] != prompt_of(got["flat"]):
            faults += differs(path, prompt_of(got["flat"]), got["prompt"])

    documents = [Maker(SEED + i).document() for i in range(RANDOM_DOCUMENTS)]
    lines = [json.dumps(d, ensure_ascii=i % 2 == 0) for i, d in enumerate(documents)]
    answers = run([driver], ("\n".join(lines) + "\n").encode())
    if len(answers) != len(documents):
        sys.exit(f"{len(documents)} documents and {len(answers)} answers")
    for line, document, got in zip(lines, documents, answers):
        if got != prompt_of(document):
            faults += differs(line, prompt_of(document), got)
        if faults > 5:
            break
    if faults:
        sys.exit(1)
    print(f"{len(paths)} golden and {len(documents)} random documents, no difference")


main()
