// node compare.mjs MODULES JUDGE: the schemas of others, judged by ajv and by ours.
import {spawnSync} from 'node:child_process'
import {readFileSync} from 'node:fs'
import {createRequire} from 'node:module'
import {pathToFileURL} from 'node:url'
import * as typeboxTypes from './typebox.mjs'
import * as zodTypes from './zod.mjs'

const SOAKS = process.env.REEVE_SOAK === '1'
const VALUES = SOAKS ? 6000 : 150 // for each type; every second one is spoilt
const ROW = 500 // values in one line for the judge
const LEAST = SOAKS ? 100000 : 3000 // that have to fit, and that must not
const [modules, judge, pydantic] = process.argv.slice(2)
const require = createRequire(modules + '/x')
const load = async (name) => import(pathToFileURL(require.resolve(name)))
const {z} = await load('zod')
const {Type} = await load('@sinclair/typebox')
const Ajv2020 = require('ajv/dist/2020').default
const Ajv7 = require('ajv').default
const formats = require('ajv-formats').default

const schemas = [
  ...Object.entries(zodTypes.types(z)).map(([name, type]) => ['zod ' + name, z.toJSONSchema(type, {io: 'input'}), Ajv2020]),
  ...Object.entries(typeboxTypes.types(Type)).map(([name, type]) => ['typebox ' + name, JSON.parse(JSON.stringify(type)),
    name === 'tuple' ? Ajv7 : Ajv2020]),
  ...Object.entries(JSON.parse(readFileSync(pydantic))).map(([name, schema]) => ['pydantic ' + name, schema, Ajv7]),
]

let state = 7n
const mask = (1n << 64n) - 1n
function below(n) {
  state = (state + 0x9e3779b97f4a7c15n) & mask
  let x = state
  x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & mask
  x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & mask
  return Number((x ^ (x >> 31n)) % BigInt(n))
}
const pick = (list) => list[below(list.length)]

const texts = ['', 'a', 'ab', 'abc', 'pre-x', 'x.md', 'a/b', 'k1', 'k12', 'id-7', 'v2', 'red', 'on', 'item-a', 'item-c', 'UP', 'AB-123',
  'abc_12', '1234', '12345', 'EUR', 'DE', 'a@example.com', 'https://example.com/x', '0b8f4c1e-2d6a-4f0e-9c3b-5a7d1e9f2c48',
  '2026-03-09', '2026-03-09T16:05:00Z', '192.0.2.1', 'circle', 'box', 'cat', 'dog', '5', '1.50', 'ä€😀']
const numbers = [0, 1, -1, 2, 3, 7, 10, 99, 100, 150, 0.5, 1.25, 9.99, -0.5, 1e6, 2147483648, 1e15]

function anything(depth) {
  const k = below(depth ? 7 : 5)
  if (k < 2) return pick(texts)
  if (k === 2) return pick(numbers)
  if (k === 3) return pick([true, false])
  if (k === 4) return null
  if (k === 5) return Array.from({length: below(4)}, () => anything(depth - 1))
  return Object.fromEntries(Array.from({length: below(4)}, () => [pick(['a', 'b', 'c', 'd', 'k1', 'v2', 'id-7', 'number']), anything(depth - 1)]))
}

