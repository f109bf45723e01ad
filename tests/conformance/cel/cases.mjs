// What is compared: variables, hand-written expressions, and a generator that writes more from a seed.
// Integers are BigInt and doubles are Number, so that both sides get the same types.

export const vars = {
  output: {
    confidence: 0.3, verdict: 'loop_back', n: 3n, none: null, empty: {},
    steps: [{tool: 'a', ok: true}, {tool: 'b', ok: false}],
  },
  i: 7n, j: -3n, zero: 0n, d: 2.5, e: 7.5, s: 'héllo', t: 'loop', yes: true, no: false, nul: null,
  l: [1n, 2n, 3n], ls: ['a', 'b', 'c'], mixed: [1n, 'a', null, 2.5], none: [], m: {a: 1n, b: 2n, 'with-dash': 3n},
  max: 9223372036854775807n, min: -9223372036854775808n,
}

export const written = String.raw`
1
-1
0x1F
-0x10
7u
1.5
.5
1e3
-2.5e-1
true
null
[]
{}
[1, 2, 3]
{'a': 1, 'b': 2}
"a\tb\x41\u00e9\U0001F600\101"
'\''
r'a\n'
R"\d"
'''it's'''
"""a"b"""
'\a\b\f\n\r\t\v\\\?'
'\q'
'\u12'
'abc
1 +
(1
1 2
a ? b
x.
1 = 1
true & false
9223372036854775808
-9223372036854775808
99999999999999999999
12ab
while
1 + 2 * 3
(1 + 2) * 3
7 / 2
-7 / 2
7 % 3
-7 % 3
10 - 4 - 3
100 / 10 / 5
--5
!!true
-i
- i
-d
2.0 * 3.5
d + e
5u - 3u
7u / 2u
7u % 4u
0u - 1u
i / zero
i % zero
1 / 0
1u / 0u
d / 0.0 > 1.0
max + 1
min - 1
max * 2
-min
min / -1
i + d
i + 1u
s + i
yes + yes
s + t
l + [4]
l + none
"a" + "b" + "c"
i == 7
i == 7.0
d == 2.5
dyn(1) == dyn(1.0)
dyn(1) == dyn(1u)
dyn(1) == dyn('1')
nul == null
dyn(0) == null
dyn(false) == dyn(0)
l == [1, 2, 3]
l == [1, 2]
l == [1, 3, 2]
m == {'b': 2, 'a': 1, 'with-dash': 3}
m == {'a': 1}
[[1], [2]] == [[1], [2]]
output.steps == output.steps
i != 8
dyn('a') != dyn(1)
1 < 2
i < 8
i <= 7
i > 7
i >= 7
d < 3.0
dyn(i) < dyn(d)
dyn(1) < dyn(1.5)
dyn(2u) > dyn(1.5)
dyn(-1) < dyn(1u)
'a' < 'b'
'a' < 'ab'
s < t
'Z' < 'a'
false < true
s < i
nul < 1
l < l
"a" < 1
1 + "a"
1 && true
true && false
true || false
1 / 0 == 1 || true
true || 1 / 0 == 1
1 / 0 == 1 && false
false && 1 / 0 == 1
1 / 0 == 1 || false
1 / 0 == 1 && true
output.nope == 1 || true
true || output.nope == 1
output.nope == 1 && false
output.nope == 1 || false
i || true
true || i
no && i
yes && yes && yes && no
no || no || yes
no || yes && no
yes ? 1 : 2
no ? 1 : 2
yes ? no ? 1 : 2 : 3
no ? 1 : no ? 2 : 3
i ? 1 : 2
no ? 1 / 0 : 2
output.confidence < 0.5
output.verdict == 'loop_back' && output.n < 5
output.steps[0].tool
output.steps[1]['ok']
output["verdict"]
output.none == null
m['with-dash']
l[0]
l[2]
l[3]
l[-1]
l['a']
m.c
m['c']
i.x
nul.x
output.n.x
s[0]
{'a': {'b': 5}}.a.b
[[1, 2], [3]][0][1]
{1: 'a'}[1]
{true: 'a'}[true]
has(output.verdict)
has(output.nope)
has(output.none)
has(output.empty.x)
has(m.a) && m.a == 1
has({'a': 1}.a)
has({'a': 1}.b)
has(m)
has(l[0])
2 in l
4 in l
'a' in ls
'a' in m
'z' in m
1 in []
[1] in [[1], [2]]
'a' in {'a': 1}
1 in 2
size(s)
s.size()
size(l) + size(m)
size({})
''.size()
size('\U0001F600')
size(1)
size()
s.contains('ll')
s.contains('')
s.contains('lx')
s.startsWith('hé')
s.endsWith('lo')
'a'.startsWith('ab')
'a'.contains(1)
'a'.nope()
nope(1)
int('42')
int('-42')
int(3.99)
int(-3.99)
int(3u)
int('4.2')
int('x')
int(' 1')
int('9223372036854775808')
uint(7)
uint('7')
uint(-1)
uint('-1')
double(3)
double('2.5')
double('1e2')
double('x')
double(3u)
string(1)
string(7u)
string(true)
string(0.1)
string(-4.5e-3)
string('x')
string(0.1 + 0.2)
bool('true')
bool('f')
bool('F')
1 == 1.0
1 < 1.5
2u > 1
1 == 'a'
l[1.0]
{1: 'a'}[1.0]
{'a': 1, 'a': 2}
{1: 'a', 2u: 'b'}
[1, 'a']
-5.0
0xFFFFFFFFFFFFFFFFu
1e400
"\ud800"
'\x4'
b'abc'
'a'.matches('b')
'ab12'.matches('^[a-z]+\\d{2}$')
'a'.matches('')
[1,]
{'a': 1,}
size(l,)
x.in
l.map(x)
int(1e19)
uint(-0.5)
double('nan') == double('nan')
double('inf') > 1e308
9007199254740993 == 9007199254740992
dyn(9007199254740993) == dyn(9007199254740992.0)
dyn(max) < 1e19
dyn(18446744073709551615u) > dyn(max)
2.0 in l
dyn(2u) in l
1 + dyn(2)
dyn(1) + dyn('a')
!dyn(1)
-dyn('a')
bool('yes')
bool(true)
type(1) == int
type(1u) == uint
type(d) == double
type(nul) == null_type
type(l) == list
type(m) == map
type(s) == string
type(yes) == bool
type(type(1)) == type
type(1) == type('a')
l.all(x, x > 0)
l.all(x, x > 1)
none.all(x, x > 1)
l.exists(x, x == 2)
none.exists(x, x == 2)
l.exists_one(x, x > 2)
l.exists_one(x, x > 1)
l.filter(x, x % 2 == 1)
l.map(x, x * x)
l.map(x, x > 1, x * 10)
none.map(x, x)
m.all(k, k != 'c')
m.exists(k, k == 'a')
m.map(k, k)
m.filter(k, m[k] > 1)
l.exists(x, 1 / (x - 2) == 1)
l.all(x, 1 / (x - 2) == 7)
l.exists(x, 1 / (x - 2) == 9)
l.exists_one(x, 1 / (x - 2) == 1)
l.filter(x, 1 / (x - 2) == 1)
l.filter(x, x)
i.all(x, true)
s.map(x, x)
l.all(x)
l.all(x.y, true)
output.steps.exists(s, s.tool == 'b' && !s.ok)
l.map(x, l.map(y, x * y))
l.map(l, l)
l.map(x, l.filter(x, x > 2))
output.steps.filter(s, s.ok).map(s, s.tool)
l.map(x, [x])[1][0]
1 // comment
// comment
1 == 1 // comment
`.split('\n').filter((line) => line !== '')

