// node compare.mjs MODULES JUDGE [CASES]: matches of random expressions, in zones and near changes of their clocks, by
// croner, by cron-parser and by ours. Every difference has to be of a class that is listed here with its reason.
import {spawnSync} from 'node:child_process'
import {createRequire} from 'node:module'

const [modules, judge, cases] = process.argv.slice(2)
const CASES = Number(cases || 1000)
const COMPARED = 4 // matches of each case
const MATCHES = 6 // those behind them tell what a difference is
const HOUR = 3600_000
const NEAR = 26 * HOUR // from a change to a time that it moves
const require = createRequire(modules + '/x')
const {Cron} = require('croner')
const {CronExpressionParser} = require('cron-parser')

let state = 1n
const mask = (1n << 64n) - 1n
function below(n) {
  state = (state + 0x9e3779b97f4a7c15n) & mask
  let x = state
  x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & mask
  x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & mask
  return Number((x ^ (x >> 31n)) % BigInt(n))
}
const pick = (list) => list[below(list.length)]

// Zones whose rules are the same in the data of Node and of the system, for these years.
const zones = ['UTC', 'Europe/Berlin', 'Europe/Dublin', 'Europe/Lisbon', 'America/New_York', 'America/Los_Angeles', 'America/St_Johns',
  'America/Havana', 'America/Sao_Paulo', 'Australia/Sydney', 'Australia/Lord_Howe', 'Pacific/Auckland', 'Asia/Kathmandu',
  'Asia/Tehran', 'Asia/Beirut', 'Antarctica/Troll']
const FROM = Date.UTC(1996, 0, 1)
const YEARS = 41

const months = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const days = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

function element(min, max, names) {
  const n = max - min + 1
  const low = min + below(n)
  const high = low + below(max - low + 1)
  const word = (v) => (names && below(2) ? names[(v - min) % 7 === 0 && names === days && v === 7 ? 0 : v - min] : String(v))
  const k = below(5)
  if (k === 0) return `${low}-${high}`
  if (k === 1) return `${low}-${high}/${1 + below(Math.min(n, 12))}`
  if (k === 2 && names && high < 7) return `${word(low)}-${word(high)}`
  return names === days && low === 7 ? '7' : word(low)
}

function field(min, max, names) {
  const k = below(10)
  if (k < 4) return '*'
  if (k < 6) return `*/${1 + below(Math.min(max - min + 1, 7))}`
  return Array.from({length: k < 9 ? 1 : 1 + below(3)}, () => element(min, max, names)).join(',')
}

function expression() {
  if (below(50) === 0) return pick(['@hourly', '@daily', '@weekly', '@monthly', '@yearly', '@annually'])
  const minute = below(3) ? pick(['0', '15', '30', '45', '5,35', '0-59/20']) : field(0, 59)
  const hour = below(2) ? pick(['0', '1', '2', '3', '0-4', '1,2', '2,3', '*/2']) : field(0, 23)
  const date = below(2) ? '* * *' : `${field(1, 31)} ${field(1, 12, months)} ${field(0, 7, days)}`
  return `${minute} ${hour} ${date}`
}