// A value that probably fits.
function fitting(schema, root, depth) {
  if (schema === true || schema === undefined || depth < 0) return anything(1)
  if (schema === false) return null
  if (schema.$ref !== undefined) {
    if (!schema.$ref.startsWith('#')) return fitting(root, root, depth - 1)
    return fitting(schema.$ref.slice(2).split('/').filter(Boolean).reduce((at, key) => at[key], root), root, depth - 1)
  }
  if ('const' in schema) return schema.const
  if (schema.enum) return pick(schema.enum)
  for (const list of [schema.anyOf, schema.oneOf]) if (list) return fitting(pick(list), root, depth - 1)
  if (schema.allOf) {
    const parts = schema.allOf.map((part) => fitting(part, root, depth - 1))
    return parts.every((part) => part && typeof part === 'object') ? Object.assign({}, ...parts) : parts[0]
  }
  const type = Array.isArray(schema.type) ? pick(schema.type) : schema.type
  if (type === 'string') {
    const good = texts.filter((t) => !schema.pattern || new RegExp(schema.pattern, 'u').test(t))
    return pick(good.length ? good : texts)
  }
  if (type === 'integer' || type === 'number') {
    const fits = (n) => (type === 'number' || Number.isInteger(n)) && !(n < schema.minimum) && !(n > schema.maximum)
    return pick(numbers.filter(fits))
  }
  if (type === 'boolean') return pick([true, false])
  if (type === 'null') return null
  if (type === 'array') {
    const first = schema.prefixItems ?? (Array.isArray(schema.items) ? schema.items : [])
    const rest = Array.isArray(schema.items) ? schema.additionalItems : schema.items
    const n = Math.max(schema.minItems ?? 0, below(Math.min(schema.maxItems ?? 3, 3) + 1), first.length)
    const list = Array.from({length: n}, (_, i) => fitting(first[i] ?? rest, root, depth - 1))
    if (schema.contains && n) list[0] = fitting(schema.contains, root, depth - 1)
    return list
  }
  if (type !== 'object') return anything(2)
  const value = {}
  for (const [key, part] of Object.entries(schema.properties ?? {}))
    if (schema.required?.includes(key) || below(2)) value[key] = fitting(part, root, depth - 1)
  const other = schema.additionalProperties ?? Object.values(schema.patternProperties ?? {})[0]
  if (other) for (let n = below(3); n > 0; n--) value[pick(['a', 'k1', 'k12', 'v2', 'id-7'])] = fitting(other, root, depth - 1)
  return value
}

// The same with one place changed.
function spoilt(value) {
  if (value === null || typeof value !== 'object' || below(4) === 0) return anything(1)
  const keys = Object.keys(value)
  if (Array.isArray(value)) {
    const copy = [...value]
    if (!copy.length || below(3) === 0) copy.push(anything(1))
    else copy[below(copy.length)] = spoilt(copy[below(copy.length)])
    return copy
  }
  const copy = {...value}
  const k = below(4)
  if (k === 0 || !keys.length) copy[pick(['a', 'b', 'extra', 'number'])] = anything(1)
  else if (k === 1) delete copy[pick(keys)]
  else {
    const key = pick(keys)
    copy[key] = spoilt(copy[key])
  }
  return copy
}

const rows = schemas.flatMap(([name, schema, Ajv]) => {
  const list = []
  for (let i = 0; i < VALUES; i++) {
    const value = fitting(schema, schema, 6)
    if (i % ROW === 0) list.push({name, schema, Ajv, values: []})
    list.at(-1).values.push(JSON.parse(JSON.stringify(i % 2 ? spoilt(value) : value) ?? 'null'))
  }
  return list
})
const run = spawnSync(judge, {input: rows.map((row) => JSON.stringify([row.schema, ...row.values]) + '\n').join(''), maxBuffer: 1 << 28})
const answers = run.stdout.toString().split('\n')
const counts = {fit: 0, 'do not fit': 0}
let wrong = 0

rows.forEach(({name, schema, Ajv, values}, i) => {
  if (answers[i][0] === 'E') return console.log(`${name}: ${answers[i].slice(1)}`), wrong++
  const ajv = new Ajv({strict: false, validateSchema: false, logger: false})
  formats(ajv)
  const validate = ajv.compile(schema)
  values.forEach((value, k) => {
    const theirs = validate(value) ? '1' : '0'
    counts[theirs === '1' ? 'fit' : 'do not fit']++
    if (theirs !== answers[i][k] && wrong++ < 20)
      console.log(`${name}: ${JSON.stringify(value)}: ajv ${theirs}, ours ${answers[i][k]} ${JSON.stringify(validate.errors?.[0]?.message ?? '')}`)
  })
})
console.log(`${schemas.length} schemas; ${counts.fit} values fit, ${counts['do not fit']} do not; ${wrong} differences`)
if (schemas.length < 60 || counts.fit < LEAST || counts['do not fit'] < LEAST) console.log('too few to mean anything'), wrong++
process.exit(wrong ? 1 : 0)
