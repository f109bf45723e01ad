#!/usr/bin/env python3
"""groups.py: which C files may be compiled together. Reads lines "TARGET FOLDER FILE...", and prints lines
"FOLDER FILE GROUP" of those that share a group.

Reading headers takes most of the time of a build that does not optimise; files of a group are included in one and read them
once. Two files cannot share a group when both define a name outside of functions, themselves or in different headers, or one
uses a name that the other defines as a macro. A file gets no line, and stands alone, when it defines a name of the C library as
its own, or includes headers that do not go together with all others.
"""
import os
import re
import sys

MOST = 24  # of a group: no compiler runs much longer than the others
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
known = {}
LIBC = set(
    "abs accept access alarm basename bind close connect daemon dirname dup exp floor index ioctl j0 j1 kill link listen "
    "log nice open pause pipe poll raise read recv remove rename rewind round select send shutdown signal sleep socket "
    "stat step sync time truncate wait write y0 y1".split()
)
SKIPPED = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""", re.S)
WORD = re.compile(r"[A-Za-z_]\w*")


def defined_by(head):
    """The names that a declaration outside of functions defines; head: its text before '{' or ';'."""
    before = re.sub(r"\[[^\]]*\]", "", head.split("=")[0])
    tag = re.search(r"\b(?:struct|union|enum)\s+(\w+)\s*$", before)
    call = re.search(r"(?:START_TEST\s*\(\s*)?(\w+)\s*[()]", before)  # a test has the name that stands in START_TEST()
    if tag:
        return {tag.group(1)}
    if call:
        return {call.group(1)}
    return {WORD.findall(part)[-1] for part in before.split(",") if WORD.search(part)}


def names_of(text):
    """(names defined outside of functions, macros, all words)"""
    text = SKIPPED.sub(" ", text)
    macros = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))
    words = set(WORD.findall(text))
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M)
    names, depth, head = set(macros), 0, ""
    for part in re.split(r"([{};])", text):
        if part == "{":
            if depth == 0:
                names |= defined_by(head)
                is_enum = re.search(r"\benum\b[^()=]*$", head)
            depth += 1
        elif part == "}":
            depth -= 1
            head = ""
        elif part == ";":
            if depth == 0:
                names |= defined_by(head)
                head = ""
        elif depth == 0:
            head = part
        elif depth == 1 and is_enum:
            names |= set(re.findall(r"(?:^|,)\s*(\w+)", part))
    return names, macros, words


def read(path):
    """(what defines each name, macros, words) of a file and the headers of the tree that it includes."""
    if path not in known:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        names, macros, words = names_of(text)
        definers = {name: path for name in names if not name.startswith("rv_")}  # those are of one file in all the tree
        known[path] = (definers, macros, words)
        for header in re.findall(r'^#include "([^"]+)"', text, re.M):
            header = os.path.join(ROOT, header)
            if os.path.exists(header):
                definers.update(read(header)[0])
        if re.search(r"^#include <(linux|reeve)/", text, re.M):
            definers["read"] = path  # <linux/tcp.h> and <netinet/tcp.h>; the macro fail() of <check.h>
    return known[path]


def groups_of(folder, files):
    groups = []
    for name in files:
        definers, macros, words = read(os.path.normpath(os.path.join(folder, name)))
        if definers.keys() & LIBC:
            continue
        for group in groups:
            if (
                len(group["files"]) < MOST
                and all(group["definers"].get(name, file) == file for name, file in definers.items())
                and not macros & group["words"]
                and not group["macros"] & words
            ):
                break
        else:
            group = {"files": [], "definers": {}, "macros": set(), "words": set()}
            groups.append(group)
        group["files"].append(name)
        group["definers"].update(definers)
        group["macros"] |= macros
        group["words"] |= words
    return [group["files"] for group in groups if len(group["files"]) > 1]


for line in sys.stdin:
    target, folder, *files = line.split()
    for number, group in enumerate(groups_of(folder, files)):
        for file in group:
            print(folder, file, "%s_%d" % (target, number))