// An instant in a day around a change of the clocks, or anywhere.
function moment(zone) {
  const at = FROM + below(YEARS * 365) * 24 * HOUR + below(24 * 60) * 60_000
  if (below(4) === 0) return at
  const offset = (t) => {
    const p = Object.fromEntries(clock(zone).formatToParts(t).map(({type, value}) => [type, Number(value)]))
    return Date.UTC(p.year, p.month - 1, p.day, p.hour, p.minute, p.second) - t
  }
  for (let t = at; t < at + 370 * 24 * HOUR; t += 24 * HOUR)
    if (offset(t) !== offset(t + 24 * HOUR)) return t - 12 * HOUR + below(36 * 60) * 60_000
  return at
}
const clocks = {}
function clock(zone) {
  return (clocks[zone] ??= new Intl.DateTimeFormat('en-US', {timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric',
    day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric'}))
}

const peers = {
  croner(text, zone, after) {
    const cron = new Cron(text, {timezone: zone, mode: '5-part', paused: true})
    const all = []
    for (let t = new Date(after); all.length < MATCHES; ) {
      t = cron.nextRun(t)
      if (!t) break
      all.push(t.getTime())
    }
    return all
  },
  'cron-parser'(text, zone, after) {
    const dates = CronExpressionParser.parse(text, {tz: zone, currentDate: new Date(after)})
    return Array.from({length: MATCHES}, () => dates.next().getTime())
  },
}

// The known differences: what a peer does, to which kind of expression, where clocks are set forward (gap) or back (overlap).
// Odd is a change that is not of one hour, or at midnight.
const known = [
  [/^croner: several times, (odd )?gap: leaves it out$/, 'croner moves a time out of the gap only if minute and hour are single numbers'],
  [/^croner: several times, (odd )?overlap: fires once more$/, 'croner lets an expression with a list or a range repeat with the clocks'],
  [/^cron-parser: (one time|several times), (odd )?gap: fires later$/, 'cron-parser adds the length of the gap; here the time is the end of the gap'],
  [/^cron-parser: several times, (odd )?gap: (leaves it out|fires once more)$/, 'the same, where other times of the list are near'],
  [/^cron-parser: one time, odd gap: leaves it out$/, 'cron-parser skips the day'],
  [/^cron-parser: repeating, (odd )?gap: fires once more$/, 'cron-parser moves it behind the gap; here there is nothing to match'],
  [/^cron-parser: repeating, odd gap: leaves it out$/, 'cron-parser loses a match behind the gap'],
  [/^cron-parser: (one time|several times), odd overlap: /, 'cron-parser takes the second of two times, or both'],
  [/^cron-parser: several times, overlap: fires once more$/, 'cron-parser fires again when it is asked between the two'],
  [/^cron-parser: repeating, (odd )?overlap: leaves it out$/, 'cron-parser takes one of two times of an hour'],
  [/^cron-parser: gives up$/, 'cron-parser reaches a limit of its search where clocks change by half an hour'],
  [/^cron-parser: refuses it, a value twice$/, 'a list may name a value twice here, as in 1,1-5'],
  [/^cron-parser: accepts it, a long step$/, 'a step longer than its field is refused here, as it is by croner'],
]
const reason = (name) => known.find(([pattern]) => pattern.test(name))?.[1]

function isOdd([t, from, to]) {
  const hours = [from, to].map((offset) => new Date(t + offset * 1000).getUTCHours())
  return Math.abs(to - from) !== 3600 || hours.includes(0)
}

// The class of a difference; null: there is none.
function difference(text, ours, theirs) {
  const k = ours.matches.findIndex((t, i) => t !== theirs[i])
  if (k < 0 || k >= COMPARED) return null
  const [mine, other] = [ours.matches[k], theirs[k] ?? Infinity]
  const at = Math.min(mine, other)
  const change = ours.changes.filter(([t, from, to]) => from !== to && Math.abs(at - t) <= NEAR)
    .sort((a, b) => Math.abs(at - a[0]) - Math.abs(at - b[0]))[0]
  if (!change) return 'far from any change of the clocks'
  const what = other < mine ? 'fires once more' : ours.matches[k + 1] === theirs[k + 1] ? 'fires later' : 'leaves it out'
  const kind = !ours.fixed ? 'repeating' : /^\d+ \d+ |^@/.test(text) ? 'one time' : 'several times'
  return `${kind}, ${isOdd(change) ? 'odd ' : ''}${change[2] > change[1] ? 'gap' : 'overlap'}: ${what}`
}

const rows = []
for (let i = 0; i < CASES; i++) {
  const zone = pick(zones)
  rows.push([expression(), zone, moment(zone)])
}
const run = spawnSync(judge, {input: rows.map((row) => JSON.stringify(row) + '\n').join(''), maxBuffer: 1 << 28})
const answers = run.stdout.toString().trimEnd().split('\n').map((line) => JSON.parse(line))
if (run.status !== 0 || answers.length !== CASES) throw new Error('the judge stopped: ' + run.stderr)

const counts = {}
const compared = {}
const examples = {}
const count = (name, i, text) => {
  counts[name] = (counts[name] ?? 0) + 1
  ;(examples[name] ??= []).push(`${rows[i][0]} in ${rows[i][1]} after ${new Date(rows[i][2]).toISOString()}${text ?? ''}`)
}
rows.forEach((row, i) => {
  for (const [name, next] of Object.entries(peers)) {
    let theirs
    try {
      theirs = next(...row)
    } catch (error) {
      const how = /loop limit/.test(error) ? 'gives up' : /duplicate values/.test(error) ? 'refuses it, a value twice' : 'refuses it'
      if (!answers[i].error) count(`${name}: ${how}`, i, ': ' + error.message)
      continue
    }
    if (answers[i].error) {
      if (theirs.length) count(`${name}: accepts it${/: step \d+ of/.test(answers[i].error) ? ', a long step' : ''}`, i, ': ' + answers[i].error)
      continue
    }
    compared[name] = (compared[name] ?? 0) + 1
    const found = difference(row[0], answers[i], theirs)
    if (found)
      count(`${name}: ${found}`, i, `: ours ${answers[i].matches.map((t) => new Date(t).toISOString().slice(0, 16))}, theirs ` +
        theirs.map((t) => new Date(t).toISOString().slice(0, 16)))
  }
})

let unknown = 0
for (const name of Object.keys(counts).sort()) {
  const why = reason(name)
  console.log(`${String(counts[name]).padStart(5)}  ${name}${why ? '; ' + why : ''}`)
  if (!why) unknown += counts[name]
  if (!why || process.env.EXAMPLES) examples[name].slice(0, 3).forEach((text) => console.log('       ' + text))
}
console.log(`${CASES} cases, compared: ${JSON.stringify(compared)}; tzdata of Node ${process.versions.tz}; ${unknown} differences of no known class`)
process.exit(unknown || Object.values(compared).some((n) => n < CASES * 0.9) ? 1 : 0)