// mulberry32: small, and the same on every machine.
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

// A kind has leaves and makers; a capital letter in a maker asks for an operand of the kind of that name. Most results
// are well typed, and one operand in twenty is of any kind, wrapped in dyn() so that the failure comes at evaluation.
const kinds = {
  I: {
    leaves: ['i', 'j', 'zero', '1', '2', '-5', 'output.n', 'm.a', 'l[1]', 'size(s)', 'max', 'm.c', 'l[9]'],
    makers: ['(I + I)', '(I - I)', '(I * I)', '(I / I)', '(I % I)', '-I', 'size(L)', '(B ? I : I)', 'int(D)',
      'int(string(I))'],
  },
  D: {
    leaves: ['d', 'e', '0.5', '-1.25', 'output.confidence', '1e3'],
    makers: ['(D + D)', '(D - D)', '(D * D)', 'double(I)', '-D'],
  },
  S: {
    leaves: ['s', 't', "'a'", '"l"', "''", 'output.verdict', 'ls[0]', 'output.steps[1].tool', 'output.nope'],
    makers: ['(S + S)', 'string(I)', 'string(B)', '(B ? S : S)'],
  },
  L: {
    leaves: ['l', 'none', '[1, 2]', '[5]'],
    makers: ['(L + L)', '[I, I]', 'L.filter(x, x > I)', 'L.map(x, x + I)', 'L.map(y, y > I, y * 2)'],
  },
  B: {
    leaves: ['yes', 'no', 'true', 'false', 'has(output.verdict)', 'has(output.nope)', 'output.steps[0].ok',
      'output.nope'],
    makers: ['(I < I)', '(I == I)', '(I >= I)', '(D <= D)', '(D != D)', '(S == S)', '(S < S)', 'S.contains(S)',
      'S.startsWith(S)', 'S.endsWith(S)', '(B && B)', '(B || B)', '(B && B)', '(B || B)', '!B', '(I in L)', '(L == L)',
      'L.all(x, x > I)', 'L.exists(x, x == I)', 'L.exists_one(x, x < I)', 'L.exists(x, I / x > 1)', '(B ? B : B)'],
  },
}

export function generate(count, seed) {
  const next = random(seed)
  const pick = (of) => of[Math.floor(next() * of.length)]
  const make = (kind, depth) => {
    if (next() < 0.05) return `dyn(${pick(kinds[pick(Object.keys(kinds))].leaves)})`
    if (depth === 0 || next() < 0.15) return pick(kinds[kind].leaves)
    return pick(kinds[kind].makers).replace(/[IDSLB]/g, (operand) => make(operand, depth - 1))
  }
  return Array.from({length: count}, () => make(pick('BBBIDSL'), 1 + Math.floor(next() * 4)))
}
