#!/usr/bin/env python3
"""groups.py FOLDER: C files that are compiled together. Reads lines "TARGET SOURCE_FOLDER FILE...", writes
FOLDER/TARGET_N.c, which includes the files of a group, and prints a line "TARGET SOURCE_FOLDER GROUP FILE..." for each.

Starting a compiler and reading headers takes most of the time of a build that does not optimise; a group does both once. It
has the headers of its files first. A name that a file defines for itself, and that another file or a header of the group has,
too, is another name while that file is read; its macros end with it. Two files cannot share a group when their headers define
one name, or when such a name is also that of a member or a test, or stands in a header of its file.
"""
import os
import re
import sys

MOST = 24  # of a group: no compiler runs much longer than the others
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBC = set(
    "abs accept access alarm basename bind close connect daemon dirname dup exp floor index ioctl j0 j1 kill link listen "
    "log nice open pause pipe poll raise read recv remove rename rewind round select send shutdown signal sleep socket "
    "stat step sync time truncate wait write y0 y1".split()
)
SKIPPED = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""", re.S)
WORD = re.compile(r"[A-Za-z_]\w*")


KEYWORDS = set("static_assert const static extern inline volatile struct union enum void char int long unsigned".split())
MARKS = re.compile(r"__attribute__\s*\(\(.*?\)\)|\bRV_[A-Z_]+\b(?:\s*\([\w\s,]*\))?|\b(?:struct|union|enum)(?=\s*$)", re.S)


def defined_by(head, is_body):
    """The names that a declaration outside of functions defines; head: its text before '{' (is_body) or ';'."""
    before = MARKS.sub(" ", re.sub(r"\[[^\]]*\]", "", head.split("=")[0]))
    tag = re.search(r"\b(?:struct|union|enum)\s+(\w+)\s*$", before)
    pointer = re.match(r"[^(]*\(\s*\*\s*(\w+)", before)
    call = re.search(r"(?:(?:START_TEST|RV_FUZZ_TARGET)\s*\(\s*)?(\w+)\s*[()]", before)  # what stands in it is the name
    if tag:
        return {tag.group(1)} if is_body else set()
    if pointer:
        return {pointer.group(1)}
    if call:
        return {call.group(1)}
    return {WORD.findall(part)[-1] for part in before.split(",") if WORD.search(part)}


LOCAL = re.compile(r"\b(?:static|typedef|START_TEST|RV_FUZZ_TARGET|struct\s+\w+\s*$|union\s+\w+\s*$|enum\s+\w+\s*$)")


def names_of(text):
    """(names of this file alone, names of the whole program) that a text without macros defines outside of functions"""
    own, common, depth, head = set(), set(), 0, ""
    declares = ""  # in front of a body whose names follow: static struct {...} NAME[] = ...
    for part in re.split(r"(\n}|[{};])", text):
        if part in "{;" and part:
            if depth == 0:
                (own if LOCAL.search(declares + head) else common).update(defined_by(head, part == "{"))
                is_enum = re.search(r"\benum\b[^()=]*$", head)
                declares = head if part == "{" and re.search(r"\b(?:struct|union|enum)\b[^()=]*$", head) else ""
            depth += part == "{"
            if part == ";":
                head = "" if depth == 0 else head
        elif part.endswith("}"):
            depth = 0 if part == "\n}" else max(depth - 1, 0)  # macros may open or close braces, too
            head = ""
        elif depth == 0:
            head = part
        elif depth == 1 and is_enum:
            own |= set(re.findall(r"(?:^|,)\s*(\w+)", part))
    return tuple({name for name in names - KEYWORDS if not re.match(r"rv_|RV_|\d", name)} for names in (own, common))


class File:
    """A source or a header of the tree.

    own, common: the names that it defines, for itself or for the program; macros: those, too. fixed: names that cannot be
    others, those of members and tests, and what its headers mention.
    headers: what it includes; theirs: the names that those define, with the path of the header.
    """

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            whole = file.read()
        text = SKIPPED.sub(" ", whole)
        self.path = path
        self.macros = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))
        self.is_guarded = path.endswith(".h") and "#ifndef" in text
        self.words = set(WORD.findall(text))
        macros = " ".join(re.findall(r"^[ \t]*#[ \t]*define[ \t]+\w+((?:\\\n|[^\n])*)", text, re.M))
        self.in_macros = set(WORD.findall(macros))
        self.tags = set(re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", text))
        self.fixed = set(re.findall(r"(?:\.|->)\s*([A-Za-z_]\w*)", text))
        text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M)
        self.own, self.common = names_of(text)
        self.own |= self.tags
        self.fixed |= set(re.findall(r"\b(?:START_TEST|RV_FUZZ_TARGET)\s*\(\s*(\w+)", text))
        self.headers, self.theirs, self.is_alone = [], {}, False
        self.fails = ""  # the header that it has fail() from: a macro of <check.h>, a member in plugins
        lines = re.findall(r'^#include [<"][^>"]+[>"]|^#define.*[^\\]$', whole, re.M)
        while lines and lines[-1].startswith("#define"):
            lines.pop()
        for line in lines:  # the last is an #include
            if line.startswith("#define"):
                self.headers.append(line)
            else:
                self.include(line[len("#include ") :])

    def include(self, header):
        of = None
        if header[0] == '"':
            path = os.path.join(ROOT, header[1:-1])
            if not os.path.exists(path):
                path = os.path.join(os.path.dirname(self.path), header[1:-1])
            of = read(path) if os.path.exists(path) else None
            if not of or not of.is_guarded:
                return
            self.words |= of.words
            self.in_macros |= of.in_macros
            self.fixed |= self.tags & of.words | of.in_macros
            self.theirs.update({name: path for name in of.own | of.common | of.macros})
            self.theirs.update(of.theirs)
            self.is_alone |= bool(self.fails) and bool(of.fails) and self.fails != of.fails
            self.fails = self.fails or of.fails
            header = '"%s"' % of.path
        if header == "<check.h>" or header.startswith(("<reeve/", '"%s/capabilities/sdk/' % ROOT)):
            kind = "check" if header == "<check.h>" else "reeve"
            self.is_alone |= self.fails not in ("", kind)
            self.fails = kind
        self.is_alone |= header.startswith("<linux/")  # <linux/tcp.h> defines what <netinet/tcp.h> does
        self.headers.append("#include %s" % header)


known = {}


def read(path):
    """None for a header that includes itself by others."""
    path = os.path.normpath(path)
    if path not in known:
        known[path] = None
        known[path] = File(path)
    return known[path]


class Group:
    def __init__(self):
        self.files, self.headers, self.theirs = [], [], {}

    def renamed(self, file, files, theirs):
        """Its own names that others have, too."""
        others = set(theirs) | LIBC
        for one in files:
            if one is not file:
                others |= one.own | one.common
        return file.own & others

    def takes(self, file):
        theirs, files = {**self.theirs, **file.theirs}, [*self.files, file]
        return (
            len(self.files) < MOST
            and not any(one.is_alone for one in files)
            and len({one.fails for one in files if one.fails}) < 2
            and all(self.theirs.get(name, path) == path for name, path in file.theirs.items())
            and not any(self.renamed(one, files, theirs) & one.fixed for one in files)
            and not any(one.macros & (theirs.keys() - one.theirs.keys()) for one in files)
        )

    def add(self, file):
        self.files.append(file)
        self.headers += [header for header in file.headers if header not in self.headers]
        self.theirs.update(file.theirs)

    def text(self):
        lines = self.headers[:]
        for number, file in enumerate(self.files):
            renamed = sorted(self.renamed(file, self.files, self.theirs)) if len(self.files) > 1 else []
            lines += ["#define %s %s__%d" % (name, name, number) for name in renamed]
            lines.append('#include "%s"' % file.path)
            lines += ["#undef %s" % name for name in [*renamed, *sorted(file.macros)]]
        return "".join("%s\n" % line for line in lines)


def groups_of(files):
    groups = []
    for file in files:
        group = next((group for group in groups if group.takes(file)), None)
        if not group:
            group = Group()
            groups.append(group)
        group.add(file)
    return groups


def write(path, text):
    """Only what has changed: what is as it was is not compiled again."""
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for line in sys.stdin:
        target, folder, *files = line.split()
        for number, group in enumerate(groups_of([read(os.path.join(folder, file)) for file in files])):
            path = os.path.join(sys.argv[1], "%s_%d.c" % (target, number))
            write(path, group.text())
            print(target, folder, path, *(file.path for file in group.files))


main()
