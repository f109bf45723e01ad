// node compare.mjs JUDGE COUNT SEED: judges made-up patterns with RegExp and with ours, and prints each difference.
import {spawnSync} from 'node:child_process'

const TEXTS = 6
const [judge, count, seed] = process.argv.slice(2)

// Why one of the two may refuse what the other takes; docs/reference/schemas.md tells people.
const mayRefuse = [
  /ours: .*lookbehind assertion is not fixed length/,
  /ours: .*lookbehind assertion is too long/,
  /ours: .*half a surrogate pair/, // texts are UTF-8: none can be there
  /node: .*Invalid quantifier/, // of an assertion: (?<=a)* is a* of nothing
  /node: .*Nothing to repeat/, // likewise, (?=a)*
  /node: .*Lone quantifier brackets/, // ours reads a brace that repeats nothing as itself
  /node: .*Incomplete quantifier/,
  /node: .*Invalid character class/, // [\d-z]: ours reads the hyphen as itself
  /node: .*Invalid escape/, // ours reads an escaped punctuation character as itself
]

let state = BigInt(seed) * 0x9e3779b97f4a7c15n + 1n
const mask = (1n << 64n) - 1n
function below(n) {
  state = (state + 0x9e3779b97f4a7c15n) & mask
  let z = state
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask
  return Number((z ^ (z >> 31n)) % BigInt(n))
}
const pick = (list) => list[below(list.length)]

const characters = [...'abcA09_- \t\n\r\v\u00a0\u2028\ufeff\u0663éß😀中./@#":[]{}^$&~\\()*+?|']
const literals = [...'abcA09_- é😀中@#":/&~=!<>,\'%;`']
const escapes = String.raw`\d \D \w \W \s \S \n \t \v \f \r \. \/ \\ \$ \^ \x41 \u0061 \u{1F600} \ud83d\ude00 \cA \0
  \p{L} \P{L} \p{Letter} \p{Lu} \p{Script=Greek} \p{Nd} \p{Alphabetic} \p{gc=Punctuation} \[ \] \{ \} \( \) \* \+ \? \|`.split(/\s+/)
const odd = String.raw`\h \A \Z \z \R \K \Q \G \X \N \g1 \e \a \@ \' (?i) (?>a) (?#x) a++ a*+ a?+ a{2}+ { } ] {,3} a{2
  (* [[:alpha:]] (?P<n>a) (?|a) (?1) \9 \k<n> \u00 \x4 \p \p{Nope} [z-a] ** (? \ud83d \01 \c1`.split(/\s+/)
const members = String.raw`a b 0 _ . $ ( ) { } + * ? | é 😀 : [ = # & / , a-z A-Z 0-9 a-c é-ü \x20-\x7e \u0000-\u00ff +-- \d \w
  \s \S \D \W \n \] \\ \- \b \/ \^ \. \p{L} \P{Lu} \u{1F600} \cJ - \B \1 \k \q \d-z ^ \ud83d\ude00`.split(/\s+/)

function classOf() {
  let text = below(4) ? '[' : '[^'
  for (let n = below(4); n >= 0; n--) text += pick(members)
  return text + ']'
}
function atom(depth) {
  const k = below(40)
  if (k < 14) return pick(literals)
  if (k < 22) return pick(escapes)
  if (k < 24) return '.'
  if (k < 30) return classOf()
  if (k < 32) return pick(['\\b', '\\B', '^', '$'])
  if (k === 32) return pick(odd)
  if (depth === 0) return pick(literals)
  return pick(['(', '(', '(?:', '(?=', '(?!', '(?<=', '(?<!', '(?<n>']) + alternatives(depth - 1) + ')'
}
function sequence(depth) {
  let text = ''
  for (let n = below(4); n >= 0; n--) {
    text += atom(depth)
    if (below(3) === 0) text += pick(['*', '+', '?', '*?', '+?', '??', '{2}', '{1,}', '{0,2}', '{1,3}?'])
    if (below(40) === 0) text += pick(['\\1', '\\2', '\\k<n>'])
  }
  return text
}
function alternatives(depth) {
  let text = sequence(depth)
  while (below(5) === 0) text += '|' + (below(8) ? sequence(depth) : '')
  return text
}
function textOf() {
  let text = ''
  for (let n = below(8); n > 0; n--) text += below(3) ? pick(characters) : pick(['a', 'b', 'ab', 'aa', '0', 'A'])
  return text
}

const rows = Array.from({length: Number(count)}, () => {
  const pattern = (below(3) ? '' : '^') + alternatives(3) + (below(3) ? '' : '$')
  return [pattern, ...Array.from({length: TEXTS}, textOf)]
})
const run = spawnSync(judge, {input: rows.map((row) => JSON.stringify(row) + '\n').join(''), maxBuffer: 1 << 28})
const answers = run.stdout.toString().split('\n')
const counts = {agree: 0, 'both refuse': 0}
let wrong = 0

function report(what, row, more) {
  if (wrong++ < 20) console.log(`${what}: ${JSON.stringify(row)} ${more}`)
}
rows.forEach((row, i) => {
  const [pattern, ...texts] = row
  const ours = answers[i]
  let expected
  try {
    const compiled = new RegExp(pattern, 'u')
    expected = texts.map((text) => (compiled.test(text) ? '1' : '0')).join('')
  } catch (e) {
    expected = 'E' + e.message
  }
  if (ours === expected) return void counts.agree++
  if (ours[0] === 'E' && expected[0] === 'E') return void counts['both refuse']++
  if (ours[0] !== 'E' && expected[0] !== 'E') return report('DIFFERENT', row, `node ${expected}, ours ${ours}`)
  const why = ours[0] === 'E' ? 'ours: ' + ours.slice(1) : 'node: ' + expected.slice(1)
  const known = mayRefuse.find((reason) => reason.test(why))
  if (!known) return report('REFUSED', row, why)
  counts[known.source] = (counts[known.source] ?? 0) + 1
})
for (const [what, n] of Object.entries(counts)) console.log(String(n).padStart(6), what)
if (run.status !== 0 || answers.length !== rows.length + 1) console.log(`the judge ended with ${run.status}`), wrong++
if (counts.agree < rows.length / 2) console.log('too few patterns were compiled to mean anything'), wrong++
process.exit(wrong ? 1 : 0)
