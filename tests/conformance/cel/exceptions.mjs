// Where cel-js 8.0.0 departs from the CEL language definition, or from the subset we support. Each must still apply to
// something, so a newer cel-js that is corrected makes its entry fail.

const isOneOf = (...list) => (expr) => list.includes(expr)
const overflow = (ours, other) => !ours.ok && ours.error.startsWith('integer overflow') && other.ok

export const exceptions = [
  {applies: isOneOf('.5'), reason: 'a double may begin with its point'},
  {applies: isOneOf('9223372036854775808', '99999999999999999999'), reason: 'an int literal outside int64 is an error'},
  {applies: (expr, ours, other) => isOneOf('-min', 'min / -1')(expr) && overflow(ours, other), reason: 'int arithmetic outside int64 is an error; cel-js checks only some operators'},
  {applies: (expr, ours, other) => /\bint\(/.test(expr) && overflow(ours, other), reason: 'int(double) outside int64 is an error; cel-js only rejects infinities and NaN'},
  {applies: isOneOf('yes ? no ? 1 : 2 : 3'), reason: 'between ? and : the grammar has no conditional without parentheses'},
  {applies: isOneOf("has({'a': 1}.a)", "has({'a': 1}.b)"), reason: 'has() takes any field selection, of a literal too'},
  {applies: isOneOf('int(3u)'), reason: 'int(uint) exists'},
  {applies: isOneOf('1 == 1.0', "1 == 'a'"), reason: 'cel-js rejects equality of literals of two types when it checks types; we evaluate, as for dyn: by value across numbers, false across other types'},
  {applies: isOneOf('dyn(2u) in l'), reason: 'a number is in a list that has an equal one of another numeric type; cel-js does it for int and double only'},
  {applies: isOneOf("{'a': 1, 'a': 2}"), reason: 'a key that comes twice is an error'},
  {applies: isOneOf('size(l,)'), reason: 'arguments have no trailing comma, only list and map literals do'},
  {applies: isOneOf("b'abc'", "'a'.matches('b')"), reason: 'not in our subset: bytes, and regular expressions, which have no bound on time'},
]
