"""Finds the places of C files that can be mutated. It reads the layout of clang-format: a function opens and closes with a
brace in the first column. Comments and literals are blanked first, so that a search for code finds code only.
"""
import collections
import random
import re

# A mutant replaces text[start:end] of a file by `new`. Its identity over changes of the tree is (function, kind, text,
# ordinal): the stripped line, and the how-manieth place of that kind with that line in that function.
Site = collections.namedtuple('Site', 'file function kind text ordinal line start end new')

BLANKED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
COMPARED = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '=='}
# Without a sanitizer no test sees that memory was not released; assertions and log lines are not behaviour.
KEPT_CALLS = re.compile(r'(free|\w+_(free|fini|unref|destroy|release)|json_object_put|va_(start|end)|\w*assert\w*|RV_[A-Z_]+)$')
KEPT_LINES = re.compile(r'assert|RV_LOG|RV_MAGIC')
WORDS = {'if', 'while', 'for', 'switch', 'return', 'sizeof', 'else', 'do'}


def blank(text):
    """The same text, of the same length, with spaces for comments, literals and directives."""
    return BLANKED.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), text)


def closing(code, at):
    """The index of the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] == '(') - (code[i] == ')')
        if depth == 0:
            return i
    return len(code) - 1


def functions(code):
    """(name, start, end) of each function body."""
    for body in re.finditer(r'^\{\n.*?^\}$', code, re.S | re.M):
        head = re.split(r'\n\s*\n|^\}.*?$|;', code[max(0, body.start() - 2000):body.start()], flags=re.M)[-1]
        names = [m for m in re.findall(r'(\w+)\(', head) if not re.match(r'__|[A-Z_0-9]+$', m)]
        if names:
            yield names[0], body.start(), body.end()


def statement_end(code, start):
    """The index after the semicolon that ends the statement at `start`."""
    depth = 0
    for i in range(start, len(code)):
        depth += (code[i] in '({[') - (code[i] in ')}]')
        if depth < 0:
            return start
        if depth == 0 and code[i] == ';':
            return i + 1
    return start


def changes(code, start, end):
    """(kind, start, end, replacement) of each change to a function body."""
    body = code[start:end]
    for m in re.finditer(r' (<=|>=|==|!=|<|>) ', body):
        yield 'compare', start + m.start(1), start + m.end(1), COMPARED[m.group(1)]
    for m in re.finditer(r'&&|\|\|', body):
        yield 'logic', start + m.start(), start + m.end(), '||' if m.group() == '&&' else '&&'
    for m in re.finditer(r'\bif \(', body):
        opened = start + m.end() - 1
        closed = closing(code, opened)
        condition = code[opened:closed + 1]
        if '&&' in condition or '||' in condition or not re.search(r' (<=|>=|==|!=|<|>) ', condition):
            yield 'negate', opened, closed + 1, '(!%s)'
    for m in re.finditer(r'(?<![\w.\[{])(\d+)(?![\w.\]])', body):
        yield 'constant', start + m.start(), start + m.end(), str(int(m.group()) + 1)
    for m in re.finditer(r' ([+-])(=?) ', body):
        yield 'arithmetic', start + m.start(1), start + m.end(1), '-' if m.group(1) == '+' else '+'
    for m in re.finditer(r'\b(true|false)\b', body):
        yield 'flag', start + m.start(), start + m.end(), 'false' if m.group() == 'true' else 'true'
    for m in re.finditer(r'\b(break|continue);', body):
        yield 'jump', start + m.start(), start + m.end(), '(void)0;'
    for m in re.finditer(r'\breturn (RV_(?:FAIL|WRAP|E_)\w*|-\w|rc < 0 \?)', body):
        yield 'error', start + m.start(), statement_end(code, start + m.start()), 'return 0;'
    for m in re.finditer(r'\b(\w+) = RV_(?:FAIL|E_)\w*', body):
        yield 'error', start + m.start(), statement_end(code, start + m.start()), m.group(1) + ' = 0;'
    for m in re.finditer(r'^[ \t]+((?:\(void\))?(\w+)(\(|[\w.>\[\]-]*(?:->|\.)\w+ [|&+-]?= ))', body, re.M):
        before = body[:m.start()].rstrip()
        first = start + m.start(1)
        last = statement_end(code, first)
        if m.group(2) in WORDS or last == first or not re.search(r'([;{}):]|\belse|\bdo)$', before):
            continue
        if m.group(3) != '(':
            yield 'assign', first, last, '(void)0;'
        elif not KEPT_CALLS.match(m.group(2)) and closing(code, start + m.start(3)) == last - 2:
            yield 'call', first, last, '(void)0;'


def sites(path, text):
    """All sites of a file."""
    code = blank(text)
    found = []
    for function, start, end in functions(code):
        seen = collections.Counter()
        for kind, first, last, new in changes(code, start, end):
            line_start = text.rfind('\n', 0, first) + 1
            line = text[line_start:text.find('\n', first)]
            if KEPT_LINES.search(line):
                continue
            if '%s' in new:
                new = new % text[first:last]
            key = (kind, line.strip())
            found.append(Site(path, function, kind, line.strip(), seen[key], text.count('\n', 0, first) + 1,
                              first, last, new))
            seen[key] += 1
    return found


def draw(all_sites, seed):
    """All sites in a random order that the seed fixes, in which each kind is as likely as the others."""
    generator = random.Random(seed)
    of_kind = collections.Counter(site.kind for site in all_sites)
    keyed = [(generator.random() ** of_kind[site.kind], i) for i, site in enumerate(all_sites)]
    return [all_sites[i] for _, i in sorted(keyed, reverse=True)]


def same(all_sites, wanted):
    """The sites that the rows of an earlier result name, None for each that cannot be found: the same line in the same
    function, else the same line wherever it went."""
    index = collections.defaultdict(list)
    for site in all_sites:
        index[site.kind, site.text].append(site)
    found = []
    for row in wanted:
        alike = index[row['kind'], row['text']]
        at_home = [site for site in alike if site.function == row['function']]
        alike = [site for site in at_home if site.file == row['file']] or at_home or alike
        exact = [site for site in alike if site.ordinal == row['ordinal']]
        found.append((exact or alike or [None])[0])
    return found


def mutated(text, site):
    """The text of the file with the mutant in it; a shorter text keeps its lines, so that places in messages stay."""
    lost = text.count('\n', site.start, site.end) - site.new.count('\n')
    return text[:site.start] + site.new + '\n' * lost + text[site.end:]
