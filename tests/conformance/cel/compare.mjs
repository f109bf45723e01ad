// node compare.mjs MODULES EXPR_EVAL: evaluates every expression with cel-js and with ours, and prints each difference.
import {spawnSync} from 'node:child_process'
import {createRequire} from 'node:module'
import {pathToFileURL} from 'node:url'
import {generate, vars, written} from './cases.mjs'
import {exceptions} from './exceptions.mjs'

const GENERATED = 1000
const SEED = 20261121

const [modules, program] = process.argv.slice(2)
const {Environment} = await import(pathToFileURL(createRequire(modules + '/x').resolve('@marcbachmann/cel-js')))
const environment = new Environment({unlistedVariablesAreDyn: true, homogeneousAggregateLiterals: false})

function toJson(v) {
  if (typeof v === 'bigint') return String(v)
  if (typeof v === 'number') return Number.isInteger(v) && Math.abs(v) < 1e15 ? v.toFixed(1) : String(v)
  if (Array.isArray(v)) return `[${v.map(toJson).join(',')}]`
  if (v !== null && typeof v === 'object')
    return `{${Object.entries(v).map(([k, x]) => `${JSON.stringify(k)}:${toJson(x)}`).join(',')}}`
  return JSON.stringify(v)
}

// Both results in one form: "int 1", "double 1.5", lists, sorted pairs.
function plain(v) {
  if (v === null || typeof v === 'boolean' || typeof v === 'string') return v
  if (typeof v === 'bigint') return {int: String(v)}
  if (typeof v === 'number') return {double: String(v)}
  if (Array.isArray(v)) return v.map(plain)
  if (v instanceof Map) return {pairs: [...v].map(([k, x]) => [String(k), plain(x)]).sort()}
  if (v.constructor === Object) return {pairs: Object.entries(v).map(([k, x]) => [k, plain(x)]).sort()}
  if (v.constructor.name === 'UnsignedInt') return {int: String(v.valueOf())}
  return String(v.name ?? v)
}

// Numbers of our answer keep their type: JSON.parse alone would make them all doubles.
function readOurs(line) {
  const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g
  const tagged = line.replace(tokens, (token) =>
    token[0] === '"' ? token : `{"${/[.eE]/.test(token) ? '$double' : '$int'}":"${token}"}`)
  return JSON.parse(tagged, (_, v) => (v?.$int ? BigInt(v.$int) : v?.$double ? Number(v.$double) : v))
}

function theirs(expr) {
  try {
    const value = environment.evaluate(expr, vars)
    if (typeof value === 'number' && !Number.isFinite(value)) return {ok: false, error: 'not a JSON number'}
    return {ok: true, result: value}
  } catch (e) {
    return {ok: false, error: e.message}
  }
}

const show = (a) => (a.ok ? JSON.stringify(plain(a.result)) : `error: ${a.error.split('\n')[0]}`)
const expressions = [...new Set([...written, ...generate(GENERATED, SEED)])]
const input = expressions.map((expr) => `{"expr":${JSON.stringify(expr)},"vars":${toJson(vars)}}\n`).join('')
const run = spawnSync(program, {input, encoding: 'utf8', maxBuffer: 1 << 28})
if (run.status !== 0) throw new Error(`${program}: status ${run.status} ${run.stdout?.slice(-200)} ${run.stderr}`)
const answers = run.stdout.trimEnd().split('\n')
if (answers.length !== expressions.length)
  throw new Error(`${answers.length} answers to ${expressions.length} questions`)

const used = new Set()
let agreed = 0, values = 0, differences = 0
expressions.forEach((expr, i) => {
  const ours = readOurs(answers[i]), other = theirs(expr)
  const same = ours.ok && other.ok && JSON.stringify(plain(ours.result)) === JSON.stringify(plain(other.result))
  if (same || (!ours.ok && !other.ok)) {
    agreed++
    values += ours.ok
    return
  }
  const known = exceptions.find((x) => x.applies(expr, ours, other))
  if (known) {
    used.add(known)
    return
  }
  differences++
  console.log(`${expr}\n  ours:   ${show(ours)}\n  cel-js: ${show(other)}`)
})
for (const x of exceptions.filter((y) => !used.has(y))) {
  differences++
  console.log(`this exception no longer applies to anything: ${x.reason}`)
}
console.log(`${expressions.length} expressions: ${agreed} agree (${values} of them on a value), ` +
  `${expressions.length - agreed - differences} known deviations of cel-js, ${differences} differences`)
process.exitCode = differences ? 1 : 0
