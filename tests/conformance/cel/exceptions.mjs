// Where cel-js 8.0.0 departs from the CEL language definition, or from the subset we support. Each must still apply to
// something, so a newer cel-js that is corrected makes its entry fail.

const only = (...list) => (expr) => list.includes(expr)
const overflow = (ours, other) => !ours.ok && ours.error.startsWith('integer overflow') && other.ok

export const exceptions = [
  {
    reason: 'a double may begin with its point',
    applies: only('.5'),
  },
  {
    reason: 'an int literal outside int64 is an error',
    applies: only('9223372036854775808', '99999999999999999999'),
  },
  {
    reason: 'int arithmetic outside int64 is an error; cel-js checks only some operators',
    applies: (expr, ours, other) => only('-min', 'min / -1')(expr) && overflow(ours, other),
  },
  {
    reason: 'int(double) outside int64 is an error; cel-js only rejects infinities and NaN',
    applies: (expr, ours, other) => /\bint\(/.test(expr) && overflow(ours, other),
  },
  {
    reason: 'between ? and : the grammar has no conditional without parentheses',
    applies: only('yes ? no ? 1 : 2 : 3'),
  },
  {
    reason: 'has() takes any field selection, of a literal too',
    applies: only("has({'a': 1}.a)", "has({'a': 1}.b)"),
  },
  {
    reason: 'int(uint) exists',
    applies: only('int(3u)'),
  },
  {
    reason: 'equality of literals of two types fails the type check of cel-js; we evaluate it as of dyn values',
    applies: only('1 == 1.0', "1 == 'a'"),
  },
  {
    reason: 'a list has an int if it has an equal uint; cel-js finds equal ints and doubles only',
    applies: only('dyn(2u) in l'),
  },
  {
    reason: 'a map key that comes twice is an error',
    applies: only("{'a': 1, 'a': 2}"),
  },
  {
    reason: 'arguments have no trailing comma, only list and map literals do',
    applies: only('size(l,)'),
  },
  {
    reason: 'not in our subset: bytes',
    applies: only("b'abc'"),
  },
]
